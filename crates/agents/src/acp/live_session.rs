//! A session of the agent that a chat has, as long as the process runs.
//!
//! Promises: what the agent says of it is known at any time, in a turn or not, and told to who offers settings and commands.
//! Must not know: turns.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use wire::Object;

use super::agent_core::AgentCore;
use super::connection::{AcpConnection, RequestError, SessionInbox, SessionListener};
use super::failed_server::FailedServer;
use super::mapper::{UsageTotals, notice_of};
use super::mcp_servers::PassedServers;
use super::view::{OptionValues, SessionView, Setter, ViewChange};

/// How long an agent may take to change a setting.
const SETTING_LIMIT: Duration = Duration::from_secs(30);

pub(super) struct LiveSession {
    pub(super) inbox: Arc<SessionInbox>,
    pub(super) reported: Arc<ReportedSettings>,
    pub(super) directories: Vec<PathBuf>,
    /// The digest of what plugins of clients said to the agent then.
    pub(super) instructions_digest: Option<String>,
    /// The digest of the prompt that was appended to the agent's own.
    pub(super) prompt_digest: Option<String>,
    /// The MCP servers that it got.
    pub(super) servers: PassedServers,
    /// The last turn whose message the agent got; none before the first.
    through: Mutex<Option<String>>,
    /// Held while settings are changed, so that they are changed one after the other.
    changing: tokio::sync::Mutex<()>,
    /// The newest settings of the session that somebody is about to set.
    wanted: Mutex<Option<Object>>,
}

/// What a session was opened with: with something else it is opened anew.
pub(super) struct OpenedWith {
    pub(super) directories: Vec<PathBuf>,
    pub(super) instructions_digest: Option<String>,
    pub(super) prompt_digest: Option<String>,
    pub(super) servers: PassedServers,
}

/// What an agent said of a session.
pub(super) struct ReportedSettings {
    core: Weak<AgentCore>,
    pub(super) conversation: String,
    view: Mutex<SessionView>,
    usage: Mutex<UsageTotals>,
    turn_mode: Mutex<Option<TurnMode>>,
    /// Texts for the next who shows notices of this session.
    notices: Mutex<Vec<HeldNotice>>,
}

/// A mode that counts for one turn, since its message names a custom agent (CU-9). The session's settings say what counts otherwise.
#[derive(Debug, Clone, PartialEq)]
struct TurnMode {
    /// The id of the setting.
    setting: String,
    value: Value,
    /// What counted before.
    before: Value,
}

/// Why a custom agent cannot be chosen.
pub(super) enum TurnModeError {
    /// The agent has no mode of this name any more.
    NotOffered,
    Refused(RequestError),
}

/// What is to be shown with the next turn.
pub(super) struct HeldNotice {
    /// One with a title is shown once in a process.
    pub(super) title: Option<String>,
    pub(super) text: String,
}

/// Notices that wait.
const NOTICES_MAX: usize = 16;

