//! Turns: one active per chat; an agent's events become actions; every turn ends exactly once (H-174).

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, AgentReply, TextKind};
use serde_json::{Value, json};
use wire::published::state::ContentRef;
use wire::reduce::Reduced;
use wire::{Action, ChannelUri, Timestamp};

use crate::Kernel;
use crate::channel::chat::Run;
use crate::channel::session::TITLE_BYTES_MAX;
use crate::io::{Effect, HistoryAt, RunId, TurnRun};
use crate::pending;
use crate::record::Record;
use crate::speak::Sender;
use crate::submit::{Submission, Submitted};

/// What a turn says that the host's end interrupted.
pub(crate) const STOPPED: &str = "the host was stopped; resume the turn to go on";

impl Kernel {
    /// A turn that may start is recorded; its agent starts when the session is ready (G-09).
    pub(crate) fn start_turn(
        &mut self,
        uri: &ChannelUri,
        action: Action,
        submission: Option<Submission>,
        sender: &Sender,
    ) {
        let Some(submission) = submission else {
            return; // every message that was permitted was understood
        };
        let steps = self.rewind_first(uri, submission.steps());
        if self.act(uri, action, Some(sender)) == Reduced::Unchanged {
            return;
        }
        let (turn_id, seq) = (self.active_turn_id(uri).unwrap_or_default(), self.seq.0);
        if let Some(chat) = self.chat_mut(uri) {
            chat.foreseen.retain(|id| pending::is_foreseen(id, seq));
            if pending::is_foreseen(&turn_id, seq) {
                chat.foreseen.insert(turn_id);
            }
        }
        let turn_id = self.active_turn_id(uri);
        let mut submitted = self.record_submission(uri, submission, turn_id);
        submitted.steps = steps;
        self.turn_started(uri, Some(sender.origin.client_id.clone()), submitted);
    }

    /// What follows when a turn began, whoever began it.
    pub(crate) fn turn_started(
        &mut self,
        uri: &ChannelUri,
        author: Option<String>,
        submitted: Submitted,
    ) {
        let now = self.now;
        let Some(chat) = self.chat_mut(uri) else {
            return;
        };
        chat.accepted = Some(now);
        chat.author = author;
        chat.begun = Some(submitted);
        let session = chat.session.clone();
        if let Some(channel) = self.session_mut(&session) {
            channel.had_turn = true;
        }
        self.dirty.insert(session.clone());
        self.undo.touch(&session);
        self.waiting_followed(uri);
        self.catalogue_followed(uri);
        self.mark_unread(&session);
        self.touch_modified(&session);
        self.publish(&session);
        self.start_run(uri, None);
    }

    pub(crate) fn active_turn_id(&self, uri: &ChannelUri) -> Option<String> {
        let turn = self.chat_state(uri)?.active_turn.as_ref()?;
        Some(turn.id.clone())
    }

    pub(crate) fn resume_turn(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        let turn_id = action.text("turnId").unwrap_or("").to_owned();
        if self.act(uri, action, Some(sender)) == Reduced::Unchanged {
            return;
        }
        let (seq, id) = (self.seq, self.channels.get(uri).map(|channel| channel.id));
        let Some(chat) = self.chat_mut(uri) else {
            return;
        };
        chat.author = Some(sender.origin.client_id.clone());
        chat.accepted = None; // its duration counts from its original `startedAt` (G-04)
        let session = chat.session.clone();
        let checkpoint = chat
            .checkpoint
            .clone()
            .filter(|(turn, _)| *turn == turn_id)
            .map(|(_, data)| data);
        chat.hid_at = seq;
        if let (Some(n), Some(chat)) = (chat.ns.pop(), id) {
            self.out.records.push(Record::HideTurns {
                chat,
                from_n: n,
                at: seq,
            });
        }
        self.close_questions(uri);
        self.catalogue_followed(uri);
        self.needs_followed(uri);
        self.mark_unread(&session);
        self.touch_modified(&session);
        self.publish(&session);
        self.start_run(uri, Some(checkpoint));
    }

