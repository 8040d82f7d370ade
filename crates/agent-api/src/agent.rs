//! What every agent looks like from outside.
//!
//! Promises: a turn ends by returning, `Ok` for complete and `Err` for failed. A cancel drops the future, so every
//! await is a point where the turn may end; nothing an agent must do afterwards may be left behind one.
//! Must not know: channels, peers, sequence numbers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use compositor::lower::{Capabilities, Target};
use serde_json::{Value, json};
use wire::ext::system_message_transform::SystemMessageSection;

use crate::host::HostServices;
use crate::message::UserMessage;
use crate::news::HostNews;
use crate::section::Section;
use crate::sink::EventSink;
use crate::turn::TurnInput;

/// What an agent says about itself before any session exists.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInfo {
    pub provider: String,
    pub display_name: String,
    pub description: String,
    pub models: Vec<ModelInfo>,
    /// `AgentCapabilities`: what is there is supported, what is absent must not be used.
    pub capabilities: Value,
    /// `SessionConfigSchema` of the agent's sessions.
    pub config_schema: Value,
    /// Settings that had other names before.
    pub renamed_settings: Vec<RenamedSetting>,
    /// The model of a message that names none (G-12).
    pub default_model: Option<String>,
    /// Every section of its system prompt, none of them restricted: what is restricted, the host decides.
    pub sections: Vec<SystemMessageSection>,
    /// `ProtectedResourceMetadata` of what it takes tokens for ([`Agent::authenticated`]).
    pub protected_resources: Vec<Value>,
    /// `Customization`s that its sessions begin with.
    pub customizations: Vec<Value>,
}

/// A setting of sessions that had another name before: the old one is still read, and becomes the new one.
#[derive(Debug, Clone, PartialEq)]
pub struct RenamedSetting {
    pub old_name: String,
    pub name: String,
    /// Values that had other names before: the old one, and what it is now.
    pub values: Vec<(Value, Value)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub id: String,
    pub name: String,
    /// Further fields of `SessionModelInfo`.
    pub details: wire::Object,
}

impl AgentInfo {
    /// `AgentInfo` of AHP 1.0.
    pub fn to_wire(&self) -> Value {
        let models: Vec<Value> =
            self.models.iter().map(|model| model.to_wire(&self.provider)).collect();
        let mut info = json!({
            "provider": self.provider,
            "displayName": self.display_name,
            "description": self.description,
            "models": models,
            "capabilities": self.capabilities,
        });
        for (name, list) in [
            ("protectedResources", &self.protected_resources),
            ("customizations", &self.customizations),
        ] {
            if !list.is_empty() {
                info[name] = Value::Array(list.clone());
            }
        }
        info
    }
}

impl ModelInfo {
    /// `SessionModelInfo` of AHP 1.0.
    pub fn to_wire(&self, provider: &str) -> Value {
        let mut info = json!({"id": self.id, "provider": provider, "name": self.name});
        if let Some(info) = info.as_object_mut() {
            info.extend(self.details.clone());
        }
        info
    }
}

/// What a model makes of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTerms {
    /// The model by its id.
    pub model: String,
    pub target: Target,
    pub capabilities: Capabilities,
    /// Parts of the message that its server has refused.
    pub described: BTreeSet<usize>,
    pub context_tokens: Option<u64>,
    /// US dollars for a million tokens of a request.
    pub input_price: Option<f64>,
}

/// A kind of agent: it opens sessions of its own.
#[async_trait]
pub trait Agent: Send + Sync {
    fn info(&self) -> AgentInfo;

    /// The host starts, before any session: what the agent says between turns goes to `news`. Called once. Must not block.
    fn start(&self, _news: Arc<dyn HostNews>) {}

    /// The commands of its own that it last named for a chat, or for the directory of one. Does no I/O.
    fn commands(&self, _session: &SessionFacts) -> Vec<AgentCommand> {
        Vec::new()
    }

    /// A message may name a command that [`Agent::commands`] does not list yet: what lists it is started, as far as nobody has
    /// to be asked. Takes a bounded time.
    async fn prepare_commands(&self, _session: &SessionFacts, _switched_off: &BTreeSet<String>) {}

    /// The text that a [command that expands](AgentCommand::expands) stands for with these arguments, or what the user reads
    /// instead. Asked before a message is recorded; takes a bounded time.
    async fn expand_command(
        &self,
        _session: &SessionFacts,
        _name: &str,
        _arguments: &[String],
    ) -> Result<String, String> {
        Err("this agent has no such command".to_owned())
    }

