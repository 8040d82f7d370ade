//! The system prompt: an ordered list of named, bounded sections.
//!
//! Promises: every agent renders here, always all sections in the same order, so that whoever rewrites one finds it, and
//! an empty one can be filled. Rendering reads nothing: facts are handed in.
//! Must not know: models, channels, who rewrites a section.

mod custom_instructions;
mod environment_context;
mod gather;
mod runtime_instructions;
mod table;
mod tool_instructions;

use std::borrow::Cow;

use agent_api::Section;
pub use custom_instructions::CustomInstructions;
pub use environment_context::EnvironmentContext;
pub use gather::{ProjectFacts, ProjectFactsReader};
pub use runtime_instructions::RuntimeInstructions;
use table::{SECTIONS, SectionSpec};
pub use tool_instructions::{OfferedSkill, ToolInstructions};
use wire::ext::system_message_transform::SystemMessageSection;

/// Everything a system prompt is made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// What the agent is called.
    pub agent_name: String,
    pub has_tools: bool,
    pub may_change_files: bool,
    pub environment_context: EnvironmentContext,
    pub tool_instructions: ToolInstructions,
    pub custom_instructions: CustomInstructions,
    pub runtime_instructions: RuntimeInstructions,
}

impl Prompt {
    /// All sections, in order.
    pub fn render(&self) -> Vec<Section> {
        let section = |spec: &SectionSpec| {
            let text = clip((spec.text)(self), spec.bytes_max);
            Section::new(spec.id, text)
        };
        SECTIONS.iter().map(section).collect()
    }
}

/// The catalogue: every section that is ever rendered, in order, none of them restricted.
pub fn catalogue() -> Vec<SystemMessageSection> {
    let entry = |spec: &SectionSpec| SystemMessageSection {
        id: spec.id.to_owned(),
        label: spec.label.to_owned(),
        description: Some(spec.description.to_owned()),
        restricted: None,
    };
    SECTIONS.iter().map(entry).collect()
}

/// The sections as one text, for a model's server that takes no more structure: empty ones leave nothing behind.
pub fn join(sections: &[Section]) -> String {
    let bytes = sections.iter().map(|section| section.content.len() + 2);
    let mut text = String::with_capacity(bytes.sum());
    for section in sections {
        let content = section.content.trim_end();
        if content.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(content);
    }
    text
}

/// Whether a section is likely to change from one request to the next: what stands before it can be cached.
pub fn changes_often(id: &str) -> bool {
    matches!(id, "environment_context" | "runtime_instructions")
}

/// Put where a text was cut off.
const CUT: &str = "\n[cut off here]";

/// At most so many bytes of a text, and a note where it was cut.
fn clip(text: Cow<'static, str>, bytes_max: usize) -> Cow<'static, str> {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(CUT.len()));
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

/// One line of what may hold several: a name or a path must not be able to write lines of its own into the prompt.
fn one_line(text: &str, bytes_max: usize) -> String {
    let end = text.floor_char_boundary(bytes_max);
    let line = text[..end].chars();
    line.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
