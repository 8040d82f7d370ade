//! Chips: a long paste or a picture, shown as one short label in the text.
//!
//! Promises: a chip is one character to the cursor, so it is deleted and moved whole; what it stands for comes out again
//! when the text is sent.
//! Must not know: keys, terminals.

use client::chat::MessageAttachment;

/// The characters that stand for chips: private to us, and nothing a font draws.
const FIRST: u32 = 0x10_0000;
const COUNT_MAX: u32 = 0x1000;
/// Lines and bytes of a paste that are shown as they are.
const LINES_MAX: usize = 20;
const BYTES_MAX: usize = 4_000;

/// What the chips in a text stand for.
#[derive(Debug, Default, Clone)]
pub(super) struct Chips(Vec<Chip>);

#[derive(Debug, Clone)]
struct Chip {
    label: String,
    content: ChipContent,
}

#[derive(Debug, Clone)]
enum ChipContent {
    /// A text that was pasted.
    Text(String),
    /// Something that goes along with the message; its label stays in the text.
    Attached(MessageAttachment),
}

impl Chips {
    /// The character for a pasted text, if it is too long to be shown.
    pub(super) fn fold(&mut self, text: &str) -> Option<char> {
        let lines = text.lines().count();
        if lines <= LINES_MAX && text.len() <= BYTES_MAX {
            return None;
        }
        let size = match lines {
            1 => format!("{} characters", text.chars().count()),
            lines => format!("{lines} lines"),
        };
        let label = self.free_label("pasted", &size);
        self.add(label, ChipContent::Text(text.to_owned()))
    }

    /// The character for something attached.
    pub(super) fn attach(&mut self, name: &str, attachment: MessageAttachment) -> Option<char> {
        let label = self.free_label("image", name);
        self.add(label, ChipContent::Attached(attachment))
    }

    /// A label that no other chip has.
    fn free_label(&self, what: &str, size: &str) -> String {
        let plain = format!("[{what} {size}]");
        let numbered = (2..).map(|number| format!("[{what} {size} #{number}]"));
        let is_free = |label: &String| self.0.iter().all(|chip| chip.label != *label);
        let mut labels = std::iter::once(plain.clone()).chain(numbered);
        labels.find(is_free).unwrap_or(plain)
    }

    fn add(&mut self, label: String, content: ChipContent) -> Option<char> {
        let index = u32::try_from(self.0.len()).ok()?;
        let character = char::from_u32(FIRST + index).filter(|_| index < COUNT_MAX)?;
        self.0.push(Chip { label, content });
        Some(character)
    }

    fn get(&self, c: char) -> Option<&Chip> {
        let index = u32::from(c).checked_sub(FIRST)?;
        self.0.get(usize::try_from(index).ok()?)
    }

    /// What is shown for a character, if it is a chip.
    pub(super) fn label(&self, c: char) -> Option<&str> {
        self.get(c).map(|chip| chip.label.as_str())
    }

    /// The text with everything that was folded.
    pub(super) fn unfold(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        for c in text.chars() {
            match self.get(c) {
                None => whole.push(c),
                Some(chip) => match &chip.content {
                    ChipContent::Text(text) => whole.push_str(text),
                    ChipContent::Attached(_) => whole.push_str(&chip.label),
                },
            }
        }
        whole
    }

    /// What is attached by a text, with the label that names it there.
    pub(super) fn attachments(&self, text: &str) -> Vec<(String, MessageAttachment)> {
        let chips = text.chars().filter_map(|c| self.get(c));
        let attached = chips.filter_map(|chip| match &chip.content {
            ChipContent::Attached(attachment) => Some((chip.label.clone(), attachment.clone())),
            ChipContent::Text(_) => None,
        });
        attached.collect()
    }
}

/// A text without characters that stand for chips: they are written out.
pub(super) fn without_chips(text: &str) -> String {
    let is_chip = |c: char| (FIRST..FIRST + COUNT_MAX).contains(&u32::from(c));
    if !text.contains(is_chip) {
        return text.to_owned();
    }
    let mut plain = String::new();
    for c in text.chars() {
        if is_chip(c) { plain.extend(c.escape_unicode()) } else { plain.push(c) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pastes_are_folded_and_unfolded() {
        let mut chips = Chips::default();
        assert_eq!(chips.fold("short\ntext"), None);
        let long = "line\n".repeat(21);
        let first = chips.fold(&long).unwrap();
        let second = chips.fold(&long).unwrap();
        let wide = chips.fold(&"x".repeat(5_000)).unwrap();
        assert_eq!(chips.label(first), Some("[pasted 21 lines]"));
        assert_eq!(chips.label(second), Some("[pasted 21 lines #2]"));
        assert_eq!(chips.label(wide), Some("[pasted 5000 characters]"));
        assert_eq!(chips.unfold(&format!("see {second}!")), format!("see {long}!"));
        assert_eq!(chips.label('x'), None);
    }

    #[test]
    fn a_text_from_elsewhere_holds_no_chips() {
        assert_eq!(without_chips("a\u{100000}b"), "a\\u{100000}b");
        assert_eq!(without_chips("Grüße \u{f0001}"), "Grüße \u{f0001}");
    }
}
