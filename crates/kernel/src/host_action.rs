//! Commands that the host carries out itself, before or instead of an agent's work on the turn (C-040, C-053, C-054).
//!
//! They are done in the order they stand in. What is taken back is taken back before the turn of the command begins, so
//! that the turn stays as the record of it; everything else is done once the session takes turns. A command that fails
//! ends the turn in an error, and no agent hears of it.

use agent_api::AgentError;
use serde_json::json;
use wire::{Action, ChannelUri};

use crate::Kernel;
use crate::calls::page_in_memory;
use crate::channel::session::TITLE_BYTES_MAX;
use crate::chats::{NewChat, Source};
use crate::chore::Chore;
use crate::io::Compacted;
use crate::submit::{HostAction, Step};

/// Turns that `/rewind` takes back if it says no number.
const REWIND_TURNS: usize = 1;

impl Kernel {
    /// Takes back what `/rewind` says, before the turn that says it begins.
    pub(crate) fn rewind_first(&mut self, uri: &ChannelUri, steps: Vec<Step>) -> Vec<Step> {
        let steps = steps.into_iter().map(|step| match step {
            Step::Do(action) if action.name == "/rewind" => match self.rewind(uri, &action) {
                Ok(words) => Step::Done(words),
                Err(why) => Step::Failed(why),
            },
            step => step,
        });
        steps.collect()
    }

    fn rewind(&mut self, uri: &ChannelUri, action: &HostAction) -> Result<String, String> {
        let wanted = match action.argv.first() {
            None => REWIND_TURNS,
            Some(word) => word
                .parse()
                .ok()
                .filter(|turns| *turns > 0)
                .ok_or("/rewind takes the number of turns to take back, at least 1")?,
        };
        let chat = self.chat(uri).ok_or("this chat is gone")?;
        let there = chat.state.turns.len();
        if there == 0 {
            return Err("there is nothing to take back yet".to_owned());
        }
        if wanted >= there && chat.older {
            let most = there - 1;
            return Err(format!("at most {most} turns can be taken back at once"));
        }
        let turns = wanted.min(there);
        let last = (there - turns).checked_sub(1);
        let kept = last.map(|index| {
            (
                chat.ns[index],
                chat.state.turns.as_slice()[index].id.clone(),
            )
        });
        let action = match &kept {
            Some((_, turn_id)) => Action::host("chat/truncated", json!({"turnId": turn_id})),
            None => Action::host("chat/truncated", json!({})),
        };
        let kept = kept.map(|(n, _)| {
            let mut page = page_in_memory(chat, n);
            let page_turns = self.limits.page_turns as usize;
            let over = page.turns.len().saturating_sub(page_turns);
            page.older |= over > 0;
            page.turns.drain(..over);
            (n, Some(page))
        });
        self.cut_back(uri, action, None, kept);
        Ok(match turns {
            1 => "One turn was taken back.".to_owned(),
            turns => format!("{turns} turns were taken back."),
        })
    }

    /// Does what the host has to do before an agent works on the turn. Nothing is returned if it goes on later, or if
    /// that was all; otherwise what the agent is to do: to remember less first, and whether there is more.
    pub(crate) fn begin_work(&mut self, uri: &ChannelUri) -> Option<(Option<String>, bool)> {
        let turn_id = self.active_turn_id(uri)?;
        let told = self
            .chat_mut(uri)
            .and_then(|chat| chat.begun.as_mut())
            .map(|begun| std::mem::take(&mut begun.told))
            .unwrap_or_default();
        if !told.is_empty() {
            self.notice(uri, &turn_id, &told.join("\n"));
            self.begun_changed(uri);
        }
        loop {
            let begun = self.chat_mut(uri).and_then(|chat| chat.begun.as_mut());
            let Some(begun) = begun else {
                return Some((None, true)); // from before messages had rows
            };
            if begun.steps.is_empty() {
                break;
            }
            let step = begun.steps.remove(0);
            self.begun_changed(uri);
            let done = match step {
                Step::Done(words) => Ok(words),
                Step::Failed(why) => Err(why),
                Step::Do(action) => match action.name.as_str() {
                    "/branch" => {
                        self.branch(uri, action.raw);
                        return None;
                    }
                    "/compact" => {
                        let begun = self.chat_mut(uri).and_then(|chat| chat.begun.as_mut());
                        if let Some(begun) = begun {
                            begun.compact = Some(action.raw);
                        }
                        continue;
                    }
                    "/archive" => self.archive(uri),
                    "/help" => self.help(uri),
                    name => Err(format!("this host does not know {name}")),
                },
            };
            match done {
                Ok(words) => self.notice(uri, &turn_id, &words),
                Err(why) => {
                    self.command_failed(uri, why);
                    return None;
                }
            }
        }
        // It stays until the turn is over: a turn that fails may be taken up again.
        let begun = self.chat(uri)?.begun.clone().unwrap_or_default();
        if begun.compact.is_none() && !begun.reaches_model {
            self.end_turn(uri, "chat/turnComplete", json!({"turnId": turn_id}));
            self.start_queued(uri);
            return None;
        }
        Some((begun.compact, begun.reaches_model))
    }

    fn begun_changed(&mut self, uri: &ChannelUri) {
        self.undo.touch(uri);
        self.dirty.insert(uri.clone());
    }

