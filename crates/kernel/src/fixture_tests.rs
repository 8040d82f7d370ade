//! A kernel with one session and its chat, for the tests beside features. Scenarios in virtual time are in `testing/scenarios`.

use serde_json::{Value, json};
use wire::state::ConfigState;
use wire::{Action, ActionKind, ChannelUri, Object, Timestamp};

use crate::io::{Effect, HostFacts, Output};
use crate::kernel::finish;
use crate::limits::Limits;
use crate::record::Boot;
use crate::record_message::record_plain_message;
use crate::sessions::{NewSession, create_session, finish_start};
use crate::state::{Kernel, Step};
use crate::turn::end::end_turn;
use crate::turn::start::begin_turn;

/// A kernel whose one session is ready.
pub(crate) struct KernelFixture {
    pub kernel: Kernel,
    pub session: ChannelUri,
    pub chat: ChannelUri,
}

pub(crate) fn uri(text: &str) -> ChannelUri {
    ChannelUri::parse(text).unwrap()
}

pub(crate) fn action(kind: ActionKind, fields: Value) -> Action {
    Action::host(kind, fields)
}

impl KernelFixture {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        change(&mut limits);
        let facts = HostFacts::default();
        let (kernel, _) = Kernel::boot(Boot::default(), facts, limits, Timestamp(0)).unwrap();
        let mut fixture = Self { kernel, session: uri("ahp-session:/s"), chat: uri("ahp-chat:/c") };
        let new = NewSession {
            uri: fixture.session.clone(),
            chat: fixture.chat.clone(),
            provider: "p".to_owned(),
            config: ConfigState { schema: json!({}), values: Object::new(), extra: Object::new() },
            directories: Vec::new(),
            creator: None,
            active_client: None,
            meta: None,
            source: None,
            progress_token: None,
        };
        let session = fixture.session.clone();
        fixture.step(|step| create_session(step, new));
        fixture.step(|step| finish_start(step, &session, Ok(())));
        fixture
    }

    /// One step with all that follows from it, committed.
    pub(crate) fn step(&mut self, act: impl FnOnce(&mut Step)) -> Output {
        let mut step = self.kernel.begin_step(Timestamp(1_000));
        act(&mut step);
        let output = finish(step);
        self.kernel.committed();
        output
    }

    /// A turn begins; its agent works on it.
    pub(crate) fn start_turn(&mut self, id: &str) {
        let chat = self.chat.clone();
        let message = json!({"text": "hello", "origin": {"kind": "user"}});
        let output = self.step(|step| {
            let at = step.now().to_rfc3339();
            let fields = json!({"turnId": id, "startedAt": at, "message": message});
            assert!(step.act_as_host(&chat, ActionKind::ChatTurnStarted, fields));
            let submitted = record_plain_message(step, &chat, &message, id);
            begin_turn(step, &chat, None, submitted);
        });
        let mut effects = output.effects.iter();
        assert!(effects.any(|effect| matches!(effect, Effect::RunTurn(_))));
    }

    pub(crate) fn complete_turn(&mut self, id: &str) {
        let chat = self.chat.clone();
        self.step(|step| {
            step.take_run(&chat);
            end_turn(step, &chat, ActionKind::ChatTurnComplete, json!({"turnId": id}));
        });
    }

    /// An action that the host takes as it is.
    pub(crate) fn act(&mut self, kind: ActionKind, fields: Value) {
        let chat = self.chat.clone();
        self.step(|step| assert!(step.act_as_host(&chat, kind, fields)));
    }
}
