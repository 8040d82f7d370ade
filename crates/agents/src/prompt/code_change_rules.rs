//! How code is changed.

use std::borrow::Cow;

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeChangeRules {
    /// Whether the agent can change files at all.
    pub may_change: bool,
}

impl Kind for CodeChangeRules {
    const ID: &'static str = "code_change_rules";
    const LABEL: &'static str = "Code changes";
    const DESCRIPTION: &'static str = "Rules for changing files.";
    const BYTES_MAX: usize = 2 * 1_024;

    fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self.may_change {
            true => {
                "Read a file before you change it. Prefer small exact edits to rewriting whole files. Keep to the style of \
                 what is there. Paths are relative to the working directory. Check what you did, with the project's own \
                 tests where there are any."
            }
            false => "You cannot change files: say what you would change instead.",
        })
    }
}
