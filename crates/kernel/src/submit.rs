//! Submission: what a user's message means is found out before it is recorded, and recorded with it (C-080, house 2).
//!
//! A plain text means itself. Everything else is composed by the host first, which knows files and catalogues; then the
//! message is handled again and its rows are written in the transaction of the action that brings it.

use bytes::Bytes;
use compositor::Part;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::{ChannelUri, Object, rpc};

use crate::Kernel;
use crate::authority::Refusal;
use crate::errand::Errand;
use crate::io::Compose;
use crate::load::Memo;
use crate::prepare::Prepared;
use crate::record::{MessageRecord, PartRecord, Record};

/// What is told of one message at most; the rest is in its rows.
const TOLD_MAX: usize = 16;

/// A command that the host carries out itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAction {
    /// With its slash.
    pub name: String,
    /// What was said with it, to the letter and in words.
    pub raw: String,
    pub argv: Vec<String>,
}

/// A message as it was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// As it is recorded: bodies without room for them are references (G-32), all else is as it was sent.
    pub message: Object,
    pub metadata: Object,
    pub parts: Vec<Part>,
    pub actions: Vec<HostAction>,
    /// Whether anything but host actions is in it.
    pub reaches_model: bool,
    /// What the user should know of it.
    pub diagnostics: Vec<String>,
    /// Bytes that stay embedded.
    pub inline_bytes: usize,
    /// The commands there are, if that was asked.
    pub help: Option<String>,
}

impl Submission {
    /// A text that means itself.
    pub fn plain(message: Object) -> Self {
        let compositor::Composed {
            parts, metadata, ..
        } = compositor::compose_plain(&message);
        Self {
            message,
            metadata,
            parts,
            actions: Vec::new(),
            reaches_model: true,
            diagnostics: Vec::new(),
            inline_bytes: 0,
            help: None,
        }
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.actions.iter().cloned().map(Step::Do).collect()
    }
}

/// What is remembered of a message until its turn works on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Submitted {
    pub id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    pub reaches_model: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The agent is to remember less; what was said with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact: Option<String>,
}

/// A host action on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Do(HostAction),
    /// Done before the turn began: what is said of it.
    Done(String),
    Failed(String),
}

impl Kernel {
    /// What a message means, once the host has found out. `sent` is the message without the bodies that were taken out
    /// of it early; `at` is where it stood.
    pub(crate) fn understand(
        &mut self,
        session: &ChannelUri,
        working_directories: &[String],
        sent: &Object,
        at: &str,
        memo: &Memo,
    ) -> Result<Prepared<Submission>, Refusal> {
        if compositor::is_plain(sent) {
            return Ok(Prepared::Ready(Submission::plain(sent.clone())));
        }
        let embedded = self.session(session).map_or(0, |session| session.embedded);
        let left_bytes = self.limits.inline_session_bytes.saturating_sub(embedded);
        match memo.composed() {
            Some(Err(failed)) => return Err(Refusal(failed.to_string())),
            // Others may have used the room meanwhile: then more has to go.
            Some(Ok(submission)) if submission.inline_bytes <= left_bytes => {
                return Ok(Prepared::Ready((**submission).clone()));
            }
            Some(Ok(_)) | None => {}
        }
        let attachments = sent.get("attachments").and_then(Value::as_array);
        let lifted = (0..attachments.map_or(0, Vec::len)).filter_map(|index| {
            let data = memo.lifted.find(&format!("{at}/attachments/{index}"))?;
            Some((index, std::sync::Arc::clone(data)))
        });
        Ok(Prepared::Errand(Errand::Compose(Box::new(Compose {
            message: sent.clone(),
            lifted: lifted.collect(),
            working_directories: working_directories.to_vec(),
            each_bytes: self.limits.inline_body_bytes,
            left_bytes,
        }))))
    }

    /// Where the files lie that a message of a chat may name.
    pub(crate) fn directories_of(&self, chat: &ChannelUri) -> Vec<String> {
        let Some(chat) = self.chat(chat) else {
            return Vec::new();
        };
        let own = chat.state.working_directories.clone();
        let session = self.session_state(&chat.session);
        own.or_else(|| session?.working_directories.clone())
            .unwrap_or_default()
    }

    /// Writes the rows of a message whose action was just recorded.
    pub(crate) fn record_submission(
        &mut self,
        uri: &ChannelUri,
        submission: Submission,
        turn_id: Option<String>,
    ) -> Submitted {
        let seq = self.seq.0;
        let id = format!("msg_{seq:026}");
        let parts = submission.parts.iter().enumerate();
        let parts = parts.map(|(index, part)| PartRecord {
            id: format!("prt_{seq:020}{index:06}"),
            kind: part.kind().to_owned(),
            json: Bytes::from(rpc::to_json(part.object())),
        });
        let mut metadata = submission.metadata;
        self.name_model(uri, &submission.message, &mut metadata);
        if let (Some(chat), Some(channel)) = (self.chat(uri), self.channels.get(uri)) {
            let record = MessageRecord {
                id: id.clone(),
                session: chat.session_id,
                chat: channel.id,
                turn_id,
                metadata: Bytes::from(rpc::to_json(&metadata)),
                parts: parts.collect(),
                at: self.now,
            };
            self.out.records.push(Record::Message(record));
        }
        let mut told = submission.diagnostics;
        if told.len() > TOLD_MAX {
            let more = told.len() - TOLD_MAX;
            told.truncate(TOLD_MAX);
            told.push(format!("and {more} more"));
        }
        Submitted {
            id,
            steps: submission.actions.into_iter().map(Step::Do).collect(),
            reaches_model: submission.reaches_model,
            told,
            help: submission.help,
            compact: None,
        }
    }

    /// The model that is really used, as inspectors expect it (compositor 3.1).
    fn name_model(&self, uri: &ChannelUri, message: &Object, metadata: &mut Object) {
        let session = self.chat(uri).map(|chat| &chat.session);
        let state = session.and_then(|session| self.session_state(session));
        let (Some(state), Some(model)) = (state, message.get("model")) else {
            return;
        };
        let mut named = json!({"provider_id": state.provider, "model_id": model["id"]});
        if let Some(config) = model.get("config") {
            named["config"] = config.clone();
        }
        metadata.insert("model".to_owned(), named);
    }

    /// A message of the host's or an agent's own making, which means itself.
    pub(crate) fn record_plain(
        &mut self,
        uri: &ChannelUri,
        message: &Value,
        turn_id: &str,
    ) -> Submitted {
        let message = message.as_object().cloned().unwrap_or_default();
        self.record_submission(uri, Submission::plain(message), Some(turn_id.to_owned()))
    }
}
