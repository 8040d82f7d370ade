//! Words that may stand first behind a command, proposed while they are typed.
//!
//! Must not know: which commands there are.

use super::model_argument::ArgumentProposal;

/// A word, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArgumentWord {
    word: &'static str,
    about: &'static str,
}

impl ArgumentWord {
    pub(crate) const fn new(word: &'static str, about: &'static str) -> Self {
        Self { word, about }
    }
}

/// What the word at the cursor may become; nothing behind the first word, which is the user's own.
pub(crate) fn propose_words(
    text: &str,
    cursor: usize,
    words: &[ArgumentWord],
) -> Vec<ArgumentProposal> {
    let typed = text.get(..cursor).unwrap_or(text);
    let word = typed.split_once(char::is_whitespace);
    let word = word.map_or("", |(_, word)| word.trim_start());
    if word.contains(char::is_whitespace) {
        return Vec::new();
    }
    let start = typed.len() - word.len();
    let fitting = words.iter().filter(|one| one.word.starts_with(word));
    let proposals = fitting.map(|one| ArgumentProposal {
        replaces: start..typed.len(),
        text: one.word.to_owned(),
        about: one.about.to_owned(),
    });
    proposals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_proposed_and_no_other() {
        let words = [
            ArgumentWord::new("resolve", "done"),
            ArgumentWord::new("reply", "answer"),
            ArgumentWord::new("add", "more"),
        ];
        let proposed = |text: &str| {
            let proposals = propose_words(text, text.len(), &words).into_iter();
            proposals.map(|one| one.text).collect::<Vec<String>>()
        };
        assert_eq!(proposed("/x "), ["resolve", "reply", "add"]);
        assert_eq!(proposed("/x re"), ["resolve", "reply"]);
        assert_eq!(proposed("/x reply"), ["reply"]);
        assert_eq!(proposed("/x reply 1"), [""; 0]);
        assert_eq!(proposed("/x nothing"), [""; 0]);
        let replaces = propose_words("/x  ad", 6, &words)[0].replaces.clone();
        assert_eq!(replaces, 4..6);
    }
}
