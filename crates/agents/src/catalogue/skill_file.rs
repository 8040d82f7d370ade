//! Skills of a project: directories with a `SKILL.md`.

use compositor::Catalogue;
use compositor::command::{CommandEffect, Entry, Source};

use super::command_file::description;
use super::front_matter::{self, Document};
use super::survey::Survey;
use crate::tool::workspace::{Kind, Place};
use crate::tool::{ToolError, Workspace};

/// Where projects keep them; what is found first counts.
const DIRECTORIES: [&str; 2] = [".agents/skills", ".claude/skills"];

const FILE: &str = "SKILL.md";

/// How much of a file is looked at for what it says of itself.
const HEAD_BYTES_MAX: usize = 16 * 1_024;

const NAME_BYTES_MAX: usize = 64;

/// A skill as people and models are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub invoked_by: InvokedBy,
    /// The command it declares, without a slash.
    trigger: Option<String>,
    place: Place,
}

/// Who may ask for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvokedBy {
    Anybody,
    /// Not proposed to people.
    Models,
    /// Models are not told of it until a user names it.
    Users,
}

impl Skill {
    /// Whether people are told of it.
    pub fn is_for_users(&self) -> bool {
        self.invoked_by != InvokedBy::Models
    }

    /// Whether models are told of it.
    pub fn is_for_models(&self) -> bool {
        self.invoked_by != InvokedBy::Users
    }
}

/// Whether a skill can have this name: a mention of it must not end before it does (C-066).
pub(crate) fn is_skill_name(name: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(char::is_alphanumeric)
        && name.chars().all(belongs)
        && !name.ends_with(['.', ':'])
}

/// All skills there are. The first of a name counts.
pub(super) fn find_all(survey: &mut Survey<'_>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    for root in survey.workspace.roots() {
        for directory in DIRECTORIES {
            find(survey, &root.below(directory), &mut skills);
        }
    }
    skills
}

fn find(survey: &mut Survey<'_>, place: &Place, skills: &mut Vec<Skill>) {
    let Some(folder) = survey.directory(place) else {
        return;
    };
    let Some(listing) = survey.look_into(&folder) else {
        return;
    };
    for entry in &listing.entries {
        if !matches!(entry.kind, Kind::Directory | Kind::Link) {
            continue;
        }
        let Some(directory) = entry.name.to_str() else {
            continue;
        };
        let place = entry.place.below(FILE);
        let Some((text, is_cut)) = survey.read(&place, HEAD_BYTES_MAX) else {
            continue;
        };
        match skill_of(&text, is_cut, directory, &place) {
            Ok(skill) => match skills.iter().find(|known| known.name == skill.name) {
                None => skills.push(skill),
                Some(known) => {
                    let first = survey.workspace.absolute(&known.place);
                    let why = format!("{} has the same name and counts", first.display());
                    survey.warn_of(&place, &why);
                }
            },
            Err(why) => survey.warn_of(&place, &why),
        }
    }
}

fn skill_of(text: &str, is_cut: bool, directory: &str, place: &Place) -> Result<Skill, String> {
    let document = front_matter::read(text).map_err(|why| match is_cut {
        true => format!("in its first {} KiB, {why}", HEAD_BYTES_MAX / 1_024),
        false => why,
    })?;
    let name = document.field("name").unwrap_or(directory);
    if !is_skill_name(name) {
        return Err("its name cannot be typed".to_owned());
    }
    let trigger = document
        .field("command")
        .or_else(|| document.field("trigger"));
    Ok(Skill {
        name: name.to_owned(),
        description: description(document.field("description"), document.body).unwrap_or_default(),
        invoked_by: invoked_by(&document),
        trigger: trigger.map(|name| name.trim_start_matches('/').to_owned()),
        place: place.clone(),
    })
}

fn invoked_by(document: &Document<'_>) -> InvokedBy {
    let is_for_models_only = document.is_denied("user-invocable")
        || document.is_set("disable-user-invocation")
        || document.is_set("disableUserInvocation");
    if is_for_models_only {
        return InvokedBy::Models;
    }
    match document.is_set("disable-model-invocation") {
        true => InvokedBy::Users,
        false => InvokedBy::Anybody,
    }
}

/// Makes a command of every skill that asks for one.
pub(super) fn bind_triggers(survey: &mut Survey<'_>, skills: &[Skill], catalogue: &mut Catalogue) {
    for skill in skills.iter().filter(|skill| skill.is_for_users()) {
        let Some(trigger) = &skill.trigger else {
            continue;
        };
        let entry = Entry {
            source: Source::Skill,
            description: Some(skill.description.clone()).filter(|text| !text.is_empty()),
            argument_hint: None,
            effect: CommandEffect::Skill {
                skill: skill.name.clone(),
            },
        };
        if let Some(warning) = catalogue.insert(trigger, entry) {
            survey.warn_of(&skill.place, &warning);
        }
    }
}

/// What a skill says.
pub(crate) struct Body {
    pub(crate) text: String,
    /// The skill's directory, as a tool would be given it.
    pub(crate) directory: String,
    /// There are other files in it.
    pub(crate) has_company: bool,
}

/// Reads a skill in full, from the workspace it was found in. What is more than `bytes_max` is not told.
pub(crate) fn body_of(
    workspace: &Workspace,
    skill: &Skill,
    bytes_max: usize,
) -> Result<Body, ToolError> {
    let gone = || ToolError(format!("the skill {} is not there any more", skill.name));
    let beginning = workspace
        .beginning(&skill.place, bytes_max)?
        .ok_or_else(gone)?;
    let text = String::from_utf8_lossy(&beginning.bytes);
    let document = front_matter::read(&text).map_err(ToolError)?;
    let mut body = document.body.trim().to_owned();
    if beginning.is_cut {
        let body_end = body.trim_end_matches('\u{fffd}').len();
        body.truncate(body_end);
        let path = workspace.shown(&skill.place);
        body.push_str(&format!("\n[there is more in {path}]"));
    }
    let directory = skill.place.parent();
    let listing = workspace
        .folder_if_there(&directory)?
        .map(|folder| workspace.look_into(&folder))
        .transpose()?;
    Ok(Body {
        text: body,
        has_company: listing.is_some_and(|listing| listing.entries.len() > 1),
        directory: workspace.shown(&directory),
    })
}
