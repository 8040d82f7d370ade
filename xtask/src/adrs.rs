//! Decisions are listed in `docs/adr/README.md`, each under the heading of its file: `# 0001: Title`.

use anyhow::Result;

use crate::repository::{Repository, pattern};

const DIRECTORY: &str = "docs/adr/";

pub(crate) fn check_adrs(repository: &Repository) -> Result<Vec<String>> {
    let index = repository.text("docs/adr/README.md")?;
    let files = repository.texts().filter_map(|(name, text)| {
        let file = name.strip_prefix(DIRECTORY)?;
        (file != "README.md").then(|| (file.to_owned(), text.to_owned()))
    });
    wrong_adrs(index, &files.collect::<Vec<_>>())
}

fn wrong_adrs(index: &str, files: &[(String, String)]) -> Result<Vec<String>> {
    let heading = pattern(r"^# ([0-9]{4}): (\S.*)$")?;
    let link = pattern(r"\[[^\]]*\]\(([^)#]+\.md)\)")?;
    let mut wrong = Vec::new();
    for (file, text) in files {
        let first = text.lines().next().unwrap_or("");
        let Some(found) = heading.captures(first) else {
            wrong.push(format!("{DIRECTORY}{file}: does not open with `# 0001: Title`"));
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
        assert_eq!(found("- [0001: A](0001-a.md)", "# 0001: A\n"), Vec::<String>::new());
    }

    #[test]
    fn a_missing_entry_another_heading_and_a_dead_link_are_found() {
        assert_eq!(found("", "# 0001: A\n").len(), 1);
        assert_eq!(found("- [0001: A](0001-a.md)", "# 1. A\n").len(), 1);
        assert_eq!(found("- [0002: A](0001-a.md)", "# 0002: A\n").len(), 1);
        assert_eq!(found("- [0001: A](0001-a.md)\n- [0002: B](0002-b.md)", "# 0001: A\n").len(), 1);
    }
}
