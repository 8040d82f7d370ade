//! Rules of the project and the user: those that always hold, and those about certain files, which hold from the moment on
//! when a message names such a file or a call reads or writes one (CU-8).
//!
//! Promises: what is read is bounded. A rule that cannot be read, or for which there is no room, stays listed.
//! Must not know: turns, models.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use workspace::discovery::{Child, Container, RuleFile};
use workspace::{InstructionFile, Workspace};

use crate::prompt::Prompt;
use crate::task;

/// What is read of a rule.
const RULE_BYTES_MAX: usize = 16 * 1_024;

/// Rules that hold, in all.
const RULES_BYTES_MAX: usize = 64 * 1_024;

/// Rules that are listed with the files they are about.
const LISTED_MAX: usize = 64;

/// Rules of a turn.
#[derive(Debug, Default)]
pub(super) struct FileRules {
    /// Those that do not hold yet.
    waiting: Vec<WaitingRule>,
    /// What those say that hold.
    bytes: usize,
}

#[derive(Debug)]
struct WaitingRule {
    uri: String,
    path: String,
    /// The files it is about; none once it was found that it cannot be used.
    globs: GlobSet,
    /// As it is listed for the model.
    line: String,
}

impl FileRules {
    /// Adds a rule that is switched on; returns it if it holds from the beginning. Blocks.
    pub(super) fn add(
        &mut self,
        workspace: &Workspace,
        container: &Container,
        child: &Child,
        rule: &RuleFile,
    ) -> Option<InstructionFile> {
        if container.holds_instructions() {
            return None; // those of the project itself are read with the directories above it
        }
        let path = workspace.display_uri(&child.uri);
        if rule.always_applies
            && let Some(file) = self.read(workspace, &child.uri, &path)
        {
            return Some(file);
        }
        if self.waiting.len() < LISTED_MAX {
            let about = if rule.globs.is_empty() {
                String::new()
            } else {
                format!(" (for {})", rule.globs.join(", "))
            };
            let description = child.description.as_deref().unwrap_or_default();
            self.waiting.push(WaitingRule {
                uri: child.uri.clone(),
                line: format!("{path}{about}: {description}"),
                path,
                globs: if rule.always_applies { GlobSet::empty() } else { compile(&rule.globs) },
            });
        }
        None
    }

    /// Those that do not hold, a line each.
    pub(super) fn listed(&self) -> Vec<String> {
        self.waiting.iter().map(|rule| rule.line.clone()).collect()
    }

    /// Takes the rules about any of these files out, with what they say. Blocks.
    pub(super) fn take_about(
        &mut self,
        workspace: &Workspace,
        files: &[String],
    ) -> Vec<InstructionFile> {
        let mut taken = Vec::new();
        for mut rule in std::mem::take(&mut self.waiting) {
            let is_about = |file: &String| rule.globs.is_match(file.trim_start_matches("./"));
            if !files.iter().any(is_about) {
                self.waiting.push(rule);
                continue;
            }
            match self.read(workspace, &rule.uri, &rule.path) {
                Some(file) => taken.push(file),
                None => {
                    rule.globs = GlobSet::empty();
                    self.waiting.push(rule);
                }
            }
        }
        taken
    }

    /// Puts the rules about files that the session has read or written by now into the prompt.
    pub(super) async fn apply(&mut self, workspace: &Workspace, prompt: &mut Prompt) {
        let files = workspace.known_files();
        let is_about = |rule: &WaitingRule| files.iter().any(|file| rule.globs.is_match(file));
        if !self.waiting.iter().any(is_about) {
            return;
        }
        let (mut rules, workspace) = (std::mem::take(self), workspace.clone());
        let reading = task::run_blocking(move || {
            let taken = rules.take_about(&workspace, &files);
            (rules, taken)
        });
        let (rules, taken) = reading.await;
        *self = rules;
        prompt.custom_instructions.files.extend(taken);
        prompt.custom_instructions.listed = self.listed();
    }

    /// What a rule says, if it can be read and there is room for it.
    fn read(&mut self, workspace: &Workspace, uri: &str, path: &str) -> Option<InstructionFile> {
        // One that cannot be read by now is not there.
        let text = workspace.read_instructions(uri, RULE_BYTES_MAX).ok()?;
        if self.bytes + text.len() > RULES_BYTES_MAX {
            return None;
        }
        self.bytes += text.len();
        Some(InstructionFile { path: path.to_owned(), text })
    }
}

/// The patterns of a rule. One that cannot be read is about no file.
fn compile(globs: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let glob = glob.trim_start_matches("./");
        if let Ok(glob) = GlobBuilder::new(glob).literal_separator(true).build() {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
}
