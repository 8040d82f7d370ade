//! What the host answers about changes while the chat goes on.
//!
//! Promises: an answer that comes when another chat is open is told, and changes nothing: its numbers are not those of this chat.

use client::chat::{ChangesError, ChangesList, FileChangeEntry, OperationRequest, OperationResult};
use wire::ChannelUri;

use super::TerminalChat;
use super::background::BackgroundAnswer;
use super::changes::describe;

#[derive(Debug)]
pub(super) enum ChangesAnswer {
    /// What was entered when the host had offered nothing yet, and whether it does now.
    Offered {
        then: WaitingEntry,
        is_offered: bool,
    },
    List(Result<ChangesList, ChangesError>),
    /// What a changed file held before and holds after.
    File {
        file: FileChangeEntry,
        contents: Result<(Vec<u8>, Vec<u8>), ChangesError>,
    },
    /// What would be committed, and with which message.
    ToCommit {
        list: Result<ChangesList, ChangesError>,
        message: String,
    },
    /// The list as it was when somebody said yes to an operation, and as it is now.
    ReadAgain {
        list: Box<ChangesList>,
        request: Box<OperationRequest>,
        now: Result<ChangesList, ChangesError>,
    },
    /// The result of an operation, by its label.
    Operated {
        list: Box<ChangesList>,
        label: String,
        outcome: OperationResult,
    },
}

/// What was entered, and waits for what the host offers.
#[derive(Debug)]
pub(super) enum WaitingEntry {
    Changes(String),
    Commit(String),
}

impl TerminalChat {
    /// Waits in the background for an answer about changes of the chat that is open.
    pub(super) fn wait_for_changes(
        &self,
        answer: impl Future<Output = ChangesAnswer> + Send + 'static,
    ) {
        let chat = self.chat.chat().clone();
        self.answers.wait_for(async move {
            let answer = Box::new(answer.await);
            BackgroundAnswer::Changes { chat, answer }
        });
    }

    /// Does what was entered once the host's catalogue is there.
    pub(super) fn wait_for_offers(&mut self, then: WaitingEntry) {
        let offered = self.chat.wait_for_changesets();
        self.note("Asking the host for changes …");
        self.wait_for_changes(async move {
            let is_offered = offered.await;
            ChangesAnswer::Offered { then, is_offered }
        });
    }

    pub(super) fn take_changes_answer(&mut self, chat: &ChannelUri, answer: ChangesAnswer) {
        if chat != self.chat.chat() {
            return self.tell_of_left_chat(answer);
        }
        match answer {
            ChangesAnswer::Offered { then, is_offered } => self.take_offered(then, is_offered),
            ChangesAnswer::List(result) => self.take_changes(result),
            ChangesAnswer::File { file, contents } => self.take_change(&file, contents),
            ChangesAnswer::ToCommit { list, message } => self.take_to_commit(list, &message),
            ChangesAnswer::ReadAgain { list, request, now } => {
                self.take_read_again(&list, *request, now);
            }
            ChangesAnswer::Operated { list, label, outcome } => {
                self.take_operated(*list, &label, outcome)
            }
        }
    }

    fn take_offered(&mut self, then: WaitingEntry, is_offered: bool) {
        if !is_offered {
            return self.note_error("the host records no changes of this session");
        }
        self.note = None;
        match then {
            WaitingEntry::Changes(typed) => self.enter_changes(&typed),
            WaitingEntry::Commit(message) => self.commit(&message),
        }
    }

    fn tell_of_left_chat(&mut self, answer: ChangesAnswer) {
        match left_outcome(&answer) {
            Ok(text) => self.note(&text),
            Err(text) => self.note_error(&text),
        }
    }
}

/// What is said of an answer when its chat is not open any more.
fn left_outcome(answer: &ChangesAnswer) -> Result<String, String> {
    match answer {
        ChangesAnswer::Offered { then: WaitingEntry::Commit(_), .. }
        | ChangesAnswer::ToCommit { .. } => {
            Err("nothing was committed: another chat is open now".to_owned())
        }
        ChangesAnswer::Offered { .. } | ChangesAnswer::List(Ok(_)) | ChangesAnswer::File { .. } => {
            Ok("The changes are those of another chat: /changes lists those of this one".to_owned())
        }
        ChangesAnswer::ReadAgain { request, .. } => {
            let label = &request.operation.label;
            Err(format!("{label} was not done: another chat is open now"))
        }
        ChangesAnswer::List(Err(error)) => Err(format!("in the other chat: {error}")),
        ChangesAnswer::Operated { label, outcome, .. } => match outcome {
            OperationResult::Done(said) => {
                Ok(format!("{label} in the other chat: {}", said.join(" ")))
            }
            OperationResult::NeedsForce { why, .. } => {
                Err(format!("{label} in the other chat was not done: {why}"))
            }
            OperationResult::Failed { why, .. } => {
                Err(format!("{label} in the other chat: {}", describe(why)))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::change_argument::tests::list;

    #[test]
    fn what_came_of_it_in_a_chat_that_was_left_is_told() {
        let list = list(&["a"]);
        let operated = |outcome| ChangesAnswer::Operated {
            list: Box::new(list.clone()),
            label: "Discard".to_owned(),
            outcome,
        };
        let done = operated(OperationResult::Done(vec!["1 file is what it was.".to_owned()]));
        assert_eq!(
            left_outcome(&done).unwrap(),
            "Discard in the other chat: 1 file is what it was."
        );
        let request = OperationRequest {
            operation: list.operations[0].clone(),
            files: Vec::new(),
            message: None,
            is_forced: false,
        };
        let refused = operated(OperationResult::NeedsForce {
            why: "a changed".to_owned(),
            said: Vec::new(),
            rest: Box::new(request.clone()),
        });
        assert!(left_outcome(&refused).unwrap_err().contains("was not done"));
        let again = ChangesAnswer::ReadAgain {
            list: Box::new(list.clone()),
            request: Box::new(request),
            now: Ok(list.clone()),
        };
        assert!(left_outcome(&again).unwrap_err().contains("was not done"));
        let commit = ChangesAnswer::ToCommit { list: Ok(list), message: "m".to_owned() };
        let said = left_outcome(&commit).unwrap_err();
        assert!(said.starts_with("nothing was committed"), "{said}");
    }
}
