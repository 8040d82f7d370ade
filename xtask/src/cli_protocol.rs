//! The command line knows no protocol JSON: it goes through `client::chat` and the other typed functions of `client`.

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::Source;

/// Calls that send what the caller made up itself.
const UNTYPED_CALL: &str = r"\.\s*(dispatch|request|notify)\s*\(";

/// Names of actions, as a string that begins with the name of a channel.
const ACTION_NAME: &str = r#""(chat|session|root)/[^"\s]*"?"#;

pub(crate) fn check_cli_protocol(repository: &Repository) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for source in repository.sources(|name| name.starts_with("crates/cli/src/")) {
        wrong.extend(find_protocol(&source)?);
    }
    Ok(wrong)
}

fn find_protocol(source: &Source) -> Result<Vec<String>> {
    let views = [(pattern(UNTYPED_CALL)?, &source.code), (pattern(ACTION_NAME)?, &source.literals)];
    let found = views.iter().flat_map(|(pattern, view)| {
        pattern.find_iter(view).map(|found| {
            format!(
                "{}:{}: `{}` is of the protocol: use the typed functions of `client`",
                source.name,
                source.line_of(found.start()) + 1,
                found.as_str()
            )
        })
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        find_protocol(&Source::new("a.rs", text)).unwrap()
    }

    #[test]
    fn untyped_calls_and_names_of_actions_are_found() {
        assert_eq!(
            found("let a = 1;\nlive.dispatch(a, json!({}));"),
            ["a.rs:2: `.dispatch(` is of the protocol: use the typed functions of `client`"]
        );
        assert_eq!(found("live\n    .request(\"ping\")").len(), 1);
        assert_eq!(found("connection.notify(a)").len(), 1);
        assert_eq!(
            found("match kind { \"chat/delta\" => {} }"),
            ["a.rs:1: `\"chat/delta\"` is of the protocol: use the typed functions of `client`"]
        );
        assert_eq!(found("let a = [\"session/titleChanged\", \"root/a\"];").len(), 2);
    }

    #[test]
    fn typed_calls_comments_and_tests_are_fine() {
        let text =
            "chat.send(a); // not .dispatch(\"chat/delta\")\nlet a = \"in the chat/session\";";
        assert_eq!(found(text), Vec::<String>::new());
        let text = "#[cfg(test)]\nmod tests { fn a() { b.request(\"chat/delta\"); } }";
        assert_eq!(found(text), Vec::<String>::new());
    }
}