    /// Starts the agent on the active turn, unless it runs already or its session is not ready yet.
    pub(crate) fn start_run(&mut self, uri: &ChannelUri, resume: Option<Option<bytes::Bytes>>) {
        let Some(chat) = self.chat(uri) else { return };
        let Some(session) = self.session_state(&chat.session) else {
            return;
        };
        let (Some(_), Some(id)) = (
            &chat.state.active_turn,
            self.channels.get(uri).map(|channel| channel.id),
        ) else {
            return;
        };
        let resumes = resume.is_some();
        if chat.run.is_some() || session.lifecycle != "ready" {
            return;
        }
        if self.stopping {
            return self.end_without_agent(uri, "hostStopped", STOPPED);
        }
        let Some((compact, reaches_model)) = self.begin_work(uri) else {
            return; // the host has work to do first, or had all there was
        };
        let (Some(chat), Some(session)) = (
            self.chat(uri),
            self.chat(uri)
                .and_then(|chat| self.session_state(&chat.session)),
        ) else {
            return;
        };
        let Some(turn) = &chat.state.active_turn else {
            return;
        };
        let run = RunId(self.next_run + 1);
        let effect = TurnRun {
            run,
            provider: session.provider.clone(),
            session: chat.session.clone(),
            chat: uri.clone(),
            message: turn.message.clone(),
            config: self.settings_of(uri),
            // A chat works in its own directories, which may be none (H-146).
            working_directories: chat
                .state
                .working_directories
                .clone()
                .or_else(|| session.working_directories.clone())
                .unwrap_or_default(),
            resume,
            brief: chat.brief.clone(),
            history: HistoryAt {
                chat: id,
                before_n: chat.next_n,
                context_n: chat.context_n,
                compacted: chat.compacted.clone(),
            },
            said: match resumes {
                true => turn
                    .parts
                    .iter()
                    .map(|part| Value::Object(part.0.clone()))
                    .collect(),
                false => Vec::new(),
            },
            untitled: session.title == crate::calls::NEW_TITLE,
            notes: self
                .session(&chat.session)
                .and_then(|session| session.notes.clone()),
            turn_id: turn.id.clone(),
            compact,
            reaches_model,
        };
        self.next_run += 1;
        self.out.effects.push(Effect::RunTurn(Box::new(effect)));
        self.runs.insert(run, uri.clone());
        if let Some(chat) = self.chat_mut(uri) {
            chat.run = Some(Run {
                id: run,
                parts: BTreeMap::new(),
                calls: BTreeMap::new(),
                asks: BTreeMap::new(),
            });
        }
        self.undo.touch(uri);
    }

    /// The configuration values of a chat's session.
    fn settings_of(&self, uri: &ChannelUri) -> wire::Object {
        let session = self
            .chat(uri)
            .and_then(|chat| self.session_state(&chat.session));
        let config = session.and_then(|session| session.config.as_ref());
        config
            .map(|config| config.values.clone())
            .unwrap_or_default()
    }

    /// Whether a chat's turn has no agent because its session is still being created.
    pub(crate) fn turn_waits_for_session(&self, uri: &ChannelUri) -> bool {
        let session = self
            .chat(uri)
            .and_then(|chat| self.session_state(&chat.session));
        session.is_some_and(|session| session.lifecycle == "creating")
    }

    pub(crate) fn cancel_turn(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        if self.act(uri, action, Some(sender)) == Reduced::Changed {
            self.wait_for_ready(uri, false);
            self.stop_run(uri);
            self.turn_ended(uri);
        }
    }

    /// What an agent says. A run that was stopped is not heard any more: late events change nothing.
    pub(crate) fn agent_says(&mut self, run: RunId, event: AgentEvent) {
        let Some(uri) = self.runs.get(&run).cloned() else {
            return;
        };
        let Some(turn_id) = self
            .chat_state(&uri)
            .and_then(|state| state.active_turn.as_ref())
            .map(|t| t.id.clone())
        else {
            return;
        };
        match event {
            AgentEvent::PartOpened { part, kind } => self.open_part(&uri, &turn_id, part, kind),
            AgentEvent::Text { part, text } => {
                let Some((id, kind)) = self
                    .chat(&uri)
                    .and_then(|chat| chat.run.as_ref()?.parts.get(&part))
                else {
                    return;
                };
                let action = match kind {
                    TextKind::Markdown => Action::delta(&turn_id, id, text),
                    TextKind::Reasoning => Action::reasoning(&turn_id, id, text),
                };
                self.act(&uri, action, None);
            }
            AgentEvent::Notice { text } => self.notice(&uri, &turn_id, &text),
            AgentEvent::Usage(usage) => {
                let usage = Action::host("chat/usage", json!({"turnId": turn_id, "usage": usage}));
                // What no client could read is not sent, and not kept a secret either (H-078).
                match Action::decode(Value::Object(usage.body)) {
                    Ok(usage) => {
                        self.act(&uri, usage, None);
                    }
                    Err(error) => self.notice(
                        &uri,
                        &turn_id,
                        &format!("the agent's usage report: {error}"),
                    ),
                }
            }
            AgentEvent::Title(title) => self.agent_titled(&uri, &title),
            AgentEvent::Activity(activity) => self.agent_is_at(&uri, activity),
            AgentEvent::Checkpoint(data) => self.keep_checkpoint(&uri, turn_id, data),
            AgentEvent::Notes(notes) => self.keep_notes(&uri, notes),
            AgentEvent::ContentRef(content) => self.content_ref(&uri, &turn_id, &content),
            AgentEvent::InputRequested { ask, request } => self.ask_user(&uri, ask, request),
            AgentEvent::SteerPoint { steer } => self.take_steering(&uri, run, steer),
            AgentEvent::SettingsRequested { ask } => {
                let values = self.settings_of(&uri);
                let reply = AgentReply::Settings { ask, values };
                self.out.effects.push(Effect::Reply { run, reply });
            }
            AgentEvent::Render { render, sections } => self.render(&uri, run, render, sections),
            AgentEvent::Spawned { call, worker } => self.spawn(run, call, *worker),
            AgentEvent::ToolStarted { .. }
            | AgentEvent::ToolInput { .. }
            | AgentEvent::ToolReady { .. }
            | AgentEvent::ToolContent { .. }
            | AgentEvent::ToolCompleted { .. }
            | AgentEvent::ClientTool { .. } => self.tool_event(&uri, &turn_id, run, event),
            AgentEvent::Compacted {
                keep_turns,
                summary,
            } => self.compact(&uri, keep_turns, summary),
            AgentEvent::Completed => {
                self.end_turn(&uri, "chat/turnComplete", json!({"turnId": turn_id}));
                self.start_queued(&uri); // a natural end: the next one is due (G-08)
            }
            AgentEvent::Failed(failure) => self.end_turn_in_error(&uri, failure),
        }
    }