impl ReportedSettings {
    pub(super) fn new(core: &Arc<AgentCore>, conversation: &str, usage: UsageTotals) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::downgrade(core),
            conversation: conversation.to_owned(),
            view: Mutex::default(),
            usage: Mutex::new(usage),
            turn_mode: Mutex::default(),
            notices: Mutex::default(),
        })
    }

    pub(super) fn view(&self) -> SessionView {
        self.view.lock().clone()
    }

    pub(super) fn usage(&self) -> UsageTotals {
        self.usage.lock().clone()
    }

    pub(super) fn set_usage(&self, usage: UsageTotals) {
        *self.usage.lock() = usage;
    }

    pub(super) fn take_notices(&self) -> Vec<HeldNotice> {
        std::mem::take(&mut *self.notices.lock())
    }

    fn add_notice(&self, title: Option<String>, text: String) {
        let mut notices = self.notices.lock();
        if notices.len() < NOTICES_MAX {
            notices.push(HeldNotice { title, text });
        }
    }

    /// Reads what opening the session was answered with.
    pub(super) fn apply_response(&self, answer: &Value) {
        let view = {
            let mut view = self.view.lock();
            view.apply_response(answer);
            view.clone()
        };
        if let Some(core) = self.core.upgrade() {
            core.learn_view(&view);
        }
    }

    /// Whether a setting is what it is for this turn alone. If the agent left the mode of the turn, what it is now counts.
    fn is_of_turn(&self, setting: &OptionValues) -> bool {
        let mut held = self.turn_mode.lock();
        let mode = held.as_ref().filter(|mode| mode.setting == setting.id);
        let is_it = mode.map(|mode| mode.value == setting.current);
        if is_it == Some(false) {
            *held = None;
        }
        is_it == Some(true)
    }

    /// What counts of a setting when no custom agent is chosen.
    fn lasting_value(&self, setting: &OptionValues) -> Value {
        let held = self.turn_mode.lock();
        let mode = held.as_ref().filter(|mode| mode.setting == setting.id);
        mode.map_or_else(|| setting.current.clone(), |mode| mode.before.clone())
    }

    /// Tells what is another one than before.
    fn report_change(&self, change: ViewChange, before: &[OptionValues]) {
        let Some(core) = self.core.upgrade() else {
            return; // the host goes down
        };
        let view = self.view();
        match change {
            ViewChange::Commands => core.learn_commands(&view.commands),
            ViewChange::Settings => {
                core.learn_view(&view);
                let is_new = |setting: &&OptionValues| {
                    let known = before.iter().find(|known| known.id == setting.id);
                    known.is_none_or(|known| known.current != setting.current)
                };
                for setting in view.settings.iter().filter(is_new) {
                    if self.is_of_turn(setting) {
                        continue;
                    }
                    let (property, value) = (setting.property(), setting.current.clone());
                    core.report_setting(&self.conversation, &property, value);
                }
            }
        }
    }
}

impl SessionListener for ReportedSettings {
    fn on_update(&self, update: &acp::SessionUpdate, is_in_turn: bool) {
        if let acp::SessionUpdate::UsageUpdate(usage) = update {
            self.usage.lock().apply_update(usage);
        }
        if let acp::SessionUpdate::SessionInfoUpdate(info) = update
            && !is_in_turn
            && let (Some(title), Some(core)) = (info.title.value(), self.core.upgrade())
        {
            core.tell_title(&self.conversation, title);
        }
        if !is_in_turn && let Some((title, text)) = notice_of(update) {
            self.add_notice(title, text);
        }
        if let (Some(failed), Some(core)) = (FailedServer::of(update), self.core.upgrade()) {
            core.note_failed_server(&self.conversation, failed);
        }
        let (before, change) = {
            let mut view = self.view.lock();
            // Most updates are words: nothing is copied for those.
            let before = match update {
                acp::SessionUpdate::ConfigOptionUpdate(_)
                | acp::SessionUpdate::CurrentModeUpdate(_) => view.settings.clone(),
                _ => Vec::new(),
            };
            (before, view.apply_update(update))
        };
        if let Some(change) = change {
            self.report_change(change, &before);
        }
    }
}

