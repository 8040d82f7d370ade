//! The terminals of this host: who runs in each, and what they say to the kernel.
//!
//! Promises: what happens in a terminal reaches the kernel in order, in few pieces, so that a terminal that prints without end
//! takes little of the kernel's time. What is done to a terminal that is being started is done when it is there. What was typed is in no
//! log.
//! Must not know: who may do what.

mod shell;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_api::{ShownTerminal, TerminalChange, TerminalOffer};
use kernel::{Input, RunId, ShownTerminalFacts, TerminalStart, TerminalTask, TypedText};
use parking_lot::Mutex;
use wire::ChannelUri;

use crate::config::Config;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::task;

/// Time between two pieces of one terminal.
const PACE: Duration = Duration::from_millis(8);

/// What may be done to a terminal before its shell is there.
const EARLY_ACTS_MAX: usize = 256;

/// How shells are started.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShellSettings {
    /// Where the scripts of shell integration are written; none: there is no command detection.
    pub integration: Option<PathBuf>,
    /// Variables that hold keys of models.
    pub secret_variables: Vec<String>,
}

impl ShellSettings {
    pub(crate) fn of(config: &Config) -> Self {
        let models = config.models.iter();
        Self {
            integration: Some(config.data.join("shell-integration")),
            secret_variables: models.filter_map(|model| model.key_env.clone()).collect(),
        }
    }
}

/// All terminals with a process. Clones share them.
#[derive(Clone)]
pub(crate) struct Terminals(Arc<SharedTerminals>);

struct SharedTerminals {
    arrivals: KernelQueue,
    slots: Mutex<HashMap<ChannelUri, TerminalSlot>>,
    settings: Mutex<ShellSettings>,
}

enum TerminalSlot {
    /// What is to be done when its shell is there.
    Starting(Vec<TerminalTask>),
    Running(Arc<dyn ShownTerminal>),
}

impl Terminals {
    pub(crate) fn new(arrivals: KernelQueue) -> Self {
        Self(Arc::new(SharedTerminals {
            arrivals,
            slots: Mutex::default(),
            settings: Mutex::default(),
        }))
    }

    pub(crate) fn set_settings(&self, settings: ShellSettings) {
        *self.0.settings.lock() = settings;
    }

    /// Whether none is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.slots.lock().is_empty()
    }

    fn settings(&self) -> ShellSettings {
        self.0.settings.lock().clone()
    }

    /// Variables of the host that no command of a user gets.
    pub(crate) fn secret_variables(&self) -> Vec<String> {
        self.settings().secret_variables
    }

    /// Shows a terminal of an agent's call; the URI of its channel. None if the host goes down.
    pub(crate) async fn show(&self, run: RunId, offer: TerminalOffer) -> Option<ChannelUri> {
        let number = uuid::Uuid::now_v7();
        let terminal = ChannelUri::parse(&format!("ahp-terminal:/{number}")).ok()?;
        let facts = ShownTerminalFacts {
            terminal: terminal.clone(),
            call: offer.call,
            title: offer.title,
            directory: offer.directory,
            columns: offer.columns,
            rows: offer.rows,
        };
        let shown = Input::TerminalShown { run, facts };
        // What the kernel wants done to it may come before it is followed.
        self.0.slots.lock().insert(terminal.clone(), TerminalSlot::Starting(Vec::new()));
        let sent = self.0.arrivals.send(QueuedInput::from(shown)).await;
        self.run(terminal.clone(), offer.terminal);
        sent.ok().map(|()| terminal)
    }

    /// Does what the kernel wants done to a terminal.
    pub(crate) fn act(&self, terminal: ChannelUri, act: TerminalTask) {
        if let TerminalTask::Start(start) = act {
            self.0.slots.lock().insert(terminal.clone(), TerminalSlot::Starting(Vec::new()));
            let terminals = self.clone();
            task::spawn(async move { terminals.start(terminal, start).await });
            return;
        }
        let mut slots = self.0.slots.lock();
        match slots.get_mut(&terminal) {
            Some(TerminalSlot::Running(running)) => {
                let running = Arc::clone(running);
                drop(slots);
                perform(&*running, act);
            }
            Some(TerminalSlot::Starting(early)) if early.len() < EARLY_ACTS_MAX => early.push(act),
            Some(TerminalSlot::Starting(_)) => {
                tracing::warn!(
                    "a terminal is typed into before its shell has started; the rest is dropped"
                );
            }
            // It has ended, and the kernel gets its end.
            None => {}
        }
    }

    async fn start(self, terminal: ChannelUri, start: TerminalStart) {
        match shell::open(self.settings(), start).await {
            Ok(shell) => {
                let shell: Arc<dyn ShownTerminal> = Arc::new(shell);
                self.run(terminal, shell);
            }
            Err(why) => {
                self.0.slots.lock().remove(&terminal);
                let text = format!("[no shell could be started: {why}]\r\n");
                let exit_code = None;
                let changes =
                    vec![TerminalChange::Data(text), TerminalChange::Exited { exit_code }];
                self.tell(terminal, changes).await;
            }
        }
    }

    /// Follows a terminal to its end.
    fn run(&self, terminal: ChannelUri, running: Arc<dyn ShownTerminal>) {
        let before = self
            .0
            .slots
            .lock()
            .insert(terminal.clone(), TerminalSlot::Running(Arc::clone(&running)));
        if let Some(TerminalSlot::Starting(early)) = before {
            early.into_iter().for_each(|act| perform(&*running, act));
        }
        let terminals = self.clone();
        task::spawn(async move {
            loop {
                let changes = tokio::select! {
                    changes = running.next() => changes,
                    () = terminals.0.arrivals.closed() => None,
                };
                let Some(changes) = changes else {
                    break; // it has ended, or the host goes down, and the terminal with it
                };
                if !terminals.tell(terminal.clone(), changes).await {
                    break;
                }
                tokio::time::sleep(PACE).await;
            }
            terminals.0.slots.lock().remove(&terminal);
        });
    }

    async fn tell(&self, terminal: ChannelUri, changes: Vec<TerminalChange>) -> bool {
        let input = QueuedInput::from(Input::Terminal { terminal, changes });
        self.0.arrivals.send(input).await.is_ok()
    }
}

fn perform(terminal: &dyn ShownTerminal, act: TerminalTask) {
    match act {
        TerminalTask::Start(_) => debug_assert!(false, "it was started before"),
        TerminalTask::Write(TypedText(text)) => {
            if !terminal.write(&text) {
                tracing::warn!("a program in a terminal reads nothing; what was typed is dropped");
            }
        }
        TerminalTask::Resize { columns, rows } => terminal.resize(columns, rows),
        TerminalTask::Clear => terminal.clear(),
        TerminalTask::Redraw => terminal.redraw(),
        TerminalTask::Hold(holder) => terminal.set_holder(holder),
        TerminalTask::Kill => terminal.kill(),
    }
}
