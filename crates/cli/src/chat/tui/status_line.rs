//! The line under the input, the title of the window, and the signal when the user is needed: where their facts come from.
//!
//! Promises: what is drawn changes only if a fact does; files are looked at every few seconds at most.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::chat::{CurrentModel, UsageReader};
use wire::Timestamp;
use wire::state::ChatState;

use super::model_picker::describe_settings;
use super::{TerminalChat, write};
use crate::chat::attention::{Attention, Signal, Situation, encode_title, window_title};
use crate::chat::directory::{branch_in, shorten_home};
use crate::chat::line::{Line, Style};
use crate::chat::status::{ModeFact, ModelFact, StatusFacts, format_cost, line};
use crate::chat::usage::usage_rows;
use crate::clock::now;
use crate::terminal::escape_line;

/// How long the branch that was read last is taken for the current one.
const BRANCH_AGE: Duration = Duration::from_secs(2);

/// What is remembered for the status line and for the terminal's own frame.
#[derive(Debug)]
pub(super) struct Status {
    usage: UsageReader,
    workplace: WorkingDirectoryLabel,
    pub(super) attention: Attention,
    signal: Signal,
    /// The title that the window has from us.
    title: String,
}

/// Where the agent works.
#[derive(Debug)]
struct WorkingDirectoryLabel {
    /// Whether its directories are those of this machine.
    is_local: bool,
    home: Option<PathBuf>,
    /// The directory, its branch, and when that was read.
    branch: Option<(PathBuf, Option<String>, Instant)>,
}

impl Status {
    pub(super) fn new(signal: Signal, is_local: bool) -> Self {
        Self {
            usage: UsageReader::default(),
            workplace: WorkingDirectoryLabel {
                is_local,
                home: std::env::var_os("HOME").map(PathBuf::from),
                branch: None,
            },
            attention: Attention::new(Instant::now()),
            signal,
            title: String::new(),
        }
    }
}

impl WorkingDirectoryLabel {
    fn branch(&mut self, directory: &Path) -> Option<String> {
        if !self.is_local {
            return None; // another machine's files are not ours
        }
        let now = Instant::now();
        let known = self.branch.as_ref().filter(|(of, _, read_at)| {
            of == directory && now.duration_since(*read_at) < BRANCH_AGE
        });
        if let Some((_, branch, _)) = known {
            return branch.clone();
        }
        let branch = branch_in(directory);
        self.branch = Some((directory.to_owned(), branch.clone(), now));
        branch
    }
}

impl TerminalChat {
    /// The status line, for a chat as it is now.
    pub(super) fn status_line(&mut self, chat: Option<&ChatState>, width: usize) -> Line {
        line(&self.status_facts(chat), width)
    }

    fn status_facts(&mut self, chat: Option<&ChatState>) -> StatusFacts {
        let model = self.chat.current_model();
        let window = self.chat.context_tokens();
        let usage = chat.map(|chat| self.status.usage.read(chat)).unwrap_or_default();
        let cost = usage.cost.as_ref();
        let directory = self.chat.directory();
        let workplace = &mut self.status.workplace;
        let branch = directory.as_deref().and_then(|path| workplace.branch(path));
        let home = workplace.home.as_deref().filter(|_| workplace.is_local);
        let shortened = directory.as_deref().map(|path| shorten_home(path, home));
        StatusFacts {
            running: running_for(chat),
            waiting_elsewhere: self.chat.count_waiting_elsewhere(),
            model: self.model_fact(model),
            mode: self.chat.permission_mode().map(|mode| ModeFact {
                gives_much: mode.is_permissive(),
                title: escape_line(&mode.title),
            }),
            directory: shortened.map(|path| escape_line(&path)),
            branch: branch.map(|branch| escape_line(&branch)),
            context_percent: usage.context_percent(window),
            cost: cost.map(|cost| {
                format_cost(cost.amount, &escape_line(&cost.currency), cost.is_partial)
            }),
        }
    }