    /// What the last of the arguments of such a command may be, of which a part is typed. Takes about a second at the most.
    async fn complete_argument(
        &self,
        _session: &SessionFacts,
        _name: &str,
        _arguments: &[String],
    ) -> Vec<String> {
        Vec::new()
    }

    /// What a message can refer to by a name that begins like this, without its `@`. Takes about a second at the most.
    async fn find_resources(&self, _session: &SessionFacts, _typed: &str) -> Vec<AgentResource> {
        Vec::new()
    }

    /// The content of [something](AgentResource) that a message refers to, or why it cannot be had. Takes a bounded time.
    async fn read_resource(&self, _session: &SessionFacts, _uri: &str) -> Result<Vec<u8>, String> {
        Err("this agent has no such resource".to_owned())
    }

    /// The values that a setting with dynamic ones can have, in a session if it is one already; `conversation` is empty before.
    /// Does no I/O.
    fn setting_values(&self, _conversation: &str, _property: &str) -> Vec<SettingValue> {
        Vec::new()
    }

    /// A client changed settings of a session, maybe in the middle of a turn; all of its settings as they are now. Must not
    /// block.
    fn receive_settings(&self, _conversation: &str, _config: &wire::Object) {}

    /// A client named the session of a chat. Must not block.
    fn receive_title(&self, _chat: &str, _title: &str) {}

    /// A client wants an MCP server of a session started, stopped or not waited for. The agent says by
    /// [`HostNews::mcp_servers`] how it is then, whatever it does. Must not block.
    fn handle_mcp_request(&self, _conversation: &str, _id: &str, _request: McpRequest) {}

    /// A client of a principal brought a token for a resource that the agent [advertises](AgentInfo::protected_resources); an
    /// empty one takes back what was brought before, or says that it ran out. It is used for [sessions of that
    /// principal](SessionFacts::principal) and for nobody else (H-318). Must not block, and must not let the token out.
    fn receive_token(&self, _principal: Option<&str>, _resource: &str, _token: &str) {}

    /// Whether its calls may change files before the host gets an event about them. If so, the files are recorded before its turns.
    fn changes_files_unannounced(&self) -> bool {
        false
    }

    /// What its process last printed beside what it says to the host, for the operator (AG-18). None: it has no process.
    fn log_tail(&self) -> Option<String> {
        None
    }

    /// Whether its turns get the turns before them ([`TurnInput::history`]). An agent without remembers by itself, or
    /// not at all.
    fn needs_history(&self) -> bool {
        false
    }

    /// Whether it has commands of its own that the host need not know (AG-28). Such an agent is not asked to shorten what it
    /// remembers ([`TurnInput::compact`]): it may have a command for that.
    fn has_own_commands(&self) -> bool {
        false
    }

    /// Whether its tools open attachments as files, so that copies of them must be made (C-032).
    fn needs_attachment_files(&self) -> bool {
        false
    }

    /// Whether it lowers messages itself, for the model it asks. If not, [`TurnInput::text`] is the lowered text (G-06).
    fn lowers_messages(&self) -> bool {
        false
    }

    /// Whether it uses the customizations that the host finds: custom agents, rules, skills and plugins.
    fn reads_customizations(&self) -> bool {
        false
    }

    /// The names of the custom agents that a message of a session may name; `None` if it may name each that the host finds
    /// (CU-9). Does no I/O.
    fn custom_agents(&self, _conversation: &str) -> Option<BTreeSet<String>> {
        if self.reads_customizations() { None } else { Some(BTreeSet::new()) }
    }

    /// Whether it uses MCP servers that the host finds, also those of plugins.
    fn takes_servers(&self) -> bool {
        self.reads_customizations()
    }

    /// Whether pieces of text that are recorded together may become one piece. A script's must stay what they are (G-03).
    fn joins_text(&self) -> bool {
        false
    }

    /// What a model of its makes of a message, in a chat where `refusals` are remembered; of the default model without a
    /// name. None if it has no such model, or none at all.
    fn model_terms(
        &self,
        _model: Option<&str>,
        _refusals: Option<&[u8]>,
        _message: &UserMessage,
    ) -> Option<ModelTerms> {
        None
    }

    /// Its system prompt when a session begins; none if it renders none then (G-02).
    async fn opening_prompt(
        &self,
        _session: SessionFacts,
        _config: wire::Object,
    ) -> Option<Vec<Section>> {
        None
    }

    /// A better title for a session that was named after its first message, by the text of that; asked for when its first turn
    /// is over. Takes a bounded time. A model is asked for it like for anything else: with a permit, and on record.
    async fn suggest_title(
        &self,
        _text: String,
        _host: &dyn HostServices,
    ) -> Option<SuggestedTitle> {
        None
    }