    fn content_ref(&mut self, uri: &ChannelUri, turn_id: &str, content: &ContentRef) {
        let mut part = json!(content);
        part["kind"] = json!("contentRef");
        let fields = json!({"turnId": turn_id, "part": part});
        self.agent_acts(uri, "chat/responsePart", fields);
    }

    pub(crate) fn notice(&mut self, uri: &ChannelUri, turn_id: &str, text: &str) {
        let part = json!({"kind": "systemNotification", "content": text});
        self.act(
            uri,
            Action::host(
                "chat/responsePart",
                json!({"turnId": turn_id, "part": part}),
            ),
            None,
        );
    }

    fn open_part(&mut self, uri: &ChannelUri, turn_id: &str, part: u64, kind: TextKind) {
        let id = format!("p{}", self.seq.0 + 1); // from the seq that creates it (G-26)
        let name = match kind {
            TextKind::Markdown => "markdown",
            TextKind::Reasoning => "reasoning",
        };
        let body = json!({"kind": name, "id": id, "content": ""});
        self.act(
            uri,
            Action::host(
                "chat/responsePart",
                json!({"turnId": turn_id, "part": body}),
            ),
            None,
        );
        if let Some(run) = self.chat_mut(uri).and_then(|chat| chat.run.as_mut()) {
            run.parts.insert(part, (id, kind));
        }
    }

    fn agent_titled(&mut self, uri: &ChannelUri, title: &str) {
        let Some(session) = self.chat(uri).map(|chat| chat.session.clone()) else {
            return;
        };
        let end = title.floor_char_boundary(TITLE_BYTES_MAX); // it travels in every summary
        let fields = json!({"title": &title[..end]});
        let changed = self.act(&session, Action::host("session/titleChanged", fields), None);
        if changed == Reduced::Changed {
            self.title_followed(&session);
            self.publish(&session);
        }
    }

    /// The chat's activity, mirrored in its session's (G-05).
    fn agent_is_at(&mut self, uri: &ChannelUri, activity: Option<String>) {
        let Some(session) = self.chat(uri).map(|chat| chat.session.clone()) else {
            return;
        };
        let fields = json!({"activity": activity});
        if self.act(
            uri,
            Action::host("chat/activityChanged", fields.clone()),
            None,
        ) == Reduced::Changed
        {
            self.catalogue_followed(uri);
            self.activity_followed(&session, fields["activity"].as_str());
            self.publish(&session);
        }
    }

    /// The session says what one of its chats is at; when that one falls silent, what another is at (G-05, H-123).
    pub(crate) fn activity_followed(&mut self, session: &ChannelUri, activity: Option<&str>) {
        let Some(state) = self.session_state(session) else {
            return;
        };
        let another = state.chats.iter().find_map(|chat| chat.activity.clone());
        let activity = activity.map(str::to_owned).or(another);
        let fields = json!({"activity": activity});
        self.act(
            session,
            Action::host("session/activityChanged", fields),
            None,
        );
    }

    fn keep_checkpoint(&mut self, uri: &ChannelUri, turn_id: String, data: bytes::Bytes) {
        if data.len() > self.limits.checkpoint_bytes_max {
            let message = format!(
                "the agent's checkpoint exceeds {} bytes",
                self.limits.checkpoint_bytes_max
            );
            let failure = AgentError {
                error_type: "checkpointTooLarge".to_owned(),
                message,
                resumable: false,
            };
            self.stop_run(uri);
            return self.end_turn_in_error(uri, failure);
        }
        let Some(id) = self.channels.get(uri).map(|channel| channel.id) else {
            return;
        };
        self.out.records.push(Record::Checkpoint {
            chat: id,
            turn_id: turn_id.clone(),
            data: Some(data.clone()),
        });
        if let Some(chat) = self.chat_mut(uri) {
            chat.checkpoint = Some((turn_id, data));
        }
        self.undo.touch(uri);
    }

