//! `/annotations`: comments on files of a session, listed, added, answered, edited, resolved, and sent to the agent.
//!
//! Promises: a number means what the last list showed under it.
//! Must not know: terminals, connections.

use std::path::Path;

use client::chat::{AnnotationChange, AnnotationComment, AnnotationThread, OpenChat};

use super::argument_words::{ArgumentWord, propose_words};
use super::model_argument::ArgumentProposal;

/// What can be typed behind the command, for the error about anything else.
const USAGE: &str = "/annotations lists comments; /annotations add FILE[:LINE[-LINE]] TEXT, reply N TEXT, edit N TEXT, \
     resolve N, reopen N, remove N, where N.2 is the second comment of N; /annotations send [TEXT] sends the open ones to the agent";
/// What is sent with comments when nothing else is said.
const SEND_TEXT: &str = "Please look at my comments.";

/// What may stand first behind the command.
const WORDS: [ArgumentWord; 7] = [
    ArgumentWord::new("add", "FILE[:LINE[-LINE]] TEXT: comment on a file or on lines of it"),
    ArgumentWord::new("reply", "N TEXT: answer a comment"),
    ArgumentWord::new("edit", "N TEXT: change the text of a comment"),
    ArgumentWord::new("resolve", "N: mark a comment as done"),
    ArgumentWord::new("reopen", "N: mark a comment as open again"),
    ArgumentWord::new("remove", "N: a comment with its answers; N.2: one answer"),
    ArgumentWord::new("send", "[TEXT]: send the open comments to the agent"),
];

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
enum AnnotationCommand {
    List,
    Add { file: String, lines: Option<(u64, u64)>, text: String },
    Reply(usize, String),
    Edit(CommentNumber, String),
    Resolve(usize, bool),
    Remove(CommentNumber),
    Send(String),
}

/// `2` for a thread, `2.3` for the third comment in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommentNumber {
    thread: usize,
    comment: Option<usize>,
}

/// The threads that were listed last: what a number means, whatever others do meanwhile.
#[derive(Debug, Default)]
pub(super) struct ListedThreads(Vec<AnnotationThread>);

/// What the first word behind the command may become.
pub(super) fn propose(text: &str, cursor: usize) -> Vec<ArgumentProposal> {
    propose_words(text, cursor, &WORDS)
}

/// Does what is typed; lines to show, or what is wrong.
pub(super) async fn apply(
    chat: &mut OpenChat,
    listed: &mut ListedThreads,
    typed: &str,
) -> Result<Vec<String>, String> {
    let command = parse(typed)?;
    let directory = chat.directory();
    let change = match command {
        AnnotationCommand::List => None,
        AnnotationCommand::Send(text) => {
            let threads = chat.annotations().await.map_err(|error| error.to_string())?;
            return send(chat, &threads, &text);
        }
        AnnotationCommand::Add { file, lines, text } => {
            let file = match &directory {
                Some(directory) => directory.join(file),
                None => file.into(),
            };
            if !file.is_absolute() {
                return Err(
                    "this session has no directory: name the file by its whole path".to_owned()
                );
            }
            Some(AnnotationChange::Add { file, lines, text })
        }
        command => Some(listed.change(command)?),
    };
    if let Some(change) = change {
        chat.annotate(&change).await.map_err(|error| error.to_string())?;
    }
    let threads = chat.annotations().await;
    listed.0 = threads.map_err(|error| error.to_string())?;
    Ok(list(&listed.0, directory.as_deref()))
}

impl ListedThreads {
    /// What is done to a thread that was listed.
    fn change(&self, command: AnnotationCommand) -> Result<AnnotationChange, String> {
        Ok(match command {
            AnnotationCommand::Reply(number, text) => {
                AnnotationChange::Reply { id: self.thread(number)?.id.clone(), text }
            }
            AnnotationCommand::Resolve(number, is_resolved) => {
                AnnotationChange::Resolve { id: self.thread(number)?.id.clone(), is_resolved }
            }
            AnnotationCommand::Edit(number, text) => {
                let thread = self.thread(number.thread)?;
                AnnotationChange::Edit {
                    id: thread.id.clone(),
                    comment: comment_in(thread, number)?.clone(),
                    text,
                }
            }
            AnnotationCommand::Remove(number) => {
                let thread = self.thread(number.thread)?;
                let comment = comment_in(thread, number)?;
                let id = thread.id.clone();
                match number.comment {
                    None => AnnotationChange::Remove { id },
                    Some(_) => {
                        AnnotationChange::RemoveComment { id, comment_id: comment.id.clone() }
                    }
                }
            }
            AnnotationCommand::List
            | AnnotationCommand::Add { .. }
            | AnnotationCommand::Send(_) => return Err(USAGE.to_owned()),
        })
    }

