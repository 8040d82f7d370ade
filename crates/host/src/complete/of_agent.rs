//! What an agent is asked while something is typed: arguments of its commands, and things that only it can read (MC-12, MC-13).
//!
//! Promises: nothing is asked where no such thing is being typed.
//! Must not know: where an agent has its answers from.

use agent_api::{Agent, AgentResource, SessionFacts};
use compositor::command::args;
use serde_json::{Value, json};

use super::item;

/// How commands begin that take such arguments (G-74), and things that are mentioned.
const COMMAND: &str = "/mcp:";
const MENTION: &str = "mcp:";

/// Longer words are not completed.
const TYPED_BYTES_MAX: usize = 2_048;

/// The suggestions of an agent for what is before the cursor.
pub(crate) async fn suggestions(
    agent: &dyn Agent,
    facts: &SessionFacts,
    text: &str,
    offset: u64,
) -> Vec<Value> {
    let Some(before) = before_cursor(text, offset) else {
        return Vec::new(); // the request is refused for it
    };
    if let Some(typed) = typed_argument(before) {
        let values = agent.complete_argument(facts, typed.command, &typed.words).await.into_iter();
        return values.map(|value| argument_item(&value, before, typed.start)).collect();
    }
    match typed_mention(before) {
        Some((typed, start)) => {
            let found = agent.find_resources(facts, typed).await;
            let items = found.iter().map(|found| resource_item(found, before, start));
            items.collect()
        }
        None => Vec::new(),
    }
}

fn before_cursor(text: &str, offset: u64) -> Option<&str> {
    let mut units = 0;
    for (byte, char) in text.char_indices() {
        if units >= offset {
            return Some(&text[..byte]);
        }
        units += char.len_utf16() as u64;
    }
    (units >= offset).then_some(text)
}

#[derive(Debug, PartialEq)]
struct TypedArgument<'a> {
    /// Without its slash.
    command: &'a str,
    /// The last one is being typed, and may be empty.
    words: Vec<String>,
    /// Where it begins.
    start: usize,
}

fn typed_argument(before: &str) -> Option<TypedArgument<'_>> {
    let is_command = before.starts_with(COMMAND) && before.len() <= TYPED_BYTES_MAX;
    let (command, rest) = before.split_once(char::is_whitespace).filter(|_| is_command)?;
    let last = rest
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
    let mut words = args::split(&rest[..last]);
    words.push(rest[last..].to_owned());
    Some(TypedArgument {
        command: command.strip_prefix('/')?,
        words,
        start: before.len() - (rest.len() - last),
    })
}

/// What is typed after an `@`, and where that is.
fn typed_mention(before: &str) -> Option<(&str, usize)> {
    let word = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let typed = before[word..].strip_prefix('@')?;
    let is_meant = typed.starts_with(MENTION) || (!typed.is_empty() && MENTION.starts_with(typed));
    (is_meant && typed.len() <= TYPED_BYTES_MAX).then_some((typed, word))
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The value takes the place of what is typed. It is a part of the command, and no attachment by itself.
fn argument_item(value: &str, before: &str, start: usize) -> Value {
    let typed = if value.contains(char::is_whitespace) {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    };
    json!({
        "insertText": format!("{typed} "),
        "rangeStart": units(before.get(..start).unwrap_or_default()),
        "rangeEnd": units(before),
        "attachment": {"type": "simple", "label": value, "displayKind": item::ARGUMENT},
    })
}

fn resource_item(found: &AgentResource, before: &str, start: usize) -> Value {
    let typed = if found.typed.contains(char::is_whitespace) {
        format!("mcp:\"{}\"", found.typed.trim_start_matches(MENTION))
    } else {
        found.typed.clone()
    };
    let mut attachment = json!({
        "type": "resource",
        "label": found.name,
        "uri": found.uri,
        "displayKind": "document",
    });
    if let Some(mime_type) = &found.mime_type {
        attachment["contentType"] = json!(mime_type);
    }
    json!({
        "insertText": format!("@{typed} "),
        "rangeStart": units(before.get(..start).unwrap_or_default()),
        "rangeEnd": units(before),
        "attachment": attachment,
        "_meta": {item::ABOUT: {"description": found.description}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_mentions_are_found_before_the_cursor() {
        let argument = |text: &str| {
            let typed = typed_argument(text)?;
            Some((typed.command.to_owned(), typed.words, typed.start))
        };
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let name = || "mcp:t:review".to_owned();
        assert_eq!(argument("/mcp:t:review"), None);
        assert_eq!(argument("/mcp:t:review "), Some((name(), words(&[""]), 14)));
        let second = argument("/mcp:t:review a.rs fo");
        assert_eq!(second, Some((name(), words(&["a.rs", "fo"]), 19)));
        assert_eq!(argument("see /mcp:t:review "), None);
        assert_eq!(typed_mention("see @mc"), Some(("mc", 4)));
        assert_eq!(typed_mention("@mcp:t:test://"), Some(("mcp:t:test://", 0)));
        for other in ["@", "@file:a", "a@mcp:t", "@mcp:t x"] {
            assert_eq!(typed_mention(other), None, "{other}");
        }
        assert_eq!(before_cursor("👍ab", 3), Some("👍a"));
        assert_eq!(before_cursor("ab", 3), None);
    }
}
