//! The system prompt: an ordered list of named sections, each a small bounded value in a file of its own.
//!
//! Promises: every agent of this house renders here, always all sections in the same order, so that whoever rewrites one
//! finds it, and an empty one can be filled. Nothing here reads the world: facts are handed in.
//! Must not know: models, channels, who rewrites a section.

mod code_change_rules;
mod custom_instructions;
mod environment_context;
mod gather;
mod guidelines;
mod identity;
mod last_instructions;
mod runtime_instructions;
mod safety;
mod tone;
mod tool_efficiency;
mod tool_instructions;

use std::borrow::Cow;

pub use code_change_rules::CodeChangeRules;
pub use custom_instructions::CustomInstructions;
pub use environment_context::EnvironmentContext;
pub use gather::{Facts, Gatherer};
pub use guidelines::Guidelines;
pub use identity::Identity;
pub use last_instructions::LastInstructions;
pub use runtime_instructions::RuntimeInstructions;
pub use safety::Safety;
pub use tone::Tone;
pub use tool_efficiency::ToolEfficiency;
pub use tool_instructions::{Skill, ToolInstructions};
use wire::ext::system_message_transform::SystemMessageSection;

/// A rendered section: its name and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub id: Cow<'static, str>,
    pub content: Cow<'static, str>,
}

impl Section {
    pub fn new(id: impl Into<Cow<'static, str>>, content: impl Into<Cow<'static, str>>) -> Self {
        Self {
            id: id.into(),
            content: content.into(),
        }
    }
}

/// One kind of section: what it is called, and its text.
pub trait Kind {
    const ID: &'static str;
    /// What people call it.
    const LABEL: &'static str;
    /// What it holds.
    const DESCRIPTION: &'static str;
    /// Its text has at most this many bytes, before anybody rewrites it.
    const BYTES_MAX: usize;

    /// The text; may be empty, and may be longer than it should.
    fn text(&self) -> Cow<'static, str>;
}

/// Everything a system prompt is made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    pub identity: Identity,
    pub tone: Tone,
    pub tool_efficiency: ToolEfficiency,
    pub environment_context: EnvironmentContext,
    pub code_change_rules: CodeChangeRules,
    pub guidelines: Guidelines,
    pub safety: Safety,
    pub tool_instructions: ToolInstructions,
    pub custom_instructions: CustomInstructions,
    pub runtime_instructions: RuntimeInstructions,
    pub last_instructions: LastInstructions,
}

impl Prompt {
    /// All sections, in order.
    pub fn render(&self) -> Vec<Section> {
        vec![
            section(&self.identity),
            section(&self.tone),
            section(&self.tool_efficiency),
            section(&self.environment_context),
            section(&self.code_change_rules),
            section(&self.guidelines),
            section(&self.safety),
            section(&self.tool_instructions),
            section(&self.custom_instructions),
            section(&self.runtime_instructions),
            section(&self.last_instructions),
        ]
    }
}

fn section<K: Kind>(kind: &K) -> Section {
    Section::new(K::ID, clipped(kind.text(), K::BYTES_MAX))
}

/// The catalogue: every section that is ever rendered, in order, none of them restricted.
pub fn catalogue() -> Vec<SystemMessageSection> {
    vec![
        entry::<Identity>(),
        entry::<Tone>(),
        entry::<ToolEfficiency>(),
        entry::<EnvironmentContext>(),
        entry::<CodeChangeRules>(),
        entry::<Guidelines>(),
        entry::<Safety>(),
        entry::<ToolInstructions>(),
        entry::<CustomInstructions>(),
        entry::<RuntimeInstructions>(),
        entry::<LastInstructions>(),
    ]
}

fn entry<K: Kind>() -> SystemMessageSection {
    SystemMessageSection {
        id: K::ID.to_owned(),
        label: K::LABEL.to_owned(),
        description: Some(K::DESCRIPTION.to_owned()),
        restricted: None,
    }
}

/// The sections as one text, for a model's server that takes no more structure: empty ones leave nothing behind.
pub fn joined(sections: &[Section]) -> String {
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

/// Put where a text was cut off.
const CUT: &str = "\n[cut off here]";

/// At most so many bytes of a text, and a word where it was cut.
fn clipped(text: Cow<'static, str>, bytes_max: usize) -> Cow<'static, str> {
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
