//! The chat that is being talked in: what it looks like, and everything that can be done to it.
//!
//! Promises: a message reaches the agent or is told to be refused; said while the agent works, it waits in the queue. What
//! this client put into the draft it takes out again when it sends (H-236).
//! Must not know: terminals.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use client::{ClientError, Live};
use serde_json::{Value, json};
use uuid::Uuid;
use wire::rpc::code;
use wire::state::{ChatState, Outcome, SessionState};
use wire::{Action, ChannelUri, Object, Timestamp};

use super::complete;
use super::transcript::HISTORY_MAX;
use crate::terminal::{clean, clean_line};
use crate::words::now;

/// How long a new session may take to show its chat.
const CHAT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is looked for.
const CHAT_POLL: Duration = Duration::from_millis(20);

/// How long somebody waits for a word to be completed.
const COMPLETIONS_TIMEOUT: Duration = Duration::from_secs(3);

/// Which chat to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A new session, with the named agent or the first one there is.
    New { agent: Option<String> },
    /// The session that was used last; a new one if there is none.
    Latest,
    /// This session, or this chat.
    Channel(ChannelUri),
}

/// A chat that is open.
pub(crate) struct Room {
    live: Live,
    session: ChannelUri,
    chat: ChannelUri,
    draft: Draft,
    /// Messages that were queued from here.
    queued: Vec<String>,
    /// Something worth knowing about how it was opened.
    remark: Option<String>,
    /// The model messages are for; the agent's default if absent.
    model: Option<String>,
}

/// Whose the draft of the chat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draft {
    Ours,
    NotOurs,
}

/// How a message went off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// It begins a turn.
    Started,
    /// It waits for the turn that is running.
    Queued,
}

/// What came of a wish to branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Branched {
    There(ChannelUri),
    /// It waits for the turn that is running.
    Later,
    /// The host could not; its turn says why.
    Not,
}

impl Room {
    pub(crate) async fn open(
        live: Live,
        wanted: &Wanted,
        directory: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let mut remark = None;
        let named = match wanted {
            Wanted::New { agent } => {
                new_session(&live, agent.as_deref(), directory, &mut remark).await?
            }
            Wanted::Channel(uri) => uri.clone(),
            Wanted::Latest => match list(&live).await?.first() {
                Some(latest) => ChannelUri::parse(latest["resource"].as_str().unwrap_or(""))?,
                None => new_session(&live, None, directory, &mut remark).await?,
            },
        };
        watch(&live, &named).await?;
        let (session, chat) = match live.chat(&named) {
            Some(_) => (session_of(&live, &named).await?, named),
            None => {
                let chat = default_chat(&live, &named).await?;
                watch(&live, &chat).await?;
                (named, chat)
            }
        };
        live.subscribe(&session).await?;
        let draft = match live.chat(&chat).is_some_and(|chat| chat.draft.is_some()) {
            true => Draft::Ours, // taken over: its text goes into our editor
            false => Draft::NotOurs,
        };
        Ok(Self {
            live,
            session,
            chat,
            draft,
            queued: Vec::new(),
            remark,
            model: None,
        })
    }