    /// What an agent wants to know again in later turns of the session.
    fn keep_notes(&mut self, uri: &ChannelUri, notes: bytes::Bytes) {
        if notes.len() > self.limits.checkpoint_bytes_max {
            let most = self.limits.checkpoint_bytes_max;
            let text = format!("the agent's notes exceed {most} bytes and were not kept");
            if let Some(turn_id) = self.active_turn_id(uri) {
                self.notice(uri, &turn_id, &text);
            }
            return;
        }
        let Some(session) = self.chat(uri).map(|chat| chat.session.clone()) else {
            return;
        };
        if let Some(channel) = self.session_mut(&session) {
            channel.notes = Some(notes);
        }
        self.undo.touch(&session);
        self.dirty.insert(session);
    }

    /// Ends the active turn, whose agent is gone or going, in an error that can be resumed.
    pub(crate) fn end_without_agent(&mut self, uri: &ChannelUri, error_type: &str, message: &str) {
        self.stop_run(uri);
        let failure = AgentError {
            error_type: error_type.to_owned(),
            message: message.to_owned(),
            resumable: true,
        };
        self.end_turn_in_error(uri, failure);
    }

    pub(crate) fn end_turn_in_error(&mut self, uri: &ChannelUri, failure: AgentError) {
        let Some(turn) = self
            .chat_state(uri)
            .and_then(|state| state.active_turn.as_ref())
        else {
            return;
        };
        let turn_id = turn.id.clone();
        let error = json!({"errorType": failure.error_type, "message": failure.message});
        let mut part = json!({"kind": "error", "error": error});
        if failure.resumable {
            part["resumable"] = Value::Bool(true);
        }
        self.end_turn(uri, "chat/error", json!({"turnId": turn_id, "part": part}));
    }

    /// Ends the active turn. An end that the calendar has no room for takes no time: a turn must end (H-174).
    pub(crate) fn end_turn(&mut self, uri: &ChannelUri, name: &str, mut fields: Value) {
        for duration in [self.turn_duration(uri), 0] {
            fields["duration"] = json!(duration);
            if self.act(uri, Action::host(name, fields.clone()), None) == Reduced::Changed {
                break;
            }
        }
        self.turn_ended(uri);
    }

    /// Milliseconds the active turn took: by the host's clock, or since its original start if it was resumed.
    fn turn_duration(&self, uri: &ChannelUri) -> i64 {
        let Some(chat) = self.chat(uri) else { return 0 };
        let started = chat
            .state
            .active_turn
            .as_ref()
            .and_then(|turn| Timestamp::parse_rfc3339(&turn.started_at));
        chat.accepted
            .or(started)
            .map_or(0, |since| self.now.ms_since(since))
    }

    /// The active turn became a completed one: it gets its row, and its session says so.
    fn turn_ended(&mut self, uri: &ChannelUri) {
        let Some(id) = self.channels.get(uri).map(|channel| channel.id) else {
            return;
        };
        let run = self.chat_mut(uri).and_then(|chat| chat.run.take());
        if let Some(run) = run {
            self.runs.remove(&run.id);
            self.end_workers(&run);
        }
        let Some(chat) = self.chat_mut(uri) else {
            return;
        };
        if chat.state.active_turn.is_some() || chat.state.turns.len() <= chat.ns.len() {
            return; // the turn did not end after all
        }
        let Some(turn) = chat.state.turns.last().map(Arc::clone) else {
            return;
        };
        let (n, session) = (chat.next_n, chat.session.clone());
        chat.next_n += 1;
        chat.ns.push(n);
        chat.accepted = None;
        // What was left to do is done if the turn is taken up again.
        if !matches!(
            turn.outcome,
            wire::state::Outcome::Error { resumable: true }
        ) {
            chat.begun = None;
        }
        let resumable = matches!(
            turn.outcome,
            wire::state::Outcome::Error { resumable: true }
        );
        let had_checkpoint = chat.checkpoint.is_some();
        let turn_id = turn.id.clone();
        if !resumable {
            chat.checkpoint.take_if(|(of, _)| *of == turn_id);
        }
        self.out.records.push(Record::Turn { chat: id, n, turn });
        if had_checkpoint && !resumable {
            self.out.records.push(Record::Checkpoint {
                chat: id,
                turn_id,
                data: None,
            });
        }
        self.catalogue_followed(uri);
        self.needs_followed(uri);
        self.touch_modified(&session);
        self.publish(&session);
        self.worker_ended(uri);
    }
}
