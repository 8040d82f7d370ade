//! The repository as the checks read it: every file once, every source split once, every pattern compiled once.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::source::{Source, is_test_file};

/// Where the sources are that checks look into.
const CRATES: &str = "crates/";

/// Every file that git tracks or would track.
pub(crate) struct Repository {
    root: PathBuf,
    /// In the order of git's list.
    names: Vec<String>,
    /// Of those that are text.
    texts: BTreeMap<String, String>,
    sources: OnceCell<Vec<Source>>,
}

impl Repository {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let names = list_files(root)?;
        let texts = names.iter().filter_map(|name| {
            // What is not text is not looked at.
            let text = std::fs::read_to_string(root.join(name)).ok()?;
            Some((name.clone(), text))
        });
        Ok(Self { root: root.to_owned(), texts: texts.collect(), names, sources: OnceCell::new() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The paths of all files, from the root.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The text of a file that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        self.find_text(name).with_context(|| format!("{name} cannot be read"))
    }

    /// The text of a file, if it is there and is text.
    pub(crate) fn find_text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// All files that are text, with their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.texts.iter();
        texts.map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The sources of crates whose path `wanted` accepts, without test files.
    pub(crate) fn sources(&self, wanted: impl Fn(&str) -> bool) -> Vec<Source> {
        let sources = self
            .sources
            .get_or_init(|| {
                let texts = self.texts();
                let sources = texts.filter(|(name, _)| {
                    name.starts_with(CRATES) && name.ends_with(".rs") && !is_test_file(name)
                });
                sources.map(|(name, text)| Source::new(name, text)).collect()
            })
            .iter()
            .filter(|source| wanted(&source.name));
        sources.cloned().collect()
    }

    /// A repository without files, for tests.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self {
            root: PathBuf::from("."),
            names: Vec::new(),
            texts: BTreeMap::new(),
            sources: OnceCell::new(),
        }
    }
}

fn list_files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git did not run")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut names: Vec<String> =
        String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect();
    // A file that was deleted and not committed yet is still in git's list.
    names.retain(|name| root.join(name).exists());
    Ok(names)
}

/// A pattern, compiled when it is first asked for: that takes longer than most files take to be searched.
pub(crate) fn pattern(text: &str) -> Result<Regex> {
    thread_local! {
        static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(known) = compiled.get(text) {
            return Ok(known.clone());
        }
        let new = Regex::new(text)?;
        compiled.insert(text.to_owned(), new.clone());
        Ok(new)
    })
}