    /// The turn ends, no agent hears of it, and the queue is held (C-054, G-08).
    fn command_failed(&mut self, uri: &ChannelUri, message: String) {
        if let Some(chat) = self.chat_mut(uri) {
            chat.begun = None;
        }
        self.begun_changed(uri);
        let failure = AgentError {
            error_type: "commandFailed".to_owned(),
            message,
            resumable: false,
        };
        self.end_turn_in_error(uri, failure);
    }

    fn archive(&mut self, uri: &ChannelUri) -> Result<String, String> {
        let session = self.chat(uri).map(|chat| chat.session.clone());
        let session = session.ok_or("this chat is gone")?;
        let fields = json!({"isArchived": true});
        let action = Action::host("session/isArchivedChanged", fields);
        self.act(&session, action, None);
        self.publish(&session);
        Ok("This session is archived.".to_owned())
    }

    fn help(&mut self, uri: &ChannelUri) -> Result<String, String> {
        let begun = self.chat_mut(uri).and_then(|chat| chat.begun.as_mut());
        let help = begun.and_then(|begun| begun.help.take());
        help.ok_or_else(|| "the list of commands is lost: ask again".to_owned())
    }

    /// Forks the chat where it stands. The new chat's URI must be free, also among chats that are not in memory (G-26).
    fn branch(&mut self, uri: &ChannelUri, title: String) {
        let name = format!("ahp-chat:/branch-{}", self.seq.0 + 1);
        self.try_branch(uri, title, &name);
    }

    pub(crate) fn try_branch(&mut self, from: &ChannelUri, title: String, name: &str) {
        match ChannelUri::parse(name) {
            Ok(chat) => self.begin_chore(Chore::Branch {
                chat,
                from: from.clone(),
                turn_id: self.active_turn_id(from).unwrap_or_default(),
                title,
            }),
            Err(error) => self.command_failed(from, error.to_string()),
        }
    }

    /// The URI is free, or nobody could say so.
    pub(crate) fn branched(
        &mut self,
        from: &ChannelUri,
        turn_id: &str,
        found: Result<(ChannelUri, String), String>,
    ) {
        if self.active_turn_id(from).as_deref() != Some(turn_id) {
            return; // it was cancelled
        }
        let made = found.and_then(|(chat, title)| {
            let mut new = self.branch_of(from, &chat)?;
            let title = title.trim();
            if !title.is_empty() {
                let end = title.floor_char_boundary(TITLE_BYTES_MAX);
                new.title = title[..end].to_owned();
            }
            let session = self.chat(from).map(|chat| chat.session.clone());
            let session = session.ok_or("this chat is gone")?;
            self.found_chat(&session, new);
            self.touch_modified(&session);
            self.publish(&session);
            Ok(chat)
        });
        match made {
            Ok(chat) => {
                let words = format!("This chat goes on in a branch, too: {chat}");
                self.notice(from, turn_id, &words);
                self.start_run(from, None);
            }
            Err(why) => self.command_failed(from, why),
        }
    }

    fn branch_of(&self, from: &ChannelUri, uri: &ChannelUri) -> Result<NewChat, String> {
        let (chat, channel) = match (self.chat(from), self.channels.get(from)) {
            (Some(chat), Some(channel)) => (chat, channel),
            _ => return Err("this chat is gone".to_owned()),
        };
        let session = self.session_state(&chat.session);
        let session = session.ok_or("this session is gone")?;
        let agent = self.agent(Some(&session.provider)).ok();
        let forks =
            agent.is_some_and(|agent| agent.info["capabilities"]["multipleChats"]["fork"] == true);
        if !forks {
            return Err("this agent cannot branch a chat".to_owned());
        }
        if session.chats.len() >= self.limits.chats_max {
            let most = self.limits.chats_max;
            return Err(format!("a session has at most {most} chats"));
        }
        let (Some(n), Some(turn)) = (chat.ns.last(), chat.state.turns.last()) else {
            return Err("there is nothing to branch from yet: no turn is complete".to_owned());
        };
        let origin = json!({"kind": "fork", "chat": from.as_str(), "turnId": turn.id});
        Ok(NewChat {
            uri: uri.clone(),
            title: chat.state.title.clone(),
            origin,
            interactivity: None,
            working_directories: chat.state.working_directories.clone(),
            source: Some(Source {
                through: Some((channel.id, *n)),
                page: page_in_memory(chat, *n),
                visible: true,
                partial: None,
                foreseen: chat.foreseen.clone(),
                checkpoint: None,
                compacted: chat.compacted.clone(),
            }),
            brief: None,
            depth: 0,
        })
    }

    /// The agent remembers less from now on.
    pub(crate) fn compact(&mut self, uri: &ChannelUri, keep_turns: usize, summary: Option<String>) {
        let most = self.limits.checkpoint_bytes_max;
        let Some(chat) = self.chat_mut(uri) else {
            return;
        };
        let from = chat.ns.len().saturating_sub(keep_turns);
        let from_n = chat.ns.get(from).copied().unwrap_or(chat.next_n);
        let summary = summary.map(|mut summary| {
            summary.truncate(summary.floor_char_boundary(most));
            summary
        });
        chat.compacted = Some(Compacted { from_n, summary });
        self.begun_changed(uri);
    }
}
