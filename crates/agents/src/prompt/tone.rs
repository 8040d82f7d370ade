//! How the agent talks.

use std::borrow::Cow;

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tone;

impl Kind for Tone {
    const ID: &'static str = "tone";
    const LABEL: &'static str = "Tone";
    const DESCRIPTION: &'static str = "How the agent talks to the user.";
    const BYTES_MAX: usize = 1_024;

    fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(
            "Talk to the user in short, plain sentences, in the language they write in. Say what you found and what you \
             did; leave out what they can see themselves.",
        )
    }
}
