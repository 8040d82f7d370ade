//! A crate that links its tests into one executable must name every file of them: one that is not named never runs.

use std::path::Path;

use anyhow::Result;

use crate::source::list_files;

/// The files below `tests` of crates with `autotests = false` that nothing names.
pub(crate) fn check_test_files(root: &Path) -> Result<Vec<String>> {
    let files = list_files(root)?;
    let mut wrong = Vec::new();
    for manifest in files.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let text = std::fs::read_to_string(root.join(manifest))?;
        if !text.contains("autotests = false") {
            continue;
        }
        let tests = manifest.replace("Cargo.toml", "tests/");
        let all = std::fs::read_to_string(root.join(format!("{tests}all.rs")))?;
        let of_crate = files.iter().filter_map(|file| file.strip_prefix(&tests));
        wrong.extend(
            of_crate
                .filter(|file| !is_named(file, &all, &text))
                .map(|file| format!("{tests}{file} is named neither in all.rs nor in Cargo.toml")),
        );
    }
    Ok(wrong)
}

/// Whether a file directly below `tests` runs. Those in folders are modules of others, unless they are a `main.rs`.
fn is_named(file: &str, all: &str, manifest: &str) -> bool {
    let line = |text: &str, wanted: String| text.lines().any(|line| line == wanted);
    let Some(name) = file.strip_suffix(".rs") else {
        return true; // data of tests
    };
    match name.split_once('/') {
        None if name != "all" => {
            line(all, format!("mod {name};")) || line(manifest, format!("name = \"{name}\""))
        }
        None | Some((_, "main")) => line(manifest, format!("path = \"tests/{file}\"")),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::is_named;

    #[test]
    fn a_file_that_nothing_names_is_noticed() {
        let all = "//! All.\n\nmod queue;\n#[path = \"x\"]\nmod spoken;\n";
        let manifest = "[[test]]\nname = \"logs\"\n\n[[test]]\nname = \"it\"\npath = \"tests/all.rs\"\n\n[[test]]\nname = \"setup\"\npath = \"tests/setup/main.rs\"\n";
        for named in [
            "queue.rs",
            "logs.rs",
            "setup/main.rs",
            "setup/stop.rs",
            "data/a.json",
        ] {
            assert!(is_named(named, all, manifest), "{named}");
        }
        for missing in ["queues.rs", "que.rs", "other/main.rs"] {
            assert!(!is_named(missing, all, manifest), "{missing}");
        }
    }
}