impl LiveSession {
    pub(super) fn new(
        inbox: Arc<SessionInbox>,
        reported: Arc<ReportedSettings>,
        with: OpenedWith,
        through: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            inbox,
            reported,
            directories: with.directories,
            instructions_digest: with.instructions_digest,
            prompt_digest: with.prompt_digest,
            servers: with.servers,
            through: Mutex::new(through),
            changing: tokio::sync::Mutex::default(),
            wanted: Mutex::default(),
        })
    }

    pub(super) fn through(&self) -> Option<String> {
        self.through.lock().clone()
    }

    /// Sets it; what it was.
    pub(super) fn set_through(&self, turn: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.through.lock(), turn)
    }

    /// Notes settings to be set by [`Self::apply_wanted`]. Whether nobody is about to do so: of many changes only the newest counts.
    pub(super) fn want_settings(&self, config: Object) -> bool {
        self.wanted.lock().replace(config).is_none()
    }

    /// Sets the newest settings that are wanted.
    pub(super) async fn apply_wanted(&self, connection: &AcpConnection) {
        let _changing = self.changing.lock().await;
        let wanted = self.wanted.lock().take();
        if let Some(config) = wanted {
            self.set_all(connection, &config).await;
        }
    }

    /// Sets what differs from the session's settings; what the agent refuses is set back and said (AG-25).
    pub(super) async fn apply_settings(&self, connection: &AcpConnection, config: &Object) {
        let _changing = self.changing.lock().await;
        self.set_all(connection, config).await;
    }

    async fn set_all(&self, connection: &AcpConnection, config: &Object) {
        for setting in self.reported.view().settings {
            let current = self.reported.lasting_value(&setting);
            let Some(wanted) = config.get(&setting.property()) else {
                // The session says nothing of it: it has what the agent has.
                if let Some(core) = self.reported.core.upgrade() {
                    core.report_setting(&self.reported.conversation, &setting.property(), current);
                }
                continue;
            };
            if *wanted == current || *wanted == json!("") {
                continue;
            }
            // Whoever changes the mode meanwhile wants that one from now on.
            self.reported.turn_mode.lock().take_if(|mode| mode.setting == setting.id);
            let set = if setting.offers(wanted) {
                self.set(connection, &setting, wanted).await.map_err(|error| error.to_string())
            } else {
                Err(format!("it offers no value {wanted}"))
            };
            if let Err(why) = set {
                let name = &setting.name;
                let notice =
                    format!("The agent did not change {name}: {}", super::label::label(&why, 300));
                self.reported.add_notice(None, notice);
                if let Some(core) = self.reported.core.upgrade() {
                    let (conversation, property) =
                        (&self.reported.conversation, setting.property());
                    core.report_setting(conversation, &property, setting.current);
                }
            }
        }
    }

    /// Lets the mode count that a custom agent stands for, until [`Self::end_turn_mode`] (CU-9).
    pub(super) async fn begin_turn_mode(
        &self,
        connection: &AcpConnection,
        custom_agent: &str,
    ) -> Result<(), TurnModeError> {
        let _changing = self.changing.lock().await;
        let mode = self.reported.view().mode().cloned();
        let Some((mode, value)) = mode.and_then(|mode| {
            let value = mode.value_named(custom_agent)?.to_owned();
            Some((mode, json!(value)))
        }) else {
            return Err(TurnModeError::NotOffered);
        };
        let before = self.reported.lasting_value(&mode);
        let is_set = mode.current == value;
        // Noted first: some agents say so before they answer.
        let turn_mode = (before != value).then(|| TurnMode {
            setting: mode.id.clone(),
            value: value.clone(),
            before,
        });
        let earlier = std::mem::replace(&mut *self.reported.turn_mode.lock(), turn_mode);
        if is_set {
            return Ok(());
        }
        let set = self.set(connection, &mode, &value).await;
        if set.is_err() {
            // What an earlier turn chose may count still, and is set back by a later one.
            *self.reported.turn_mode.lock() = earlier;
        }
        set.map_err(TurnModeError::Refused)
    }

    /// What counted before the last turn that chose a custom agent counts again, unless this one chooses one too.
    pub(super) async fn end_turn_mode(&self, connection: &AcpConnection, next: Option<&str>) {
        let _changing = self.changing.lock().await;
        let Some(ended) = self.reported.turn_mode.lock().clone() else {
            return; // most turns choose none
        };
        let mode = self.reported.view().mode().cloned();
        let mode = mode.filter(|mode| mode.id == ended.setting);
        let chooses = |name: &str| mode.as_ref().is_some_and(|mode| mode.offers_name(name));
        if next.is_some_and(chooses) {
            return; // what counted before is still known
        }
        *self.reported.turn_mode.lock() = None;
        let Some(mode) = mode.filter(|mode| mode.current != ended.before) else {
            return; // there is nothing to be set back
        };
        if let Err(error) = self.set(connection, &mode, &ended.before).await {
            let why = super::label::label(&error.to_string(), 300);
            let notice = format!("The agent did not change {} back: {why}", mode.name);
            self.reported.add_notice(None, notice);
        }
    }

    /// Chooses a model before a prompt, if it is another one (AG-24).
    pub(super) async fn choose_model(
        &self,
        connection: &AcpConnection,
        id: &str,
    ) -> Result<(), RequestError> {
        let _changing = self.changing.lock().await;
        let model = self.reported.view().model;
        let Some(model) = model.filter(|model| model.current != json!(id)) else {
            return Ok(()); // it is the one, or there is no choice
        };
        self.set(connection, &model, &json!(id)).await
    }

    async fn set(
        &self,
        connection: &AcpConnection,
        choice: &OptionValues,
        value: &Value,
    ) -> Result<(), RequestError> {
        let session = &self.inbox.session;
        let answer: Value = match choice.setter {
            Setter::Option => {
                let mut params =
                    json!({"sessionId": session, "configId": choice.id, "value": value});
                if value.is_boolean() {
                    params["type"] = json!("boolean");
                }
                connection.request("session/set_config_option", &params, SETTING_LIMIT).await?
            }
            Setter::Mode => {
                let params = json!({"sessionId": session, "modeId": value});
                connection.request("session/set_mode", &params, SETTING_LIMIT).await?
            }
            Setter::Model => {
                let params = json!({"sessionId": session, "modelId": value});
                connection.request("session/set_model", &params, SETTING_LIMIT).await?
            }
        };
        let mut view = self.reported.view.lock();
        if answer["configOptions"].is_array() {
            view.apply_response(&answer);
        } else if let Some(model) = view.model.as_mut().filter(|model| model.id == choice.id) {
            model.current = value.clone();
        } else if let Some(setting) = view.settings.iter_mut().find(|known| known.id == choice.id) {
            setting.current = value.clone();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::AcpAgentConfig;
    use super::super::known::KnownAgentFile;
    use super::super::process::{Launch, StderrTail};
    use super::*;
    use crate::trust::TrustStore;

    /// Takes two requests and refuses the one between them.
    fn refusing() -> AcpConnection {
        let taken = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {}});
        let error = json!({"code": -32603, "message": "no"});
        let refused = json!({"jsonrpc": "2.0", "id": 2, "error": error});
        let answers = [taken(1), refused, taken(3)]
            .map(|answer| format!("read -r line; printf '%s\\n' '{answer}'; "));
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".to_owned(), answers.concat() + "cat >/dev/null"],
            variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory: "/".into(),
        };
        AcpConnection::start(&launch, StderrTail::new(Vec::new()), 1 << 20).unwrap()
    }

    #[tokio::test]
    async fn cu_9_a_mode_that_is_refused_leaves_the_earlier_one_to_be_set_back() {
        let data = tempfile::tempdir().unwrap();
        let known = KnownAgentFile::open(data.path(), "fake");
        let trust = Arc::new(TrustStore::new(data.path(), Vec::new()));
        let core = AgentCore::new(AcpAgentConfig::new("fake", "fake"), known, trust);
        let reported = ReportedSettings::new(&core, "conversation", UsageTotals::default());
        reported.apply_response(
            &json!({"modes": {"currentModeId": "build", "availableModes": [
                {"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}, {"id": "review", "name": "Review"},
            ]}}),
        );
        let connection = refusing();
        let inbox = connection.listen("s", Arc::clone(&reported) as Arc<dyn SessionListener>);
        let with = OpenedWith {
            directories: Vec::new(),
            instructions_digest: None,
            prompt_digest: None,
            servers: PassedServers::default(),
        };
        let session = LiveSession::new(inbox, reported, with, None);
        let begun = session.begin_turn_mode(&connection, "plan").await;
        assert!(begun.is_ok());
        let begun = session.begin_turn_mode(&connection, "review").await;
        assert!(matches!(begun, Err(TurnModeError::Refused(_))));
        let held = session.reported.turn_mode.lock().clone().unwrap();
        assert_eq!((held.value, held.before), (json!("plan"), json!("build")));
        session.end_turn_mode(&connection, None).await;
        let view = session.reported.view();
        assert_eq!(view.mode().unwrap().current, json!("build"));
        assert!(session.reported.take_notices().is_empty());
    }
}
