//! How tools are used well.

use std::borrow::Cow;

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolEfficiency {
    /// Whether there are tools at all.
    pub has_tools: bool,
}

impl Kind for ToolEfficiency {
    const ID: &'static str = "tool_efficiency";
    const LABEL: &'static str = "Tool efficiency";
    const DESCRIPTION: &'static str = "How to use tools well and sparingly.";
    const BYTES_MAX: usize = 1_024;

    fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self.has_tools {
            true => {
                "Use your tools to look before you answer and to do what is asked. Make independent calls together. When a \
                 call fails, read why and try something else. When the user denies a call, do not repeat it."
            }
            false => "You have no tools: say what to do, and do not pretend to have done it.",
        })
    }
}