    fn model_fact(&self, model: CurrentModel) -> Option<ModelFact> {
        let agent = || self.chat.agent_name().map(|name| escape_line(&name));
        if !self.chat.has_agent() {
            return agent().map(ModelFact::Gone);
        }
        match model {
            CurrentModel::Offered(model) => {
                let name = escape_line(&model.name);
                let settings = describe_settings(&model, &self.chat.model_settings());
                Some(ModelFact::Used(if settings.is_empty() {
                    name
                } else {
                    format!("{name} ({settings})")
                }))
            }
            CurrentModel::Gone { id } => Some(ModelFact::Gone(escape_line(&id))),
            CurrentModel::None => agent().map(ModelFact::Used),
        }
    }

    /// `/status`: the same facts in full.
    pub(super) fn show_status(&mut self) {
        let chat = self.chat.ahead();
        let facts = self.status_facts(chat.as_deref());
        let session = self.chat.session_state();
        let host = self.chat.live().host();
        let software = host.software.unwrap_or_default();
        let model = facts.model.map(|model| match model {
            ModelFact::Used(name) => name,
            ModelFact::Gone(name) => format!("{name} (gone)"),
        });
        let rows = [
            ("Session", Some(self.chat.session().to_string())),
            ("Title", session.map(|session| session.title.clone())),
            ("Agent", self.chat.agent_name()),
            ("Model", model),
            ("Approvals", facts.mode.map(|mode| mode.title)),
            ("Directory", facts.directory),
            ("Branch", facts.branch),
            ("Context", facts.context_percent.map(|percent| format!("{percent}% used"))),
            ("Cost", facts.cost),
            (
                "Elsewhere",
                (facts.waiting_elsewhere > 0)
                    .then(|| format!("{} waiting for you", facts.waiting_elsewhere)),
            ),
            ("Host", Some(format!("{software} · protocol {}", host.protocol_version))),
        ]
        .into_iter()
        .filter_map(|(name, value)| {
            let value = value.filter(|value| !value.is_empty())?;
            Some(Line::new(Style::Bold, format!("  {name:12}")).then(Style::Plain, value))
        });
        self.print(rows.collect::<Vec<Line>>());
    }

    /// `/usage`: tokens and cost, as far as the agent said them.
    pub(super) fn show_usage(&mut self) {
        let chat = self.chat.ahead();
        let usage = chat.map(|chat| self.status.usage.read(&chat));
        let rows = usage_rows(&usage.unwrap_or_default(), self.chat.context_tokens());
        self.print(rows);
    }

    /// Tells the terminal what is going on, where that changed.
    pub(super) fn tell_terminal(&mut self) -> anyhow::Result<()> {
        let situation = Situation {
            is_asking: self.asked.is_some(),
            is_working: self.chat.is_working(),
            waiting_elsewhere: self.chat.count_waiting_elsewhere(),
        };
        let mut text = String::new();
        let session = self.chat.session_state();
        let title = window_title(session.as_ref().map_or("", |session| &session.title), situation);
        if title != self.status.title {
            text.push_str(&encode_title(&title));
            self.status.title = title;
        }
        let reason = self.status.attention.observe(situation, Instant::now());
        if let Some(reason) = reason {
            text.push_str(&self.status.signal.encode(reason));
        }
        if text.is_empty() { Ok(()) } else { write(&text) }
    }
}

/// How long the turn that runs has been running.
fn running_for(chat: Option<&ChatState>) -> Option<Duration> {
    let turn = chat?.active_turn.as_ref()?;
    // A start that cannot be read is taken for now: the turn runs all the same.
    let elapsed =
        Timestamp::parse_rfc3339(&turn.started_at).map_or(0, |start| now().ms_since(start));
    Some(Duration::from_millis(u64::try_from(elapsed).unwrap_or(0)))
}
