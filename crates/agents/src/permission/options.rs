//! Options by which a program that builds, checks or shows runs another program, works elsewhere or writes where it is told.
//!
//! Promises: a prefix rule covers no command with one of them: whoever agreed to `cargo test` did not agree to what
//! `--config` makes of it. Says so rather too often.
//! Must not know: which rules there are.

use super::shell::Word;

/// A program, and its options of this kind, without dashes.
const STEERING: &[(&str, &[&str])] = &[
    ("bun", &["config", "cwd", "preload"]),
    (
        "cargo",
        &["C", "Z", "config", "manifest-path", "target-dir"],
    ),
    ("deno", &["c", "config", "import-map", "preload"]),
    ("dotnet", &["o", "output"]),
    (
        "eslint",
        &[
            "c",
            "config",
            "o",
            "output-file",
            "plugin",
            "resolve-plugins-relative-to",
            "rulesdir",
        ],
    ),
    (
        "go",
        &[
            "C", "exec", "modfile", "o", "overlay", "toolexec", "vettool",
        ],
    ),
    (
        "jest",
        &[
            "c",
            "config",
            "globalSetup",
            "outputFile",
            "rootDir",
            "setupFiles",
        ],
    ),
    ("kubectl", &["kubeconfig"]),
    ("mypy", &["config-file", "python-executable"]),
    (
        "npm",
        &["C", "globalconfig", "prefix", "script-shell", "userconfig"],
    ),
    (
        "pnpm",
        &["C", "dir", "prefix", "script-shell", "shell-emulator"],
    ),
    ("pytest", &["c", "o", "p", "override-ini", "rootdir"]),
    ("ruff", &["config", "output-file"]),
    ("tsc", &["outDir", "outFile", "p", "project"]),
    ("vitest", &["c", "config", "outputFile", "root"]),
    ("yarn", &["cwd", "use-yarnrc"]),
];

/// Programs that take several short options in one word.
const CLUSTERING: &[&str] = &["cargo", "pytest"];

/// Shorter beginnings of an option are other options.
const ABBREVIATION_MIN: usize = 4;

/// Whether a command has such an option, or may have one.
pub(super) fn steers(command: &[Word]) -> bool {
    let Some((program, words)) = command.split_first() else {
        return false; // it runs nothing
    };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    let Some((_, options)) = STEERING.iter().find(|(other, _)| *other == name) else {
        return false; // a person wrote the rule, and knows the program
    };
    let before_end = words.iter().take_while(|word| word.text != "--");
    before_end
        .into_iter()
        .any(|word| match word.text.strip_prefix('-') {
            Some(option) => {
                is_one_of(option, options)
                    || (CLUSTERING.contains(&name) && has_short(option, options))
            }
            // It may become an option.
            None => {
                word.expands
                    && !word
                        .text
                        .starts_with(|c: char| c.is_alphanumeric() || "./".contains(c))
            }
        })
}

/// Whether one of several short options in a word is such an option, or may be.
fn has_short(word: &str, options: &[&str]) -> bool {
    let short = options.iter().filter(|option| option.len() == 1);
    let mut short = short.filter_map(|option| option.chars().next());
    !word.starts_with('-') && short.any(|option| word.contains(option))
}

fn is_one_of(option: &str, options: &[&str]) -> bool {
    let option = option.trim_start_matches('-');
    let option = option.split('=').next().unwrap_or_default();
    options.iter().any(|steering| {
        let is_short_with_value = steering.len() == 1 && option.starts_with(steering);
        let is_abbreviated = option.len() >= ABBREVIATION_MIN && steering.starts_with(option);
        option == *steering || is_short_with_value || is_abbreviated
    })
}
