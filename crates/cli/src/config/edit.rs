//! `greenroom config edit` and `rules edit`: the user's editor on a copy of a file, which replaces it when it is right.
//!
//! Promises: until then the file is as it was, whatever happens to the editor; a link stays a link. What was typed is never lost:
//! a copy that does not become the file is left, and named.

use std::fs;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::{find_problem, when_used};
use crate::ask::read_answer;
use crate::exit::Exit;
use crate::models::config_file::lock;
use crate::output::print;
use crate::private_directory::create_parent_of;
use crate::terminal::escape;

const EDITOR_DEFAULT: &str = "vi";

/// The settings file.
pub(super) fn run(data: &Path, path: &Path) -> anyhow::Result<Exit> {
    edit_file(&FileToEdit {
        path,
        template: host::settings_template(),
        find_problem: &|copy| Ok(find_problem(data, copy)?),
        saved: format!("Saved {}. {}", path.display(), when_used(data)),
        kept: "Saved with its mistakes. A host does not start with it.",
    })
}

/// A file to be edited, and what is known of it.
pub(crate) struct FileToEdit<'a> {
    pub(crate) path: &'a Path,
    /// What is edited if there is no file.
    pub(crate) template: String,
    /// Why a file cannot be used, in words.
    pub(crate) find_problem: &'a dyn Fn(&Path) -> anyhow::Result<Option<String>>,
    /// What is said when it is saved.
    pub(crate) saved: String,
    /// What is said when it is saved although it is wrong.
    pub(crate) kept: &'a str,
}

pub(crate) fn edit_file(file: &FileToEdit<'_>) -> anyhow::Result<Exit> {
    let path = file.path;
    // The file itself, not a link to it: people keep their settings elsewhere.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = match fs::read_to_string(&target) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let copy = Copy::create(&target, before.as_deref().unwrap_or(&file.template))?;
    loop {
        if let Err(error) = open_editor(&copy.path) {
            if copy.is_unchanged()? {
                copy.remove()?;
                return Err(error);
            }
            let copy = copy.path.display().to_string();
            return Err(error.context(format!("what you typed is in {copy}")));
        }
        if copy.is_unchanged()? {
            copy.remove()?;
            print("Nothing was changed.\n")?;
            return Ok(Exit::Complete);
        }
        let Some(problem) = (file.find_problem)(&copy.path)? else {
            copy.replace(&target, before.as_deref())?;
            print(&format!("{}\n", file.saved))?;
            return Ok(Exit::Complete);
        };
        // It is the copy that was checked; the user knows the file by its own name.
        let problem =
            problem.replace(&copy.path.display().to_string(), &path.display().to_string());
        eprintln!("greenroom: {}", escape(&problem));
        match choose()? {
            Choice::EditAgain => {}
            Choice::Keep => {
                copy.replace(&target, before.as_deref())?;
                eprintln!("{}", file.kept);
                return Ok(Exit::Usage);
            }
            Choice::Discard => {
                eprintln!(
                    "{} was not changed; what you typed is in {}.",
                    path.display(),
                    copy.path.display()
                );
                return Ok(Exit::Usage);
            }
        }
    }
}

/// What becomes of a file that is wrong.
enum Choice {
    EditAgain,
    Keep,
    Discard,
}

fn choose() -> anyhow::Result<Choice> {
    if !std::io::stdin().is_terminal() {
        return Ok(Choice::Discard);
    }
    loop {
        let answer = read_answer(
            "Edit again (e), keep it anyway (k), or leave the old file unchanged (q)? ",
        )?;
        match answer.as_str() {
            "e" | "edit" => return Ok(Choice::EditAgain),
            "k" | "keep" => return Ok(Choice::Keep),
            // The end of input is no wish to keep anything.
            "q" | "quit" | "" => return Ok(Choice::Discard),
            _ => {}
        }
    }
}

/// The copy that is edited, beside the file: so that it replaces it in one step.
struct Copy {
    path: PathBuf,
    /// What it held at first; absent if it holds changes of an earlier time.
    original: Option<String>,
}

impl Copy {
    fn create(target: &Path, text: &str) -> anyhow::Result<Self> {
        let mut name = target.as_os_str().to_owned();
        name.push(".edit.toml");
        let path = PathBuf::from(name);
        if path.exists() {
            eprintln!(
                "{} holds earlier changes that had mistakes; it is opened instead.",
                path.display()
            );
            return Ok(Self { path, original: None });
        }
        create_parent_of(&path).with_context(|| format!("{} cannot be written", path.display()))?;
        let mode = fs::metadata(target).map_or(0o600, |file| file.permissions().mode() & 0o777);
        let opened = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { path, original: Some(text.to_owned()) })
    }

    fn is_unchanged(&self) -> anyhow::Result<bool> {
        let text = fs::read_to_string(&self.path)
            .with_context(|| format!("{} cannot be read", self.path.display()))?;
        Ok(self.original.as_ref() == Some(&text))
    }

    /// Becomes the file, unless that was changed by somebody else meanwhile: `before` is what it held at first.
    fn replace(&self, target: &Path, before: Option<&str>) -> anyhow::Result<()> {
        let unwritable = || format!("{} cannot be written", target.display());
        let _lock = lock(target).with_context(unwritable)?;
        if fs::read_to_string(target).ok().as_deref() != before {
            bail!(
                "{} was changed while you edited it, and is left as it is now; what you typed is in {}",
                target.display(),
                self.path.display()
            );
        }
        fs::rename(&self.path, target)
            .with_context(|| format!("{} cannot be replaced", target.display()))
    }

    fn remove(&self) -> anyhow::Result<()> {
        fs::remove_file(&self.path)
            .with_context(|| format!("{} cannot be removed", self.path.display()))
    }
}

/// Runs the editor that $VISUAL or $EDITOR names until it ends.
fn open_editor(path: &Path) -> anyhow::Result<()> {
    let named = |name: &str| {
        let text = std::env::var(name).ok();
        text.filter(|text| !text.trim().is_empty())
    };
    let editor =
        named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| EDITOR_DEFAULT.to_owned());
    // Through the shell, since the variable may hold options.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(path)
        .status()
        .with_context(|| format!("the editor `{editor}` could not be started; set $EDITOR"))?;
    if !status.success() {
        bail!(
            "the editor `{editor}` ended with an error ({status}); the file is as it was. $EDITOR names another"
        );
    }
    Ok(())
}
