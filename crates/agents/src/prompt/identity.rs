//! Who the agent is.

use std::borrow::Cow;

use super::{Kind, one_line};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// What the agent is called.
    pub name: String,
}

impl Kind for Identity {
    const ID: &'static str = "identity";
    const LABEL: &'static str = "Identity";
    const DESCRIPTION: &'static str = "Who the agent is and for whom it works.";
    const BYTES_MAX: usize = 1_024;

    fn text(&self) -> Cow<'static, str> {
        let name = one_line(&self.name, 128);
        Cow::Owned(format!(
            "You are {name}, a coding agent. You work for the user in their working directory."
        ))
    }
}