    pub(crate) fn with_model(self, model: Option<String>) -> Self {
        Self { model, ..self }
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    pub(crate) fn session(&self) -> &ChannelUri {
        &self.session
    }

    pub(crate) fn chat(&self) -> &ChannelUri {
        &self.chat
    }

    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// The chat as the host confirmed it.
    pub(crate) fn confirmed(&self) -> Option<Arc<ChatState>> {
        self.live
            .read(|replica| replica.confirmed_chat(self.chat.as_str()).cloned())
    }

    /// [`Self::confirmed`] and [`Self::ahead`] of one moment: between two looks a turn may end.
    pub(crate) fn confirmed_and_ahead(&self) -> (Option<Arc<ChatState>>, Option<Arc<ChatState>>) {
        let chat = self.chat.as_str();
        self.live.read(|replica| {
            let confirmed = replica.confirmed_chat(chat).cloned();
            (confirmed, replica.chat(chat).cloned())
        })
    }

    /// The chat with what was done here and is not confirmed yet.
    pub(crate) fn ahead(&self) -> Option<Arc<ChatState>> {
        self.live.chat(&self.chat)
    }

    pub(crate) fn session_state(&self) -> Option<Arc<SessionState>> {
        self.live.session(&self.session)
    }

    /// Dispatches an action on the chat.
    pub(crate) fn act(&self, action: Value) -> Result<i64, ClientError> {
        self.live.dispatch(&self.chat, action)
    }

    /// Sends a message, now or when the agent is done.
    pub(crate) fn say(&mut self, text: &str) -> Result<Said, ClientError> {
        self.say_with(text, Vec::new())
    }

    /// Sends a message with what was accepted while it was typed.
    pub(crate) fn say_with(
        &mut self,
        text: &str,
        attachments: Vec<Value>,
    ) -> Result<Said, ClientError> {
        let message = with(message(text, self.model.as_deref()), attachments);
        let busy = self.ahead().is_some_and(|chat| chat.active_turn.is_some());
        let said = if busy {
            self.queue(&message)?;
            Said::Queued
        } else {
            self.act(json!({
                "type": "chat/turnStarted",
                "turnId": format!("turn-{}", Uuid::now_v7()),
                "startedAt": now().to_rfc3339(),
                "message": message,
            }))?;
            Said::Started
        };
        self.clear_draft()?;
        Ok(said)
    }

    /// Tells the agent something while it works.
    pub(crate) fn steer(&mut self, text: &str, attachments: Vec<Value>) -> Result<(), ClientError> {
        self.act(json!({
            "type": "chat/pendingMessageSet",
            "kind": "steering",
            "id": format!("steering-{}", Uuid::now_v7()),
            "message": with(message(text, self.model.as_deref()), attachments),
        }))?;
        self.clear_draft()
    }

    fn queue(&mut self, message: &Value) -> Result<(), ClientError> {
        let id = format!("queued-{}", Uuid::now_v7());
        self.act(json!({
            "type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message,
        }))?;
        self.queued.push(id);
        Ok(())
    }

    /// A message that was refused because another client's turn came first waits for that instead. `false` if that was
    /// not the reason.
    pub(crate) fn queue_refused(&mut self, action: &Action) -> Result<bool, ClientError> {
        let busy = self
            .confirmed()
            .is_some_and(|chat| chat.active_turn.is_some());
        match action.get("message") {
            Some(message) if busy && action.name() == "chat/turnStarted" => {
                self.queue(message)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Sets a queue in motion that is held since a turn was cancelled or failed (G-08).
    pub(crate) fn release_queue(&self) -> Result<bool, ClientError> {
        let chat = self.ahead();
        let Some(head) = chat.as_ref().and_then(|chat| chat.queued_messages.first()) else {
            return Ok(false);
        };
        self.act(json!({
            "type": "chat/pendingMessageSet", "kind": "queued", "id": head.id, "message": head.message,
        }))?;
        Ok(true)
    }

    /// The newest message in the queue that came from here: its id and text.
    fn queued_here(&self) -> Option<(String, String)> {
        let chat = self.ahead()?;
        let mut messages = chat.queued_messages.iter().rev();
        let ours = messages.find(|message| self.queued.contains(&message.id))?;
        let text = clean(ours.message["text"].as_str().unwrap_or(""));
        Some((ours.id.clone(), text))
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.queued_here().is_some()
    }

    /// Takes the newest message from here out of the queue; its text.
    pub(crate) fn unqueue(&mut self) -> Result<Option<String>, ClientError> {
        let Some((id, text)) = self.queued_here() else {
            return Ok(None);
        };
        self.act(json!({"type": "chat/pendingMessageRemoved", "kind": "queued", "id": id}))?;
        Ok(Some(text))
    }

    /// Cancels the turn that is running; `false` if none is.
    pub(crate) fn cancel(&self) -> Result<bool, ClientError> {
        let chat = self.ahead();
        let Some(turn) = chat.as_ref().and_then(|chat| chat.active_turn.as_ref()) else {
            return Ok(false);
        };
        let started = Timestamp::parse_rfc3339(&turn.started_at);
        let duration = started.map_or(0, |started| now().ms_since(started));
        self.act(json!({"type": "chat/turnCancelled", "turnId": turn.id, "duration": duration}))?;
        Ok(true)
    }

    /// Takes up the last turn again, if it failed in a way that allows it.
    pub(crate) fn resume(&self) -> anyhow::Result<()> {
        let chat = self.ahead().context("the chat is gone")?;
        if chat.active_turn.is_some() {
            bail!("the agent is working: there is nothing to resume");
        }
        let last = chat.turns.last().context("there is no turn to resume")?;
        if last.outcome != (Outcome::Error { resumable: true }) {
            bail!("the last turn did not fail in a way that can be resumed");
        }
        self.act(json!({"type": "chat/turnResume", "turnId": last.id}))?;
        Ok(())
    }

    /// Has the host branch this chat, and waits for what comes of it.
    pub(crate) async fn branch(&mut self, words: &str) -> anyhow::Result<Branched> {
        let before = self.branches();
        let text = format!("/branch {words}");
        if self.say(text.trim_end())? == Said::Queued {
            return Ok(Branched::Later);
        }
        let turn = self
            .ahead()
            .and_then(|chat| Some(chat.active_turn.as_ref()?.id.clone()));
        let looking = async {
            loop {
                let mut now = self.branches().into_iter();
                if let Some(branch) = now.find(|chat| !before.contains(chat)) {
                    return Ok(Branched::There(ChannelUri::parse(&branch)?));
                }
                let chat = self.ahead().context("the chat is gone")?;
                let goes_on = chat.active_turn.as_ref().map(|turn| &turn.id) == turn.as_ref();
                if !goes_on {
                    return Ok(Branched::Not);
                }
                tokio::time::sleep(CHAT_POLL).await;
            }
        };
        let found = tokio::time::timeout(CHAT_TIMEOUT, looking).await;
        found.map_err(|_| anyhow!("the host shows no branch of this chat"))?
    }

    /// The chats of the session that were forked from this one.
    fn branches(&self) -> Vec<String> {
        let session = self.session_state();
        let chats = session
            .as_ref()
            .map_or(&[][..], |session| session.chats.as_slice());
        let ours = chats.iter().filter(|chat| {
            let origin = chat.extra.get("origin");
            origin.is_some_and(|origin| {
                origin["kind"] == "fork" && origin["chat"] == self.chat.as_str()
            })
        });
        ours.map(|chat| chat.resource.clone()).collect()
    }

    /// What the host proposes for the word at the cursor.
    pub(crate) async fn completions(&self, text: &str, cursor: usize) -> anyhow::Result<Value> {
        let params = complete::params(self.chat.as_str(), text, cursor);
        let asked = self.live.request("completions", params);
        let answer = tokio::time::timeout(COMPLETIONS_TIMEOUT, asked).await;
        Ok(answer.context("the host proposes nothing in time")??)
    }

    /// The commands that the host knows here, and what they do.
    pub(crate) async fn commands(&self) -> Vec<(String, String)> {
        let answer = self.completions("/", 1).await;
        answer
            .map(|answer| complete::commands(&answer))
            .unwrap_or_default()
    }

    /// Stops watching what the next room does not watch.
    pub(crate) async fn leave_for(self, next: &Self) {
        for channel in [&self.chat, &self.session] {
            if ![&next.chat, &next.session].contains(&channel) {
                self.live.unsubscribe(channel).await;
            }
        }
    }

    /// The messages of the history, the oldest first.
    pub(crate) fn messages(&self) -> Vec<String> {
        let chat = self.confirmed();
        let turns = chat.as_ref().map_or(&[][..], |chat| chat.turns.as_slice());
        let texts = turns.iter().filter_map(|turn| {
            let message = &turn.value()["message"];
            message["text"].as_str().map(clean)
        });
        texts.collect()
    }

    /// Another chat of the session in which somebody is asked something: a worker's, for example.
    pub(crate) fn asked_elsewhere(&self) -> Option<String> {
        let session = self.session_state()?;
        let mut chats = session.input_needed.iter().filter(|needed| {
            // A tool that a client runs is no question to people.
            needed["kind"] != "toolClientExecution"
        });
        let elsewhere = chats.find_map(|needed| {
            let chat = needed["chat"].as_str()?;
            (chat != self.chat.as_str()).then_some(chat)
        });
        elsewhere.map(clean_line)
    }

    /// The text that was left to be sent later.
    pub(crate) fn draft_text(&self) -> Option<String> {
        let chat = self.ahead()?;
        let text = chat.draft.as_ref()?["text"].as_str()?;
        Some(clean(text)).filter(|text| !text.is_empty())
    }

    /// Leaves what is half typed for later, here or elsewhere.
    pub(crate) fn keep_draft(&mut self, text: &str) -> Result<(), ClientError> {
        if text.is_empty() {
            return self.clear_draft();
        }
        self.draft = Draft::Ours;
        self.act(
            json!({"type": "chat/draftChanged", "draft": message(text, self.model.as_deref())}),
        )
        .map(drop)
    }

    fn clear_draft(&mut self) -> Result<(), ClientError> {
        let there = self.ahead().is_some_and(|chat| chat.draft.is_some());
        if self.draft == Draft::Ours && there {
            self.act(json!({"type": "chat/draftChanged"}))?;
        }
        self.draft = Draft::NotOurs;
        Ok(())
    }
}

/// Watches a channel; of a chat's history no more is sent than is shown.
async fn watch(live: &Live, channel: &ChannelUri) -> Result<(), ClientError> {
    let mut view = Object::new();
    view.insert("view".to_owned(), json!({"turns": HISTORY_MAX}));
    live.subscribe_with(channel, view).await
}

fn message(text: &str, model: Option<&str>) -> Value {
    let mut message = json!({"text": text, "origin": {"kind": "user"}});
    if let Some(model) = model {
        message["model"] = json!({"id": model});
    }
    message
}

fn with(mut message: Value, attachments: Vec<Value>) -> Value {
    if !attachments.is_empty() {
        message["attachments"] = json!(attachments);
    }
    message
}

/// The sessions of the host, the newest first: the first page, which is more than a person reads.
pub(crate) async fn list(live: &Live) -> Result<Vec<Value>, ClientError> {
    let params = json!({"channel": ChannelUri::root().as_str()});
    let mut page = live.request("listSessions", params).await?;
    match page.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(ClientError::Unreadable(
            "a session list without `items`".to_owned(),
        )),
    }
}

async fn new_session(
    live: &Live,
    agent: Option<&str>,
    directory: Option<&Path>,
    remark: &mut Option<String>,
) -> anyhow::Result<ChannelUri> {
    let root = live.root();
    let agents = root.as_ref().map_or(&[][..], |root| root.agents.as_slice());
    let offered = agents.iter().filter_map(|agent| agent["provider"].as_str());
    let offered: Vec<&str> = offered.collect();
    let provider = match agent {
        Some(agent) if !offered.contains(&agent) => bail!(
            "the host offers no agent `{}`; it has: {}",
            clean_line(agent),
            clean_line(&offered.join(", "))
        ),
        Some(agent) => agent,
        None => offered.first().copied().context(
            "the host offers no agent; start it without --no-scripted to get the scripted one",
        )?,
    };
    let session =
        ChannelUri::parse(&format!("{provider}:/{}", Uuid::now_v7())) // G-27
            .with_context(|| format!("`{}` cannot name a session", clean_line(provider)))?;
    let mut params = json!({"channel": session.as_str(), "provider": provider});
    if let Some(uri) = directory.and_then(file_uri) {
        params["workingDirectories"] = json!([uri]);
    }
    let created = live.request("createSession", params.clone()).await;
    match created {
        Err(error) if error.code() == Some(code::PERMISSION_DENIED) => {
            *remark = Some(format!(
                "the agent works in the host's default directory, not here: {error}"
            ));
            params["workingDirectories"] = Value::Null;
            let params = without_null(params);
            live.request("createSession", params).await?;
        }
        created => drop(created?),
    }
    Ok(session)
}

fn without_null(mut params: Value) -> Value {
    if let Value::Object(params) = &mut params {
        params.retain(|_, value| !value.is_null());
    }
    params
}

/// A path as a `file:` URI; none if it cannot be one.
fn file_uri(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    path.is_absolute().then(|| wire::file_uri::uri_of(text))
}

/// The session that a chat belongs to: no state of a chat says it, the catalogues do.
async fn session_of(live: &Live, chat: &ChannelUri) -> anyhow::Result<ChannelUri> {
    for summary in list(live).await? {
        let chats = summary["chats"].as_array();
        let mut chats = chats.into_iter().flatten();
        if chats.any(|entry| entry["resource"] == chat.as_str())
            || summary["defaultChat"] == chat.as_str()
        {
            return Ok(ChannelUri::parse(
                summary["resource"].as_str().unwrap_or(""),
            )?);
        }
    }
    Err(anyhow!("no session of the host has the chat {chat}"))
}

/// The chat that messages go to; waits for one while the session is being made.
async fn default_chat(live: &Live, session: &ChannelUri) -> anyhow::Result<ChannelUri> {
    let looking = async {
        loop {
            let state = live
                .session(session)
                .with_context(|| format!("{session} is neither a session nor a chat"))?;
            if state.lifecycle == "failed" {
                let why = state.extra.get("creationError");
                let why = why.and_then(|error| error["message"].as_str());
                bail!(
                    "the session could not be started: {}",
                    clean(why.unwrap_or("no reason was given"))
                );
            }
            let first = || state.chats.first().map(|chat| &chat.resource);
            if let Some(chat) = state.default_chat.as_ref().or_else(first) {
                return Ok(ChannelUri::parse(chat)?);
            }
            tokio::time::sleep(CHAT_POLL).await;
        }
    };
    let found = tokio::time::timeout(CHAT_TIMEOUT, looking).await;
    found.map_err(|_| anyhow!("the session {session} shows no chat to talk in"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_by_a_uri() {
        let uri = |path: &str| file_uri(Path::new(path));
        assert_eq!(uri("/a b/ü").as_deref(), Some("file:///a%20b/%C3%BC"));
        assert_eq!(uri("relative"), None);
    }
}
