//! Which changes a watch reports: globs and paths beneath what is watched (H-262).

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ResourceError;
use crate::glob_bounds;

/// Patterns of one list.
const PATTERNS_MAX: usize = 256;

/// What is left out, and what alone is reported.
#[derive(Debug, Clone)]
pub(super) struct WatchGlobs {
    excludes: GlobSet,
    /// Everything, if absent.
    includes: Option<GlobSet>,
}

impl WatchGlobs {
    pub(super) fn new(
        excludes: &[String],
        includes: Option<&[String]>,
    ) -> Result<Self, ResourceError> {
        Ok(Self { excludes: compile(excludes)?, includes: includes.map(compile).transpose()? })
    }

    /// Whether a change to this path is reported. The path of what is watched itself is empty.
    pub(super) fn reports(&self, path: &Path) -> bool {
        if path.as_os_str().is_empty() {
            return true;
        }
        let is_included = self.includes.as_ref().is_none_or(|globs| globs.is_match(path));
        is_included && !self.excludes.is_match(path)
    }

    /// Whether nothing below a directory is reported, so that it need not be watched.
    pub(super) fn leaves_out(&self, directory: &Path) -> bool {
        // A name that nobody has stands for all names.
        let below = directory.join("\u{1}");
        self.excludes.is_match(directory)
            || self.excludes.is_match(&below) && self.excludes.is_match(below.join("\u{1}"))
    }
}

/// Each pattern matches a path, and all that is below it.
fn compile(patterns: &[String]) -> Result<GlobSet, ResourceError> {
    let invalid = |glob: &str, reason: String| ResourceError::InvalidGlob {
        glob: glob_bounds::shorten(glob),
        reason,
    };
    if patterns.len() > PATTERNS_MAX {
        let reason = format!("there are more than {PATTERNS_MAX}");
        return Err(invalid("", reason));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if !glob_bounds::is_bounded(pattern) {
            return Err(invalid(pattern, glob_bounds::TOO_LARGE.to_owned()));
        }
        let relative = pattern.trim_start_matches("./").trim_matches('/');
        for glob in [relative.to_owned(), format!("{relative}/**")] {
            let glob = GlobBuilder::new(&glob).literal_separator(true).build();
            set.add(glob.map_err(|error| invalid(pattern, error.to_string()))?);
        }
    }
    set.build().map_err(|error| invalid("", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_globs_are_left_out_with_all_that_is_below_them() {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let excludes = list(&["target", "**/node_modules/**", "./a/*.log"]);
        let all = WatchGlobs::new(&excludes, None).unwrap();
        for (path, is_reported) in [
            ("", true),
            ("target", false),
            ("target/debug/x", false),
            ("src/target", true),
            ("x/node_modules/y", false),
            ("a/b.log", false),
            ("a/c/b.log", true),
        ] {
            assert_eq!(all.reports(Path::new(path)), is_reported, "{path}");
        }
        assert!(all.leaves_out(Path::new("target")));
        assert!(all.leaves_out(Path::new("x/node_modules")));
        assert!(!all.leaves_out(Path::new("a")));
        let includes = list(&["src", "*.md"]);
        let some = WatchGlobs::new(&excludes, Some(&includes)).unwrap();
        assert!(some.reports(Path::new("src/a/b")) && some.reports(Path::new("a.md")));
        assert!(!some.reports(Path::new("docs/a.md")));
        assert!(WatchGlobs::new(&list(&["a["]), None).is_err());
        assert!(WatchGlobs::new(&vec!["a".to_owned(); 257], None).is_err());
    }
}
