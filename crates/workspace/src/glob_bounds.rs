//! How large a glob may be. The library that compiles globs calls itself for each brace in a brace: one with very many of them
//! would end the process.
//!
//! Must not know: what a glob is for.

const GLOB_BYTES_MAX: usize = 4 * 1_024;
const BRACES_MAX: usize = 32;

/// Whether a glob may be compiled.
pub(crate) fn is_bounded(glob: &str) -> bool {
    let braces = memchr::memchr_iter(b'{', glob.as_bytes()).count();
    glob.len() <= GLOB_BYTES_MAX && braces <= BRACES_MAX
}

/// The beginning of a glob, for messages.
pub(crate) fn shorten(glob: &str) -> String {
    glob.chars().take(60).collect()
}

/// Why one may not.
pub(crate) const TOO_LARGE: &str = "it is longer than 4 KiB or has more than 32 braces";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_that_people_write_are_taken_and_towers_of_braces_are_not() {
        assert!(is_bounded("src/**/*.{rs,toml}"));
        assert!(!is_bounded(&"{".repeat(33)));
        assert!(!is_bounded(&"a".repeat(5_000)));
    }
}