    fn thread(&self, number: usize) -> Result<&AnnotationThread, String> {
        let thread = number.checked_sub(1).and_then(|index| self.0.get(index));
        thread.ok_or_else(|| format!("there is no comment {number}; /annotations lists them"))
    }
}

/// The comment that a number means: the first, if it is the number of a thread.
fn comment_in(
    thread: &AnnotationThread,
    number: CommentNumber,
) -> Result<&AnnotationComment, String> {
    let CommentNumber { thread: of, comment } = number;
    let comment = comment.unwrap_or(1);
    let found = comment.checked_sub(1).and_then(|index| thread.comments.get(index));
    found.ok_or_else(|| format!("there is no comment {of}.{comment}; /annotations lists them"))
}

fn send(
    chat: &mut OpenChat,
    threads: &[AnnotationThread],
    text: &str,
) -> Result<Vec<String>, String> {
    let open: Vec<AnnotationThread> =
        threads.iter().filter(|thread| !thread.is_resolved).cloned().collect();
    if open.is_empty() {
        return Err("there is no open comment to send; /annotations add makes one".to_owned());
    }
    let attachment = chat.attach_annotations(&open).map_err(|error| error.to_string())?;
    let text = if text.is_empty() { SEND_TEXT } else { text };
    chat.send_with(text, &[attachment]).map_err(|error| error.to_string())?;
    Ok(Vec::new())
}