    /// A session begins. Another one may have had its name: nothing that was agreed to in that one holds in this. An error is
    /// why the session cannot begin.
    async fn begin_session(&self, _conversation: &str) -> Result<(), AgentError> {
        Ok(())
    }

    async fn open(&self, session: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError>;

    /// A chat is gone for good: what the agent left running for it ends. `chat` is what [`SessionFacts::chat`] was.
    fn end_chat(&self, _chat: &str) {}

    /// A chat left memory: nobody has used it for a while. It may come back. Must not block.
    fn unload_chat(&self, _chat: &str) {}
}

/// What a client wants of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpRequest {
    /// To be started, or started again.
    Start,
    Stop,
    /// To start without turns waiting for it.
    Background,
    /// It was switched on: it may be started if nobody needs to be asked first. This answers no question of trust.
    SwitchOn,
    /// It was switched off, or went with its plugin: it ends, and nothing starts it.
    SwitchOff,
    /// Nothing, but that the agent reports how the servers are.
    Report,
}

/// A command that an agent knows by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Without the slash.
    pub name: String,
    pub description: Option<String>,
    /// What may follow its name.
    pub hint: Option<String>,
    /// Whether it stands for a text that the agent knows ([`Agent::expand_command`]); otherwise the agent gets it as it was
    /// typed.
    pub expands: bool,
}

/// Something beside files that a message can refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentResource {
    /// `mcp-resource://SERVER/URI`
    pub uri: String,
    /// As it is typed, without the `@`.
    pub typed: String,
    pub name: String,
    pub description: String,
    pub mime_type: Option<String>,
}

/// A value that a setting can have.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingValue {
    /// Clients know texts only: another value is not offered to them.
    pub value: Value,
    pub label: String,
    pub description: Option<String>,
}

/// A title in place of one that the agent gave before. One that somebody else gave stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedTitle {
    pub replaces: String,
    pub title: String,
}

/// One conversation with an agent. Works on one turn at a time.
#[async_trait]
pub trait AgentSession: Send {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError>;
}

/// What an agent is given when a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Names the conversation; opaque.
    pub conversation: String,
    /// Names the chat in it; opaque, and empty before there is one.
    pub chat: String,
    /// Whose tokens are used: of who began the turn, or types the message. None for the people of the host itself (H-318).
    pub principal: Option<String>,
    /// `file:` URIs, the default one first.
    pub working_directories: Vec<String>,
    /// Where copies of the session's attachments lie, for an agent whose tools open them (C-032).
    pub attachments: Option<PathBuf>,
    /// What clients of the session brought along, as it was read from them.
    pub plugins: Vec<ClientPlugin>,
}

/// A plugin that a client brought, and a copy of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPlugin {
    pub client_id: String,
    /// As the client calls it.
    pub name: String,
    /// The client's own URI of it.
    pub uri: String,
    /// Where the copy lies.
    pub directory: PathBuf,
    /// SHA-256 of all its files: another one if any of them differs.
    pub digest: String,
}

/// Why a turn failed, or a session could not be opened. The user reads the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    pub error_type: String,
    pub message: String,
    pub resumable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_has_every_field_a_client_needs() {
        let info = AgentInfo {
            provider: "scripted".to_owned(),
            display_name: "Scripted agent".to_owned(),
            description: "Plays a script.".to_owned(),
            models: vec![ModelInfo {
                id: "m".to_owned(),
                name: "M".to_owned(),
                details: wire::Object::new(),
            }],
            capabilities: json!({}),
            config_schema: json!({"type": "object", "properties": {}}),
            renamed_settings: Vec::new(),
            default_model: Some("m".to_owned()),
            sections: Vec::new(),
            protected_resources: Vec::new(),
            customizations: Vec::new(),
        };
        let expected = json!({
            "provider": "scripted",
            "displayName": "Scripted agent",
            "description": "Plays a script.",
            "models": [{"id": "m", "provider": "scripted", "name": "M"}],
            "capabilities": {},
        });
        assert_eq!(info.to_wire(), expected);
        let resource = json!({"resource": "https://api.example", "required": false});
        let more = AgentInfo {
            protected_resources: vec![resource.clone()],
            customizations: vec![json!({"type": "mcpServer"})],
            ..info
        };
        let wire = more.to_wire();
        assert_eq!(wire["protectedResources"], json!([resource]));
        assert_eq!(wire["customizations"], json!([{"type": "mcpServer"}]));
    }
}
