//! What stands behind `/changes`: a changeset, a file of the list, marks, or an operation that the host offers.
//!
//! Promises: what can be entered is what the host's catalogue and its operations say. A number means the file that the last list
//! showed under it.
//! Must not know: terminals, connections.

use client::chat::{
    ChangesList, ChangesetOffer, FileChangeEntry, OfferedOperation, OperationRequest,
    OperationStatus,
};

/// Marks files as reviewed, and takes the marks away.
const REVIEWED: &str = "reviewed";
const UNREVIEWED: &str = "unreviewed";

/// What was typed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChangesRequest {
    List(ChangesetOffer),
    Show(FileChangeEntry),
    Review { files: Vec<FileChangeEntry>, is_reviewed: bool },
    Operate(OperationRequest),
}

/// What the first word may be, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangesSubcommand {
    pub(crate) word: String,
    pub(crate) about: String,
}

/// Reads what was entered behind `/changes`.
pub(crate) fn parse(
    typed: &str,
    offers: &[ChangesetOffer],
    listed: Option<&ChangesList>,
) -> Result<ChangesRequest, String> {
    let (word, rest) = split(typed);
    if word.is_empty() {
        let first = offers
            .iter()
            .find(|offer| !offer.is_of_turn)
            .ok_or("no changes of this session are recorded yet")?;
        return Ok(ChangesRequest::List(first.clone()));
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return match select(typed, listed)?.as_slice() {
            [file] => Ok(ChangesRequest::Show(file.clone())),
            _ => Err("one file is shown at a time: /changes N".to_owned()),
        };
    }
    if word == REVIEWED || word == UNREVIEWED {
        let is_reviewable = listed.is_none_or(|list| list.of.is_reviewable);
        if !is_reviewable {
            return Err("these files cannot be marked as reviewed".to_owned());
        }
        return Ok(ChangesRequest::Review {
            files: select(rest, listed)?,
            is_reviewed: word == REVIEWED,
        });
    }
    if let Some(offer) = offers.iter().find(|offer| offer.name == word) {
        return if rest.is_empty() {
            Ok(ChangesRequest::List(offer.clone()))
        } else {
            Err(format!("/changes {word} takes no argument"))
        };
    }
    match listed.and_then(|list| list.operation(word)) {
        Some(operation) => request(operation, rest, listed).map(ChangesRequest::Operate),
        None => Err(unknown(word, offers, listed)),
    }
}

/// What is asked of the host, once it is clear what it is about.
pub(crate) fn request(
    operation: &OfferedOperation,
    rest: &str,
    listed: Option<&ChangesList>,
) -> Result<OperationRequest, String> {
    let id = &operation.id;
    match operation.status {
        OperationStatus::Running => return Err(format!("{} is already running", operation.label)),
        OperationStatus::Disabled => {
            return Err(format!("{} is not possible now", operation.label));
        }
        OperationStatus::Idle | OperationStatus::Failed(_) => {}
    }
    let (mut files, mut message) = (Vec::new(), None);
    if operation.takes_message() {
        if rest.is_empty() {
            return Err(format!("{id} needs its message: /changes {id} MESSAGE"));
        }
        message = Some(rest.to_owned());
    } else if rest == "all" || (rest.is_empty() && !operation.is_for_files) {
        if !operation.is_for_all {
            return Err(format!("{id} is for one file: /changes {id} N"));
        }
    } else if !operation.is_for_files {
        return Err(format!("{id} is for all files: /changes {id}"));
    } else if rest.is_empty() {
        return Err(format!("/changes {id} needs an argument: {}", files_of(operation)));
    } else {
        files = select(rest, listed)?;
    }
    Ok(OperationRequest { operation: operation.clone(), files, message, is_forced: false })
}

/// What an operation takes behind it.
fn files_of(operation: &OfferedOperation) -> &'static str {
    match (operation.is_for_all, operation.is_for_files) {
        (true, true) => "N or all",
        (false, _) => "N",
        (true, false) => "nothing",
    }
}

