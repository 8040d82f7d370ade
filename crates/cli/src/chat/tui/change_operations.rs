//! What is done with listed changes: `/changes` with an operation of the host, `/discard`, `/commit`.
//!
//! Promises: what the host asks about is asked, and done only on a yes of its own, and only if the files are still those that were
//! asked about. What others changed meanwhile is replaced only on another.

use client::chat::{ChangesError, ChangesList, OperationRequest, OperationResult};

use super::TerminalChat;
use super::change_answers::{ChangesAnswer, WaitingEntry};
use super::changes::describe;
use super::picker::{Picker, QuestionAction, YesNoQuestion};
use crate::chat::change_argument;
use crate::chat::change_lines::names_of;
use crate::chat::line::{Line, Style};
use crate::chat::tool::body;
use crate::terminal::{escape, escape_line};

/// The operation and the changeset that the commands with names of their own are for.
const DISCARD: &str = "discard";
const COMMIT: &str = "commit";
const UNCOMMITTED: &str = "uncommitted";

impl TerminalChat {
    /// `/discard`: the operation of that name on files of the list.
    pub(super) fn discard(&mut self, typed: &str) {
        let Some(list) = &self.changes else {
            return self
                .note_error("/changes lists the files first; /discard takes a number or all");
        };
        let Some(operation) = list.operation(DISCARD) else {
            let label = escape_line(&list.of.label);
            return self.note_error(&format!("{label}: these changes cannot be discarded"));
        };
        match change_argument::request(operation, typed, Some(list)) {
            Ok(request) => self.ask_or_operate(request),
            Err(why) => self.note_error(&why),
        }
    }

    /// `/commit`: what is staged, or everything. Nothing has to be listed first.
    pub(super) fn commit(&mut self, message: &str) {
        let offers = self.chat.changesets();
        if offers.is_empty() {
            return self.wait_for_offers(WaitingEntry::Commit(message.to_owned()));
        }
        let Some(of) = offers.into_iter().find(|offer| offer.name == UNCOMMITTED) else {
            return self.note_error("nothing can be committed: there is no git repository here");
        };
        let (read, message) = (self.chat.read_changes(of, None), message.to_owned());
        self.wait_for_changes(async move {
            let list = read.await;
            ChangesAnswer::ToCommit { list, message }
        });
    }

    /// What would be committed is known.
    pub(super) fn take_to_commit(
        &mut self,
        list: Result<ChangesList, ChangesError>,
        message: &str,
    ) {
        let list = match list {
            Ok(list) => list,
            Err(error) => return self.show_changes_error(&error),
        };
        let Some(operation) = list.operation(COMMIT) else {
            return self.note_error("the host offers no commit here");
        };
        match change_argument::request(operation, message, Some(&list)) {
            Ok(request) => self.ask_or_operate_on(list, request),
            Err(why) => self.note_error(&why),
        }
    }

    /// Asks what the host wants asked, or has it done at once.
    pub(super) fn ask_or_operate(&mut self, request: OperationRequest) {
        match self.changes.clone() {
            Some(list) => self.ask_or_operate_on(list, request),
            None => debug_assert!(false, "operations are those of a list"),
        }
    }

    fn ask_or_operate_on(&mut self, list: ChangesList, request: OperationRequest) {
        match request.operation.confirmation.clone() {
            Some(question) => self.ask_about(&question, list, request),
            None => self.operate(&list, request),
        }
    }

    fn ask_about(&mut self, question: &str, list: ChangesList, request: OperationRequest) {
        let files = match request.files.as_slice() {
            [] => &list.files,
            // Whoever insists does so for each file on its own.
            [first, ..] if request.is_forced => std::slice::from_ref(first),
            files => files,
        };
        let names = names_of(files, &self.base_directory());
        let text = format!("{}\n{names}", escape(question));
        let label = escape_line(&request.operation.label);
        let yes = if request.is_forced { format!("{label} anyway") } else { label };
        let action = QuestionAction::Operate { list: Box::new(list), request: Box::new(request) };
        let question = YesNoQuestion::new(text, &yes, "Leave it as it is", action);
        self.open_picker(Picker::YesNoQuestion(question));
    }

    /// After a yes: what was asked about is read again first, and nothing is done if it is something else by now.
    pub(super) fn operate_if_current(
        &mut self,
        list: Box<ChangesList>,
        request: Box<OperationRequest>,
    ) {
        if request.is_forced {
            // The host knows what is there, and was told that it is meant.
            return self.operate(&list, *request);
        }
        self.note(&format!("{} …", request.operation.label));
        let read = self.chat.read_changes(list.of.clone(), list.turn.clone());
        self.wait_for_changes(async move {
            let now = read.await;
            ChangesAnswer::ReadAgain { list, request, now }
        });
    }

    pub(super) fn take_read_again(
        &mut self,
        list: &ChangesList,
        request: OperationRequest,
        now: Result<ChangesList, ChangesError>,
    ) {
        match now {
            Ok(now) if list.is_current_in(&now, &request.files) => self.operate(list, request),
            Ok(now) => {
                self.take_changes(Ok(now));
                self.note_error("nothing was done: the files changed since they were listed");
            }
            Err(error) => self.show_changes_error(&error),
        }
    }

    fn operate(&mut self, list: &ChangesList, request: OperationRequest) {
        self.note(&format!("{} …", request.operation.label));
        let (list, label) = (list.clone(), request.operation.label.clone());
        let done = self.chat.operate_on_changes(&list, request);
        self.wait_for_changes(async move {
            let outcome = done.await;
            ChangesAnswer::Operated { list: Box::new(list), label, outcome }
        });
    }

    pub(super) fn take_operated(
        &mut self,
        list: ChangesList,
        label: &str,
        outcome: OperationResult,
    ) {
        match outcome {
            OperationResult::Done(said) => self.tell_done(label, &said),
            OperationResult::NeedsForce { why, said, rest } => {
                if !said.is_empty() {
                    self.tell_done(label, &said);
                }
                let request = OperationRequest { is_forced: true, ..*rest };
                self.ask_about(&why, list, request);
            }
            OperationResult::Failed { why, said } => {
                if !said.is_empty() {
                    self.tell_done(label, &said);
                }
                self.note_error(&format!("{label}: {}", describe(&why)));
            }
        }
    }

    /// One sentence is a note; what is longer, or of several files, stands in the transcript.
    fn tell_done(&mut self, label: &str, said: &[String]) {
        self.note = None;
        match said {
            [one] if !one.contains('\n') => self.note(one),
            said => {
                let width = self.painter.width();
                let head = format!("  {}: done", escape_line(label));
                let mut lines = vec![Line::new(Style::Bold, head)];
                for text in said {
                    lines.extend(body(&escape(text), Style::Plain, width));
                }
                self.print(lines);
            }
        }
    }
}
