//! Sentences for the user about a message: short, and a bounded number of them whatever was sent.

/// A message with a thousand bad attachments does not become a thousand sentences.
const SENTENCES_MAX: usize = 64;
/// As much of a name as a sentence needs.
const NAME_CHARS_MAX: usize = 120;

#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    sentences: Vec<String>,
    left_out: usize,
}

impl Diagnostics {
    pub(crate) fn report(&mut self, sentence: impl FnOnce() -> String) {
        if self.sentences.len() < SENTENCES_MAX {
            self.sentences.push(sentence());
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.sentences.push(format!("and {} more like these", self.left_out));
        }
        self.sentences
    }
}

/// A name in a sentence: between quotes, on one line, not too long.
pub(crate) fn quoted(name: &str) -> String {
    let mut quoted = String::from("'");
    for (index, c) in name.chars().enumerate() {
        if index == NAME_CHARS_MAX {
            quoted.push('…');
            break;
        }
        quoted.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_line_and_sentences_are_few() {
        assert_eq!(quoted("a\nb\0"), "'a\u{fffd}b\u{fffd}'");
        assert_eq!(quoted(&"é".repeat(1_000)).chars().count(), 123);
        let mut diagnostics = Diagnostics::default();
        (0..1_000).for_each(|n| diagnostics.report(|| n.to_string()));
        let sentences = diagnostics.finish();
        assert_eq!(sentences.len(), 65);
        assert_eq!(sentences[64], "and 936 more like these");
    }
}
