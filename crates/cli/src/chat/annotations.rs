//! `/annotations`: comments on files of a session, listed, added, answered, resolved, and sent to the agent.
//!
//! Must not know: terminals, connections.

use std::path::Path;

use client::chat::{AnnotationChange, AnnotationThread, OpenChat};

/// What can be typed behind the command, for whoever typed something else.
const USAGE: &str = "/annotations lists comments; /annotations add FILE[:LINE[-LINE]] TEXT, reply N TEXT, resolve N, \
     reopen N, remove N; /annotations send [TEXT] sends the open ones to the agent";
/// What is sent with comments when nothing else is said.
const SEND_TEXT: &str = "Please look at my comments.";

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    List,
    Add {
        file: String,
        lines: Option<(u64, u64)>,
        text: String,
    },
    Reply(usize, String),
    Resolve(usize, bool),
    Remove(usize),
    Send(String),
}

/// Does what is typed; lines to show, or what is wrong.
pub(super) async fn apply(chat: &mut OpenChat, typed: &str) -> Result<Vec<String>, String> {
    let wish = parse(typed)?;
    let threads = chat.annotations().await;
    let threads = threads.map_err(|error| error.to_string())?;
    let directory = chat.directory();
    let change = match wish {
        Wish::List => return Ok(list(&threads, directory.as_deref())),
        Wish::Send(text) => return send(chat, &threads, &text),
        Wish::Add { file, lines, text } => {
            let file = match &directory {
                Some(directory) => directory.join(file),
                None => file.into(),
            };
            if !file.is_absolute() {
                return Err(
                    "this session has no directory: name the file by its whole path".to_owned(),
                );
            }
            AnnotationChange::Add { file, lines, text }
        }
        Wish::Reply(number, text) => AnnotationChange::Reply {
            id: id_of(&threads, number)?,
            text,
        },
        Wish::Resolve(number, is_resolved) => AnnotationChange::Resolve {
            id: id_of(&threads, number)?,
            is_resolved,
        },
        Wish::Remove(number) => AnnotationChange::Remove {
            id: id_of(&threads, number)?,
        },
    };
    let changed = chat.annotate(&change).await;
    changed.map_err(|error| error.to_string())?;
    let threads = chat.annotations().await;
    let threads = threads.map_err(|error| error.to_string())?;
    Ok(list(&threads, directory.as_deref()))
}

fn send(
    chat: &mut OpenChat,
    threads: &[AnnotationThread],
    text: &str,
) -> Result<Vec<String>, String> {
    let open: Vec<AnnotationThread> = threads
        .iter()
        .filter(|thread| !thread.is_resolved)
        .cloned()
        .collect();
    if open.is_empty() {
        return Err("there is no open comment to send; /annotations add makes one".to_owned());
    }
    let attachment = chat.attach_annotations(&open);
    let attachment = attachment.map_err(|error| error.to_string())?;
    let text = if text.is_empty() { SEND_TEXT } else { text };
    chat.send_with(text, &[attachment])
        .map_err(|error| error.to_string())?;
    Ok(Vec::new())
}

fn parse(typed: &str) -> Result<Wish, String> {
    let (verb, rest) = split(typed);
    let number = |text: &str| {
        let number = text.parse::<usize>().ok();
        number
            .ok_or_else(|| format!("{verb} needs the number of a comment; /annotations lists them"))
    };
    match verb {
        "" | "list" => Ok(Wish::List),
        "add" => {
            let (place, text) = split(rest);
            if place.is_empty() || text.is_empty() {
                return Err("add needs FILE or FILE:LINE, and what you want to say".to_owned());
            }
            let (file, lines) = file_and_lines(place);
            Ok(Wish::Add {
                file: file.to_owned(),
                lines,
                text: text.to_owned(),
            })
        }
        "reply" => {
            let (which, text) = split(rest);
            match text.is_empty() {
                true => {
                    Err("reply needs the number of a comment, and what you want to say".to_owned())
                }
                false => Ok(Wish::Reply(number(which)?, text.to_owned())),
            }
        }
        "resolve" => Ok(Wish::Resolve(number(rest)?, true)),
        "reopen" => Ok(Wish::Resolve(number(rest)?, false)),
        "remove" => Ok(Wish::Remove(number(rest)?)),
        "send" => Ok(Wish::Send(rest.to_owned())),
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
    let Some((file, lines)) = place.rsplit_once(':') else {
        return whole;
    };
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => (file, Some((first, last))),
        _ => whole,
    }
}

fn id_of(threads: &[AnnotationThread], number: usize) -> Result<String, String> {
    let thread = number.checked_sub(1).and_then(|index| threads.get(index));
    let thread =
        thread.ok_or_else(|| format!("there is no comment {number}; /annotations lists them"))?;
    Ok(thread.id.clone())
}

/// A line for each thread, and one for each answer in it.
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
        let state = if thread.is_resolved {
            " (resolved)"
        } else {
            ""
        };
        let mut comments = thread.comments.iter();
        let first = comments.next().map_or("", String::as_str);
        rows.push(format!("{number:>2} {place}{state}  {first}"));
        rows.extend(comments.map(|comment| format!("     {comment}")));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_understood() {
        let text = |text: &str| text.to_owned();
        let add = |file: &str, lines| Wish::Add {
            file: text(file),
            lines,
            text: text("why so?"),
        };
        for (typed, wish) in [
            ("", Wish::List),
            ("add src/a.rs:4-6 why so?", add("src/a.rs", Some((4, 6)))),
            ("add a.rs:7  why so? ", add("a.rs", Some((7, 7)))),
            ("add a:b why so?", add("a:b", None)),
            ("add a.rs:0 why so?", add("a.rs:0", None)),
            (
                "reply 2 because of it",
                Wish::Reply(2, text("because of it")),
            ),
            ("resolve 1", Wish::Resolve(1, true)),
            ("reopen 1", Wish::Resolve(1, false)),
            ("remove 3", Wish::Remove(3)),
            ("send", Wish::Send(String::new())),
            ("send fix them", Wish::Send(text("fix them"))),
        ] {
            assert_eq!(parse(typed), Ok(wish), "{typed:?}");
        }
        for typed in ["add a.rs", "add", "reply 2", "resolve", "resolve x", "what"] {
            assert!(parse(typed).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn threads_are_listed_with_their_place() {
        let thread = |lines, is_resolved| AnnotationThread {
            id: "a".to_owned(),
            file: "/w/src/a.rs".to_owned(),
            lines,
            is_resolved,
            comments: vec!["why?".to_owned(), "because".to_owned()],
        };
        let threads = [thread(Some((4, 6)), false), thread(None, true)];
        assert_eq!(
            list(&threads, Some(Path::new("/w"))),
            [
                " 1 src/a.rs:4-6  why?",
                "     because",
                " 2 src/a.rs (resolved)  why?",
                "     because"
            ]
        );
        assert_eq!(id_of(&threads, 2), Ok("a".to_owned()));
        assert!(id_of(&threads, 0).is_err() && id_of(&threads, 3).is_err());
    }
}
