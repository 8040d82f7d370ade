//! Decisions are listed in `docs/adr/README.md`, each under the heading of its file: `# 0001: Title`.

use std::path::Path;

use anyhow::{Context, Result};
use regex::Regex;

use crate::source::list_files;

const DIRECTORY: &str = "docs/adr/";

pub(crate) fn check_adrs(root: &Path) -> Result<Vec<String>> {
    let index = std::fs::read_to_string(root.join(DIRECTORY).join("README.md"))
        .context("docs/adr/README.md cannot be read")?;
    let mut files = Vec::new();
    for name in list_files(root)? {
        if let Some(file) = name.strip_prefix(DIRECTORY)
            && file != "README.md"
        {
            files.push((file.to_owned(), std::fs::read_to_string(root.join(&name))?));
        }
    }
    wrong_adrs(&index, &files)
}

fn wrong_adrs(index: &str, files: &[(String, String)]) -> Result<Vec<String>> {
    let heading = Regex::new(r"^# ([0-9]{4}): (\S.*)$")?;
    let link = Regex::new(r"\[[^\]]*\]\(([^)#]+\.md)\)")?;
    let mut wrong = Vec::new();
    for (file, text) in files {
        let first = text.lines().next().unwrap_or("");
        let Some(found) = heading.captures(first) else {
            wrong.push(format!(
                "{DIRECTORY}{file}: does not open with `# 0001: Title`"
            ));
            continue;
        };
        if !file.starts_with(&format!("{}-", &found[1])) {
            wrong.push(format!("{DIRECTORY}{file}: its heading has another number"));
        }
        let entry = format!("[{}: {}]({file})", &found[1], &found[2]);
        if !index.contains(&entry) {
            wrong.push(format!("{DIRECTORY}README.md: lacks `{entry}`"));
        }
    }
    for found in link.captures_iter(index) {
        let target = &found[1];
        if !target.contains('/') && !files.iter().any(|(file, _)| file == target) {
            wrong.push(format!("{DIRECTORY}README.md: `{target}` is not there"));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(index: &str, text: &str) -> Vec<String> {
        wrong_adrs(index, &[("0001-a.md".to_owned(), text.to_owned())]).unwrap()
    }

    #[test]
    fn an_index_that_lists_the_heading_is_complete() {
        assert_eq!(
            found("- [0001: A](0001-a.md)", "# 0001: A\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_missing_entry_another_heading_and_a_dead_link_are_found() {
        assert_eq!(found("", "# 0001: A\n").len(), 1);
        assert_eq!(found("- [0001: A](0001-a.md)", "# 1. A\n").len(), 1);
        assert_eq!(found("- [0002: A](0001-a.md)", "# 0002: A\n").len(), 1);
        assert_eq!(
            found(
                "- [0001: A](0001-a.md)\n- [0002: B](0002-b.md)",
                "# 0001: A\n"
            )
            .len(),
            1
        );
    }
}