/// The words that may stand first, for whoever types.
pub(crate) fn words(
    offers: &[ChangesetOffer],
    listed: Option<&ChangesList>,
) -> Vec<ChangesSubcommand> {
    let word = |word: &str, about: &str| ChangesSubcommand {
        word: word.to_owned(),
        about: about.to_owned(),
    };
    let mut words: Vec<ChangesSubcommand> =
        offers.iter().map(|offer| word(&offer.name, &offer.label)).collect();
    let Some(list) = listed else {
        return words; // what can be done depends on what is listed
    };
    if list.of.is_reviewable && !list.files.is_empty() {
        words.push(word(REVIEWED, "mark files of the list as reviewed"));
        words.push(word(UNREVIEWED, "take the marks away"));
    }
    let operations = list.operations.iter();
    words.extend(operations.map(|operation| word(&operation.id, &operation.description)));
    words
}

/// How an operation is entered.
pub(crate) fn usage(operation: &OfferedOperation) -> String {
    let behind = match (operation.takes_message(), operation.is_for_files) {
        (true, _) => " MESSAGE",
        (false, true) if operation.is_for_all => " N|all",
        (false, true) => " N",
        (false, false) => "",
    };
    format!("/changes {}{behind}", operation.id)
}

fn unknown(word: &str, offers: &[ChangesetOffer], listed: Option<&ChangesList>) -> String {
    let words: Vec<String> = words(offers, listed).into_iter().map(|word| word.word).collect();
    let known = if words.is_empty() { "nothing else yet".to_owned() } else { words.join(", ") };
    let hint = match listed {
        Some(_) => "",
        None => ". /changes alone lists the files and what can be done with them",
    };
    format!("`{word}` is unknown: /changes takes the number of a file, {known}{hint}")
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

/// The files that `all`, or numbers of the last list, mean.
pub(crate) fn select(
    typed: &str,
    listed: Option<&ChangesList>,
) -> Result<Vec<FileChangeEntry>, String> {
    let files = listed.map_or(&[][..], |list| &list.files);
    if files.is_empty() {
        return Err("no files are listed yet; run /changes first".to_owned());
    }
    if typed == "all" {
        return Ok(files.to_vec());
    }
    let mut selected: Vec<FileChangeEntry> = Vec::new();
    for word in typed.split([' ', ',']).filter(|word| !word.is_empty()) {
        let index = word.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let file = index.and_then(|index| files.get(index));
        let file = file.ok_or_else(|| match word.parse::<usize>() {
            Ok(_) => format!("the list has no file {word}: it goes from 1 to {}", files.len()),
            Err(_) => format!("{word} is not the number of a file in the list"),
        })?;
        if !selected.iter().any(|other| other.id == file.id) {
            selected.push(file.clone());
        }
    }
    if selected.is_empty() {
        Err("name files of the list by their numbers, or say `all`".to_owned())
    } else {
        Ok(selected)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};
    use wire::ChannelUri;
    use wire::state::ChangesetState;

    use super::*;

    pub(crate) fn offer(kind: &str, template: &str) -> ChangesetOffer {
        let entry = json!({
            "label": format!("Changes of {kind}"), "uriTemplate": template, "changeKind": kind,
            "capabilities": {"review": {}},
        });
        ChangesetOffer::from_value(&entry).unwrap()
    }

    pub(crate) fn offers() -> Vec<ChangesetOffer> {
        vec![
            offer("session", "x:/s/changeset/session"),
            offer("turn", "x:/s/changeset/turn/{turnId}"),
        ]
    }

    fn operation(id: &str, scopes: &[&str], status: &str) -> Value {
        json!({
            "id": id, "label": id.to_uppercase(), "description": format!("does {id}"),
            "scopes": scopes, "status": status,
        })
    }

    pub(crate) fn list(names: &[&str]) -> ChangesList {
        let file = |name: &&str| {
            let uri = format!("file:///w/{name}");
            json!({"id": uri, "edit": {"after": {"uri": uri}, "diff": {"added": 1, "removed": 0}}})
        };
        let all = ["changeset", "resource"];
        let state = json!({
            "status": "ready",
            "files": names.iter().map(file).collect::<Vec<Value>>(),
            "operations": [
                operation("discard", &all, "idle"),
                operation("commit", &all[..1], "idle"),
                operation("merge", &all[..1], "disabled"),
                operation("look", &all[1..], "idle"),
            ],
        });
        let state = ChangesetState::from_value(state).unwrap();
        let uri = ChannelUri::parse("x:/s/changeset/session").unwrap();
        ChangesList::from_state(offers().remove(0), None, uri, &state)
    }

    fn said(typed: &str, listed: Option<&ChangesList>) -> String {
        parse(typed, &offers(), listed).unwrap_err()
    }

    #[test]
    fn what_the_host_offers_can_be_entered() {
        let (offers, list) = (offers(), list(&["a", "b", "c"]));
        let parse = |typed: &str| parse(typed, &offers, Some(&list));
        assert_eq!(parse(""), Ok(ChangesRequest::List(offers[0].clone())));
        assert_eq!(parse(" turn "), Ok(ChangesRequest::List(offers[1].clone())));
        assert_eq!(parse("2"), Ok(ChangesRequest::Show(list.files[1].clone())));
        let marked = ChangesRequest::Review {
            files: vec![list.files[0].clone(), list.files[2].clone()],
            is_reviewed: true,
        };
        assert_eq!(parse("reviewed 1, 3 1"), Ok(marked));
        let Ok(ChangesRequest::Operate(all)) = parse("discard all") else {
            panic!("all can be discarded");
        };
        assert!(all.files.is_empty() && all.message.is_none() && !all.is_forced);
        let Ok(ChangesRequest::Operate(some)) = parse("discard 2 3") else {
            panic!("some can be discarded");
        };
        assert_eq!(some.files, list.files[1..]);
        let Ok(ChangesRequest::Operate(commit)) = parse("commit all of it") else {
            panic!("a commit takes a message");
        };
        assert_eq!(commit.message.as_deref(), Some("all of it"));
        assert!(commit.files.is_empty(), "the message names no files");
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let list = list(&["a", "b"]);
        for (typed, why) in [
            ("3", "the list has no file 3: it goes from 1 to 2"),
            ("1 2", "one file is shown at a time"),
            ("reviewed", "name files of the list by their numbers"),
            ("reviewed x", "x is not the number of a file"),
            ("session 1", "/changes session takes no argument"),
            ("discard", "/changes discard needs an argument: N or all"),
            ("commit", "commit needs its message"),
            ("merge", "MERGE is not possible now"),
            ("look all", "look is for one file"),
            ("dance", "`dance` is unknown: /changes takes"),
        ] {
            let said = said(typed, Some(&list));
            assert!(said.contains(why), "{typed}: {said}");
        }
        for typed in ["1", "reviewed all", "discard 1"] {
            let said = said(typed, None);
            assert!(said.contains("list"), "{typed}: {said}");
        }
        assert!(parse("", &[], None).is_err());
    }

    #[test]
    fn words_are_those_of_the_host() {
        let list = list(&["a"]);
        let words = |listed| {
            words(&offers(), listed).into_iter().map(|word| word.word).collect::<Vec<String>>()
        };
        assert_eq!(words(None), ["session", "turn"]);
        let all = words(Some(&list)).join(" ");
        assert_eq!(all, "session turn reviewed unreviewed discard commit merge look");
        let usages: Vec<String> = list.operations.iter().map(usage).collect();
        assert_eq!(
            usages,
            [
                "/changes discard N|all",
                "/changes commit MESSAGE",
                "/changes merge",
                "/changes look N"
            ]
        );
    }
}
