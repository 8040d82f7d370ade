//! What good work is.

use std::borrow::Cow;

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guidelines;

impl Kind for Guidelines {
    const ID: &'static str = "guidelines";
    const LABEL: &'static str = "Guidelines";
    const DESCRIPTION: &'static str = "How to go about a task.";
    const BYTES_MAX: usize = 2 * 1_024;

    fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(
            "Do what was asked, all of it, and nothing beside it. Find the cause before you mend the symptom. If something \
             essential is unclear and cannot be found out, ask. If you could not do or check something, say so.",
        )
    }
}
