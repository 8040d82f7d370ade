//! A transform pack: a directory of Markdown files, each of which is put after sections of the system prompt or in their
//! place.
//!
//! Promises: an error names the file and says what would be right; files are applied in the order of
//! their names.

use std::path::Path;

use anyhow::{Context, bail};
use client::transform::{Rewrite, TransformHandler};
use wire::ext::system_message_transform::{
    SystemMessageTransformParams, SystemMessageTransformResult, SystemMessageTransformSection,
};

/// The largest file, and the most of them: what goes into a prompt is small.
const FILE_BYTES_MAX: u64 = 64 * 1_024;
const FILES_MAX: usize = 64;

/// What a file does to a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionMode {
    Append,
    Replace,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) file: String,
    pub(crate) sections: Vec<String>,
    pub(crate) mode: SectionMode,
    pub(crate) body: String,
}

/// All files of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RewriteRules {
    pub(crate) rules: Vec<Rule>,
}

impl RewriteRules {
    pub(crate) fn load(directory: &Path) -> anyhow::Result<Self> {
        let path_text = directory.display();
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("the pack {path_text} cannot be read"))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path =
                entry.with_context(|| format!("the pack {path_text} cannot be read"))?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            bail!(
                "the pack {path_text} holds no .md file; each one names its sections in its front matter"
            );
        }
        if paths.len() > FILES_MAX {
            bail!("the pack {path_text} holds more than {FILES_MAX} files");
        }
        let rules = paths.iter().map(|path| {
            let path_text = path.display();
            let bytes = std::fs::metadata(path).with_context(|| format!("{path_text}"))?.len();
            if bytes > FILE_BYTES_MAX {
                bail!("{path_text} has more than {FILE_BYTES_MAX} bytes");
            }
            let text = std::fs::read_to_string(path).with_context(|| format!("{path_text}"))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Rule::parse(&name, &text)
        });
        Ok(Self { rules: rules.collect::<anyhow::Result<_>>()? })
    }

    /// The pack without what it says about these sections.
    pub(crate) fn without(&self, ids: &[&str]) -> Self {
        let mut rules = self.rules.clone();
        for rule in &mut rules {
            rule.sections.retain(|id| !ids.contains(&id.as_str()));
        }
        Self { rules }
    }

    /// What the files make of a section; nothing if they leave it alone.
    pub(crate) fn apply(&self, id: &str, content: &str) -> Option<String> {
        let mut text: Option<String> = None;
        for rule in self.rules.iter().filter(|rule| rule.is_about(id)) {
            let before = text.as_deref().unwrap_or(content);
            text = Some(match rule.mode {
                SectionMode::Replace => rule.body.clone(),
                SectionMode::Append if before.trim().is_empty() => rule.body.clone(),
                SectionMode::Append => format!("{}\n\n{}", before.trim_end(), rule.body),
            });
        }
        text
    }
}

impl TransformHandler for RewriteRules {
    fn sections(&self) -> Vec<String> {
        let mut sections: Vec<String> = Vec::new();
        for id in self.rules.iter().flat_map(|rule| &rule.sections) {
            if !sections.contains(id) {
                sections.push(id.clone());
            }
        }
        sections
    }

    fn transform(&self, params: SystemMessageTransformParams) -> Rewrite {
        let sections = params.sections.into_iter();
        let rewritten = sections.filter_map(|(id, section)| {
            let content = self.apply(&id, &section.content)?;
            Some((id, SystemMessageTransformSection { content }))
        });
        let sections = rewritten.collect();
        Box::pin(async { Ok(SystemMessageTransformResult { sections }) })
    }
}

impl Rule {
    fn is_about(&self, id: &str) -> bool {
        self.sections.iter().any(|section| section == id)
    }

