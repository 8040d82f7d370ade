//! What is written as a test runs. A crate that links its tests into one executable names every file of them; a target that is
//! not built for tests (`test = false`, `doctest = false`) has none.

use anyhow::Result;

use crate::repository::Repository;

/// The files below `tests` of crates with `autotests = false` that nothing names, and tests in targets that are built for none.
pub(crate) fn check_test_files(repository: &Repository) -> Result<Vec<String>> {
    let files = repository.names();
    let mut wrong = Vec::new();
    for manifest in files.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let text = repository.text(manifest)?;
        let untested = UntestedTargets::of(text);
        let sources = manifest.replace("Cargo.toml", "src/");
        for file in files.iter().filter(|file| file.ends_with(".rs")) {
            if let Some(name) = file.strip_prefix(&sources) {
                let source = repository.text(file)?;
                wrong.extend(untested.find_tests(file, name, source));
            }
        }
        if !text.contains("autotests = false") {
            continue;
        }
        let tests = manifest.replace("Cargo.toml", "tests/");
        let all = repository.text(&format!("{tests}all.rs"))?;
        let of_crate = files.iter().filter_map(|file| file.strip_prefix(&tests));
        wrong.extend(
            of_crate
                .filter(|file| !is_named(file, all, text))
                .map(|file| format!("{tests}{file} is named neither in all.rs nor in Cargo.toml")),
        );
    }
    Ok(wrong)
}

/// Targets of a crate that `cargo test` does not build for tests.
#[derive(Debug, Default, PartialEq)]
struct UntestedTargets {
    lib: bool,
    docs: bool,
    /// Paths below `src`.
    bins: Vec<String>,
}

impl UntestedTargets {
    fn of(manifest: &str) -> Self {
        let mut found = Self::default();
        let mut table = "";
        let mut path = String::new();
        for line in manifest.lines() {
            if line.starts_with('[') {
                table = line;
                path.clear();
            }
            if let Some(named) = line.strip_prefix("path = \"src/") {
                path = named.trim_end_matches('"').to_owned();
            }
            match (table, line) {
                ("[lib]", "test = false") => found.lib = true,
                ("[lib]", "doctest = false") => found.docs = true,
                ("[[bin]]", "test = false") => found.bins.push(path.clone()),
                _ => {}
            }
        }
        found
    }

    /// Tests in a file (`name` below `src`) that never run.
    fn find_tests(&self, file: &str, name: &str, source: &str) -> Option<String> {
        let is_bin = name == "main.rs" || name.starts_with("bin/");
        let is_untested = if is_bin { self.bins.iter().any(|bin| bin == name) } else { self.lib };
        // In two pieces, so that this file does not find itself.
        let marks = [concat!("#[te", "st]"), concat!("#[tokio::te", "st")];
        if is_untested && marks.iter().any(|mark| source.contains(mark)) {
            return Some(format!("{file} has tests, and its target has `test = false`"));
        }
        let has_examples = self.docs && !is_bin && has_documentation_tests(source);
        has_examples.then(|| {
            format!("{file} has an example that rustdoc would test, and `doctest = false`")
        })
    }
}

/// Whether a comment of documentation opens a block of code that is Rust.
fn has_documentation_tests(source: &str) -> bool {
    let rust = ["rust", "edition", "no_run", "should_panic", "compile_fail"];
    let is_rust =
        |language: &str| language.is_empty() || rust.iter().any(|name| language.starts_with(name));
    let mut is_open = false;
    for line in source.lines().map(str::trim_start) {
        let Some(comment) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
            is_open = false; // a block of code ends with its comment
            continue;
        };
        let comment = comment.trim_start();
        let Some(language) = comment.strip_prefix("```").or(comment.strip_prefix("~~~")) else {
            continue;
        };
        if !is_open && is_rust(language) {
            return true;
        }
        is_open = !is_open;
    }
    false
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
    use super::{UntestedTargets, has_documentation_tests, is_named};

    #[test]
    fn a_test_in_a_target_without_tests_is_noticed() {
        let manifest = "[lib]\ntest = false\ndoctest = false\n\n[[bin]]\nname = \"a\"\npath = \"src/main.rs\"\ntest = false\n\n[[bin]]\nname = \"b\"\npath = \"src/bin/b.rs\"\n";
        let untested = UntestedTargets::of(manifest);
        let expected = UntestedTargets { lib: true, docs: true, bins: vec!["main.rs".to_owned()] };
        assert_eq!(untested, expected);
        let test = concat!("#[te", "st]\nfn a() {}");
        for (name, found) in [("lib.rs", true), ("main.rs", true), ("bin/b.rs", false)] {
            let wrong = untested.find_tests("x", name, test);
            assert_eq!(wrong.is_some(), found, "{name}");
            assert_eq!(untested.find_tests("x", name, "fn a() {}"), None, "{name}");
        }
        assert_eq!(UntestedTargets::default().find_tests("x", "lib.rs", test), None);
    }

    #[test]
    fn examples_of_documentation_are_told_from_other_blocks() {
        assert!(has_documentation_tests("//! ```\n//! a();\n//! ```"));
        assert!(has_documentation_tests("    /// ```no_run\n    /// a();\n    /// ```"));
        assert!(!has_documentation_tests("/// ```text\n/// a\n/// ```\n// ```"));
    }

    #[test]
    fn a_file_that_nothing_names_is_noticed() {
        let all = "//! All.\n\nmod queue;\n#[path = \"x\"]\nmod spoken;\n";
        let manifest = "[[test]]\nname = \"logs\"\n\n[[test]]\nname = \"it\"\npath = \"tests/all.rs\"\n\n[[test]]\nname = \"setup\"\npath = \"tests/setup/main.rs\"\n";
        for named in ["queue.rs", "logs.rs", "setup/main.rs", "setup/stop.rs", "data/a.json"] {
            assert!(is_named(named, all, manifest), "{named}");
        }
        for missing in ["queues.rs", "que.rs", "other/main.rs"] {
            assert!(!is_named(missing, all, manifest), "{missing}");
        }
    }
}
