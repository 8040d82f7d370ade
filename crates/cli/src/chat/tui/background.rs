//! What is asked of the host while the chat goes on, and what comes of the answers.
//!
//! Promises: keys and events never wait for an answer; what is no longer wanted when it comes is dropped.

use client::ClientError;
use client::SessionSummary;
use client::chat::{ChatError, CommandCheck, Completion};
use tokio::sync::mpsc;
use wire::ChannelUri;

use super::change_answers::ChangesAnswer;
use super::entering::EnteredLine;
use super::{Flow, TerminalChat};
use crate::chat::popup::PopupQuery;

/// Answers that may wait to be looked at; each comes of a key that was pressed.
const ANSWERS_MAX: usize = 64;

#[derive(Debug)]
pub(super) enum BackgroundAnswer {
    Completions {
        query: PopupQuery,
        result: Result<Vec<Completion>, ChatError>,
    },
    Sessions(Result<Vec<SessionSummary>, ClientError>),
    /// Whether the command that a line begins with is known.
    Command {
        line: EnteredLine,
        name: String,
        result: Result<CommandCheck, ChatError>,
    },
    EarlierTurns(Result<(), ClientError>),
    /// Where the session was written to.
    Exported(anyhow::Result<String>),
    /// About changes, and the chat that was open when it was asked for.
    Changes {
        chat: ChannelUri,
        answer: Box<ChangesAnswer>,
    },
}

/// Where answers come in.
#[derive(Debug)]
pub(super) struct Answers {
    sender: mpsc::Sender<BackgroundAnswer>,
    receiver: mpsc::Receiver<BackgroundAnswer>,
}

impl Answers {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(ANSWERS_MAX);
        Self { sender, receiver }
    }

    /// Waits for something in the background.
    pub(super) fn wait_for(&self, answer: impl Future<Output = BackgroundAnswer> + Send + 'static) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            // Whoever asked has left meanwhile: nobody wants it.
            let _ = sender.send(answer.await).await;
        });
    }

    /// The next answer. May be dropped and called again: nothing is lost.
    pub(super) async fn next(&mut self) -> BackgroundAnswer {
        match self.receiver.recv().await {
            Some(answer) => answer,
            // Only without a sender, and one is here.
            None => std::future::pending().await,
        }
    }
}

impl TerminalChat {
    pub(super) async fn take_answer(&mut self, answer: BackgroundAnswer) -> anyhow::Result<Flow> {
        match answer {
            BackgroundAnswer::Completions { query, result } => {
                self.take_completions(&query, result)
            }
            BackgroundAnswer::Sessions(result) => self.take_sessions(result),
            BackgroundAnswer::Command { line, name, result } => {
                return self.take_command_check(line, &name, result).await;
            }
            BackgroundAnswer::EarlierTurns(result) => self.take_earlier_turns(result),
            BackgroundAnswer::Changes { chat, answer } => self.take_changes_answer(&chat, *answer),
            BackgroundAnswer::Exported(Ok(file)) => self.note(&format!("Written to {file}")),
            BackgroundAnswer::Exported(Err(error)) => self.note_error(&format!("{error:#}")),
        }
        Ok(Flow::Continue)
    }

    /// Asks for the list of sessions, for the status line and for the list to choose from.
    pub(super) fn ask_for_sessions(&mut self) {
        let listed = self.chat.list_sessions();
        self.answers.wait_for(async move { BackgroundAnswer::Sessions(listed.await) });
    }

    fn take_sessions(&mut self, result: Result<Vec<SessionSummary>, ClientError>) {
        match result {
            Ok(sessions) => {
                if !self.chat.take_session_list(&sessions) {
                    self.ask_for_sessions();
                }
                self.show_sessions(&sessions);
            }
            Err(error) => {
                self.chat.give_up_session_list();
                self.sessions_failed(&error);
            }
        }
    }
}