    /// `---`, keys, `---`, body.
    fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let lines = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((head, body)) = lines
            .strip_prefix("---\n")
            .or_else(|| lines.strip_prefix("---\r\n"))
            .and_then(split_at_rule)
        else {
            bail!(
                "{file} must begin with front matter: `---`, `sections: [tone]`, `mode: append`, `---`"
            );
        };
        let (mut sections, mut mode) = (None::<Vec<String>>, None);
        let mut listing = false;
        for line in head.lines().map(str::trim_end) {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            if let Some(item) = line.trim_start().strip_prefix("- ").filter(|_| listing) {
                sections.get_or_insert_default().push(unquote(item));
                continue;
            }
            let Some((key, value)) = line.split_once(':') else {
                bail!("{file}: `{line}` is not `key: value`");
            };
            listing = false;
            match (key.trim(), value.trim()) {
                ("sections", "") => {
                    listing = true;
                    sections.get_or_insert_default();
                }
                ("sections", list) => sections = Some(parse_list(list)),
                ("mode", "append") => mode = Some(SectionMode::Append),
                ("mode", "replace") => mode = Some(SectionMode::Replace),
                ("mode", other) => bail!("{file}: mode `{other}`; it is `append` or `replace`"),
                ("description", _) => {}
                (other, _) => {
                    bail!("{file}: unknown key `{other}`; known: sections, mode, description")
                }
            }
        }
        let sections = sections.unwrap_or_default();
        if sections.is_empty() {
            bail!("{file} names no section: add `sections: [tone]` to its front matter");
        }
        let Some(mode) = mode else {
            bail!("{file} names no mode: add `mode: append` or `mode: replace`");
        };
        Ok(Self { file: file.to_owned(), sections, mode, body: body.trim().to_owned() })
    }
}

/// What is before and after the line that ends the front matter.
fn split_at_rule(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&text[..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// `[a, b]`, `a, b` or `a`.
fn parse_list(list: &str) -> Vec<String> {
    let list = list.strip_prefix('[').unwrap_or(list);
    let list = list.strip_suffix(']').unwrap_or(list);
    list.split(',').map(unquote).filter(|item| !item.is_empty()).collect()
}

fn unquote(item: &str) -> String {
    item.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::parse("a.md", text).unwrap()
    }

    #[test]
    fn front_matter_is_read_in_each_of_its_forms() {
        for head in [
            "sections: [tone, \"safety\"]\nmode: append",
            "mode: append\nsections: tone, safety",
            "# why\nsections:\n  - tone\n  - 'safety'\nmode: append\ndescription: x",
        ] {
            let rule = rule(&format!("---\n{head}\n---\n\nBody\n\nmore\n"));
            assert_eq!(rule.sections, ["tone", "safety"], "{head}");
            assert_eq!((rule.mode, rule.body.as_str()), (SectionMode::Append, "Body\n\nmore"));
        }
    }

    #[test]
    fn a_bad_pack_is_reported_with_what_is_expected() {
        for (text, hint) in [
            ("Body", "must begin with front matter"),
            ("---\nsections: a\n", "must begin with front matter"),
            ("---\nmode: append\n---\n", "names no section"),
            ("---\nsections: []\nmode: append\n---\n", "names no section"),
            ("---\nsections: a\n---\n", "names no mode"),
            ("---\nsections: a\nmode: prepend\n---\n", "`append` or `replace`"),
            ("---\nsection: a\n---\n", "unknown key `section`"),
            ("---\nnonsense\n---\n", "is not `key: value`"),
        ] {
            let error = Rule::parse("a.md", text).unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains("a.md"), "{text:?}: {error}");
        }
    }

    #[test]
    fn files_are_applied_one_after_the_other() {
        let pack = RewriteRules {
            rules: vec![
                rule("---\nsections: [tone, env]\nmode: replace\n---\nnew"),
                rule("---\nsections: tone\nmode: append\n---\nmore"),
            ],
        };
        assert_eq!(pack.apply("tone", "old").as_deref(), Some("new\n\nmore"));
        assert_eq!(pack.apply("env", "old").as_deref(), Some("new"));
        assert_eq!(pack.apply("other", "old"), None);
        assert_eq!(TransformHandler::sections(&pack), ["tone", "env"]);
    }
}
