//! The script that ships with the house: a first session that works, and a playground for client builders.
//!
//! Promises: it always loads (a test holds it), and it answers every message.

use super::script::Script;

const BUILTIN: &str = include_str!("builtin.json");

pub(super) fn script() -> Script {
    Script::parse(BUILTIN)
        .unwrap_or_else(|error| unreachable!("the built-in script loads: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
