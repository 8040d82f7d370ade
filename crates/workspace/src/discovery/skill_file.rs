//! Skills of a project: directories with a `SKILL.md`.

use std::sync::Arc;

use compositor::command::{CommandEffect, Entry, Source};

use super::customization::{Child, ChildContent, Container};
use super::describe;
use super::front_matter::{self, Document};
use super::scan::Scan;
use crate::directory::{Directory, EntryKind};
use crate::{FileError, Workspace, WorkspacePath};

const FILE: &str = "SKILL.md";

/// How much of a file is read for its front matter.
const HEAD_BYTES_MAX: usize = 16 * 1_024;

const NAME_BYTES_MAX: usize = 64;

/// A skill as people and models see it in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub invoked_by: InvokedBy,
    /// The `file:` URI of its `SKILL.md`.
    pub uri: String,
    /// The command it declares, without a slash.
    trigger: Option<String>,
    path: WorkspacePath,
}

/// Who may ask for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvokedBy {
    Anybody,
    /// Not listed for people.
    Models,
    /// Not listed for models: a user must name it.
    Users,
    Nobody,
}

impl Skill {
    /// Whether it is listed for people.
    pub fn is_for_users(&self) -> bool {
        matches!(self.invoked_by, InvokedBy::Anybody | InvokedBy::Users)
    }

    /// Whether it is listed for models.
    pub fn is_for_models(&self) -> bool {
        matches!(self.invoked_by, InvokedBy::Anybody | InvokedBy::Models)
    }
}

/// A skill in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillBody {
    pub text: String,
    /// The skill's directory, as a tool would be given it.
    pub directory: String,
    /// There are other files in it.
    pub has_other_files: bool,
}

/// Why a skill cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("there is no such skill")]
    Unknown { known: Vec<String> },
    #[error("the skill {name} does not exist any more")]
    Gone { name: String },
    #[error("the skill {name} cannot be used: {reason}")]
    Invalid { name: String, reason: String },
    #[error(transparent)]
    File(#[from] FileError),
}

/// Whether a skill can have this name: a mention of it must not end before it does (C-066).
pub fn is_skill_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(char::is_alphanumeric)
        && name.chars().all(is_allowed)
        && !name.ends_with(['.', ':'])
}

/// Adds the skills of a directory to a container.
pub(super) fn find(scan: &mut Scan<'_>, directory: &Directory, container: &mut Container) {
    // What cannot be listed is a warning.
    let listing = scan.list(directory);
    for entry in listing.iter().flat_map(|listing| &listing.entries) {
        if !matches!(entry.kind, EntryKind::Directory | EntryKind::Link) {
            continue;
        }
        let Some(directory) = entry.name.to_str() else {
            // It could not be typed.
            continue;
        };
        let path = entry.path.join(FILE);
        let Some((text, is_cut)) = scan.read(&path, HEAD_BYTES_MAX) else {
            // It is not a skill, or a warning says what is wrong with it.
            continue;
        };
        match parse_skill(&text, is_cut, directory, &path, scan.uri(&path)) {
            Ok(skill) => {
                let child = Child {
                    name: skill.name.clone(),
                    uri: skill.uri.clone(),
                    range: None,
                    description: Some(skill.description.clone()).filter(|text| !text.is_empty()),
                    content: ChildContent::Skill(skill),
                };
                if !scan.add_child(container, child, &path) {
                    return;
                }
            }
            Err(reason) => scan.warn_invalid(&path, &reason),
        }
    }
}

fn parse_skill(
    text: &str,
    is_cut: bool,
    directory: &str,
    path: &WorkspacePath,
    uri: String,
) -> Result<Skill, String> {
    let document = front_matter::parse(text).map_err(|reason| {
        if is_cut {
            format!("in its first {} KiB, {reason}", HEAD_BYTES_MAX / 1_024)
        } else {
            reason
        }
    })?;
    let name = document.field("name").unwrap_or(directory);
    if !is_skill_name(name) {
        return Err("its name cannot be typed".to_owned());
    }
    let trigger = document.field("command").or_else(|| document.field("trigger"));
    Ok(Skill {
        name: name.to_owned(),
        description: describe(document.field("description"), document.body).unwrap_or_default(),
        invoked_by: invoked_by(&document),
        uri,
        trigger: trigger.map(|name| name.trim_start_matches('/').to_owned()),
        path: path.clone(),
    })
}

pub(super) fn invoked_by(document: &Document<'_>) -> InvokedBy {
    let is_not_for_users = document.is_false("user-invocable")
        || document.is_true("disable-user-invocation")
        || document.is_true("disableUserInvocation");
    let is_not_for_models =
        document.is_true("disable-model-invocation") || document.is_true("disableModelInvocation");
    match (is_not_for_users, is_not_for_models) {
        (false, false) => InvokedBy::Anybody,
        (true, false) => InvokedBy::Models,
        (false, true) => InvokedBy::Users,
        (true, true) => InvokedBy::Nobody,
    }
}

impl Skill {
    /// The command it declares.
    pub(super) fn command(&self) -> Option<(&str, Entry)> {
        let trigger = self.trigger.as_deref().filter(|_| self.is_for_users())?;
        let entry = Entry {
            source: Source::Skill,
            description: Some(self.description.clone()).filter(|text| !text.is_empty()),
            argument_hint: None,
            effect: CommandEffect::Skill { skill: self.name.clone() },
        };
        Some((trigger, entry))
    }
}

impl Workspace {
    /// Reads a skill in full, at most `bytes_max` of its file. A session gets a skill again as it got it first, though the
    /// file may have changed since.
    pub fn read_skill(&self, name: &str, bytes_max: usize) -> Result<Arc<SkillBody>, SkillError> {
        let skills = self.discover().skills;
        // One that models may not choose is read if a user named it.
        let mut readable = skills.iter().filter(|skill| skill.invoked_by != InvokedBy::Nobody);
        let Some(skill) = readable.find(|skill| skill.name == name) else {
            let known =
                skills.into_iter().filter(Skill::is_for_models).map(|skill| skill.name).collect();
            return Err(SkillError::Unknown { known });
        };
        // Not by its name: when this one is switched off, another may have it.
        if let Some(body) = self.remembered_skill(&skill.uri) {
            return Ok(body);
        }
        let body = self.read_skill_body(skill, bytes_max)?;
        Ok(self.remember_skill(&skill.uri, body))
    }

    fn read_skill_body(&self, skill: &Skill, bytes_max: usize) -> Result<SkillBody, SkillError> {
        let name = &skill.name;
        let prefix = self
            .read_prefix(&skill.path, bytes_max)?
            .ok_or_else(|| SkillError::Gone { name: name.clone() })?;
        let text = String::from_utf8_lossy(&prefix.bytes);
        let document = front_matter::parse(&text)
            .map_err(|reason| SkillError::Invalid { name: name.clone(), reason })?;
        let mut body = document.body.trim().to_owned();
        if prefix.is_cut {
            // The last character may be half of one.
            let body_end = body.trim_end_matches('\u{fffd}').len();
            body.truncate(body_end);
            let path = self.display_path(&skill.path);
            body.push_str(&format!("\n[there is more in {path}]"));
        }
        let directory = skill.path.parent();
        let listing = self
            .directory_if_exists(&directory)?
            .map(|directory| self.list_directory(&directory))
            .transpose()?;
        Ok(SkillBody {
            text: body,
            has_other_files: listing.is_some_and(|listing| listing.entries.len() > 1),
            directory: self.display_path(&directory),
        })
    }
}
