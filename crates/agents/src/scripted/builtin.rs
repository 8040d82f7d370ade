//! The built-in script: a first session that works, and a playground for client builders.
//!
//! Promises: it always loads (a test holds it), and it answers every message.

use std::sync::{Arc, LazyLock};

use super::script::Script;

const BUILTIN: &str = include_str!("builtin.json");

/// One for all agents of a process: what it looks for in messages is compiled once.
pub(super) fn script() -> Arc<Script> {
    static SCRIPT: LazyLock<Arc<Script>> = LazyLock::new(|| {
        let script = Script::parse(BUILTIN);
        let script =
            script.unwrap_or_else(|error| unreachable!("the built-in script loads: {error}"));
        Arc::new(script)
    });
    Arc::clone(&SCRIPT)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::super::step::ScriptStep;
    use super::*;

    /// Content that a scene names must be content that the scene stores: it is named by its digest.
    #[test]
    fn content_that_is_named_is_there() {
        let script = script();
        let steps = script.scenes.iter().flat_map(|scene| &scene.steps);
        let digests: Vec<String> = steps
            .filter_map(|step| match step {
                ScriptStep::ContentRef(content) => Some(Sha256::digest(&content.text)),
                _ => None,
            })
            .map(|digest| wire::Digest::new(digest.into()).to_hex())
            .collect();
        let named: Vec<&str> =
            BUILTIN.split("ahp-content:/sha256/").skip(1).map(|after| &after[..64]).collect();
        assert!(!named.is_empty());
        for digest in named {
            assert!(digests.iter().any(|known| known == digest), "{digest}");
        }
    }

    #[test]
    fn every_message_is_answered() {
        let script = script();
        let scene = |text: &str| script.scene_for(text).map(|(n, ..)| n);
        let last = script.scenes.len() - 1;
        assert_eq!(scene("what is the weather?"), Some(last));
        assert_eq!(scene(""), Some(last));
        let named = [
            "help", "hello", "stream 5", "think", "fail", "hang", "tool", "ask", "options", "edit",
            "subagent", "image", "prompt",
        ];
        for text in named {
            assert!(scene(text).is_some_and(|n| n < last), "{text}");
            assert_eq!(scene(text), scene(&text.to_uppercase()), "{text}");
        }
    }
}
