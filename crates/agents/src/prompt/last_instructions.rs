//! The last word before the conversation.

use std::borrow::Cow;

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastInstructions;

impl Kind for LastInstructions {
    const ID: &'static str = "last_instructions";
    const LABEL: &'static str = "Last instructions";
    const DESCRIPTION: &'static str = "The last word before the conversation.";
    const BYTES_MAX: usize = 1_024;

    fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed("Go on until the user's request is done, then say so briefly.")
    }
}