fn parse(typed: &str) -> Result<AnnotationCommand, String> {
    let (verb, rest) = split(typed);
    let missing = || format!("{verb} needs the number of a comment; /annotations lists them");
    let number = |text: &str| text.parse::<usize>().map_err(|_| missing());
    let comment = |text: &str| {
        let (thread, comment) = match text.split_once('.') {
            Some((thread, comment)) => (thread, Some(number(comment)?)),
            None => (text, None),
        };
        let thread = number(thread)?;
        Ok::<_, String>(CommentNumber { thread, comment })
    };
    match verb {
        "" | "list" => Ok(AnnotationCommand::List),
        "add" => {
            let (place, text) = split(rest);
            if place.is_empty() || text.is_empty() {
                return Err("add needs FILE or FILE:LINE, and what you want to say".to_owned());
            }
            let (file, lines) = file_and_lines(place);
            Ok(AnnotationCommand::Add { file: file.to_owned(), lines, text: text.to_owned() })
        }
        "reply" | "edit" => {
            let (which, text) = split(rest);
            let text = text.to_owned();
            match (text.is_empty(), verb) {
                (true, _) => {
                    Err(format!("{verb} needs the number of a comment, and what you want to say"))
                }
                (false, "edit") => Ok(AnnotationCommand::Edit(comment(which)?, text)),
                (false, _) => Ok(AnnotationCommand::Reply(number(which)?, text)),
            }
        }
        "resolve" => Ok(AnnotationCommand::Resolve(number(rest)?, true)),
        "reopen" => Ok(AnnotationCommand::Resolve(number(rest)?, false)),
        "remove" => Ok(AnnotationCommand::Remove(comment(rest)?)),
        "send" => Ok(AnnotationCommand::Send(rest.to_owned())),
        _ => Err(USAGE.to_owned()),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

/// `src/main.rs:4-6`; what is no number behind a colon belongs to the name.
fn file_and_lines(place: &str) -> (&str, Option<(u64, u64)>) {
    let whole = (place, None);
    let Some((file, lines)) = place.rsplit_once(':') else { return whole };
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => (file, Some((first, last))),
        _ => whole,
    }
}

/// A line for each thread, and one for each answer in it, with the number that it is called by.
fn list(threads: &[AnnotationThread], directory: Option<&Path>) -> Vec<String> {
    if threads.is_empty() {
        return vec!["No comments yet: /annotations add FILE:LINE TEXT makes one".to_owned()];
    }
    let mut rows = Vec::new();
    for (number, thread) in (1..).zip(threads) {
        let path = Path::new(&thread.file);
        let shown = directory.and_then(|directory| path.strip_prefix(directory).ok());
        let file = shown.unwrap_or(path).display();
        let place = match thread.lines {
            Some((first, last)) if first == last => format!("{file}:{first}"),
            Some((first, last)) => format!("{file}:{first}-{last}"),
            None => file.to_string(),
        };
        let state = if thread.is_resolved { " (resolved)" } else { "" };
        for (index, comment) in (1..).zip(&thread.comments) {
            let mut lines = comment.text.lines();
            let first = lines.next().unwrap_or_default();
            rows.push(match index {
                1 => format!("{number:>2} {place}{state}  {first}"),
                index => format!("   {number}.{index} {first}"),
            });
            rows.extend(lines.map(|line| format!("       {line}")));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_understood() {
        let text = |text: &str| text.to_owned();
        let at = |thread, comment| CommentNumber { thread, comment };
        let add = |file: &str, lines| AnnotationCommand::Add {
            file: text(file),
            lines,
            text: text("why so?"),
        };
        for (typed, command) in [
            ("", AnnotationCommand::List),
            ("add src/a.rs:4-6 why so?", add("src/a.rs", Some((4, 6)))),
            ("add a.rs:7  why so? ", add("a.rs", Some((7, 7)))),
            ("add a:b why so?", add("a:b", None)),
            ("add a.rs:0 why so?", add("a.rs:0", None)),
            ("reply 2 because of it", AnnotationCommand::Reply(2, text("because of it"))),
            ("resolve 1", AnnotationCommand::Resolve(1, true)),
            ("reopen 1", AnnotationCommand::Resolve(1, false)),
            ("remove 3", AnnotationCommand::Remove(at(3, None))),
            ("remove 3.2", AnnotationCommand::Remove(at(3, Some(2)))),
            ("edit 1 better", AnnotationCommand::Edit(at(1, None), text("better"))),
            ("edit 1.2 better", AnnotationCommand::Edit(at(1, Some(2)), text("better"))),
            ("send", AnnotationCommand::Send(String::new())),
            ("send fix them", AnnotationCommand::Send(text("fix them"))),
        ] {
            assert_eq!(parse(typed), Ok(command), "{typed:?}");
        }
        for typed in [
            "add a.rs",
            "add",
            "reply 2",
            "resolve",
            "resolve x",
            "resolve 1.2",
            "remove 1.",
            "edit 1",
            "what",
        ] {
            assert!(parse(typed).is_err(), "{typed:?}");
        }
    }

    fn thread(id: &str, lines: Option<(u64, u64)>, is_resolved: bool) -> AnnotationThread {
        AnnotationThread {
            id: id.to_owned(),
            file: "/w/src/a.rs".to_owned(),
            lines,
            is_resolved,
            comments: ["why?\nreally", "because"]
                .map(|text| AnnotationComment::new(text, text))
                .to_vec(),
        }
    }

    #[test]
    fn threads_are_listed_with_their_place() {
        let threads = [thread("a", Some((4, 6)), false), thread("b", None, true)];
        assert_eq!(
            list(&threads, Some(Path::new("/w"))),
            [
                " 1 src/a.rs:4-6  why?",
                "       really",
                "   1.2 because",
                " 2 src/a.rs (resolved)  why?",
                "       really",
                "   2.2 because"
            ]
        );
    }

    #[test]
    fn a_number_means_what_was_listed() {
        let listed = ListedThreads(vec![thread("a", None, false), thread("b", None, false)]);
        let change = |typed: &str| listed.change(parse(typed).unwrap());
        assert_eq!(change("remove 2"), Ok(AnnotationChange::Remove { id: "b".to_owned() }));
        let removed = AnnotationChange::RemoveComment {
            id: "b".to_owned(),
            comment_id: "because".to_owned(),
        };
        assert_eq!(change("remove 2.2"), Ok(removed));
        // Somebody may have replied to a comment that was listed alone.
        let mut alone = thread("c", None, false);
        alone.comments.truncate(1);
        let removed = ListedThreads(vec![alone]).change(parse("remove 1.1").unwrap());
        assert!(matches!(removed, Ok(AnnotationChange::RemoveComment { .. })));
        for typed in ["resolve 0", "resolve 3", "remove 1.3", "edit 2.0 x"] {
            assert!(change(typed).is_err(), "{typed:?}");
        }
        assert!(ListedThreads::default().change(AnnotationCommand::Resolve(1, true)).is_err());
    }
}
