//! Options by which a program that builds, checks or shows runs another program, works elsewhere or writes where it is told.
//!
//! Promises: a prefix rule covers no command with one of them: whoever agreed to `cargo test` did not agree to what
//! `--config` makes of it. Says so rather too often.
//! Must not know: which rules there are.

use super::shell::Word;

/// A program, and its options of this kind, without dashes.
const STEERING: &[(&str, &str)] = &[
    (
        "bun",
        "c config cwd env-file import preload r require shell",
    ),
    (
        "cargo",
        "C Z artifact-dir config config-file index lockfile-path manifest-path out-dir registry \
         target-dir tool-config-file",
    ),
    // Its tests may only compute unless they are allowed more.
    (
        "deno",
        "A E I N P R S W allow-all allow-env allow-ffi allow-import allow-net allow-read \
         allow-run allow-scripts allow-sys allow-write c cert config coverage env-file \
         import-map junit-path lock permission-set preload unsafely-ignore-certificate-errors",
    ),
    (
        "dotnet",
        "l logger o output p property s settings test-adapter-path",
    ),
    (
        "eslint",
        "c cache-file cache-location config f format o output-file parser plugin \
         resolve-plugins-relative-to rulesdir",
    ),
    (
        "go",
        "C asmflags blockprofile compiler coverprofile cpuprofile exec gcflags gccgoflags \
         ldflags memprofile modfile mutexprofile o outputdir overlay pkgdir toolexec trace \
         vettool",
    ),
    (
        "jest",
        "c cacheDirectory config coverageDirectory dependencyExtractor filter globalSetup \
         globalTeardown moduleDirectories moduleNameMapper modulePaths outputFile preset \
         prettierPath projects reporters resolver rootDir roots runner setupFiles \
         setupFilesAfterEnv snapshotSerializers testEnvironment testResultsProcessor testRunner \
         testSequencer transform watchPlugins",
    ),
    ("kubectl", "kubeconfig"),
    (
        "mypy",
        "any-exprs-report cobertura-xml-report config-file html-report install-types junit-xml \
         linecount-report linecoverage-report lineprecision-report python-executable txt-report \
         xml-report xslt-html-report xslt-txt-report",
    ),
    (
        "npm",
        "C globalconfig node-options prefix registry script-shell userconfig",
    ),
    (
        "pnpm",
        "C config dir node-options prefix registry script-shell shell-emulator",
    ),
    // A base for temporary files is emptied first.
    (
        "pytest",
        "basetemp c junit-xml log-file o override-ini p pastebin pdbcls rootdir",
    ),
    ("ruff", "cache-dir config o output-file"),
    (
        "tsc",
        "b build declarationDir generateCpuProfile generateTrace outDir outFile p project \
         tsBuildInfoFile",
    ),
    (
        "vitest",
        "c config dir environment globalSetup outputFile root",
    ),
    ("yarn", "cwd registry use-yarnrc"),
];

/// Programs that take several short options in one word.
const CLUSTERING: &[&str] = &["cargo", "pytest"];

/// Programs that know their options by their whole names alone.
const EXACT: &[&str] = &["cargo", "deno", "go", "ruff", "tsc"];

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
        .any(|word| match option_of(name, &word.text) {
            Some(option) => {
                is_one_of(option, options, EXACT.contains(&name))
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
fn has_short(word: &str, options: &str) -> bool {
    let options = options.split_whitespace();
    let short = options.filter(|option| option.len() == 1);
    let mut short = short.filter_map(|option| option.chars().next());
    !word.starts_with('-') && short.any(|option| word.contains(option))
}

/// What stands behind the sign of an option. To MSBuild a slash is one, too.
fn option_of<'a>(program: &str, word: &'a str) -> Option<&'a str> {
    let slash = || word.strip_prefix('/').filter(|_| program == "dotnet");
    word.strip_prefix('-').or_else(slash)
}

/// `outputFile`, `output-file` and `OutputFile` are one option to many programs.
fn spell(option: &str) -> String {
    option.replace(['-', '_'], "").to_ascii_lowercase()
}

fn is_one_of(option: &str, options: &str, is_exact: bool) -> bool {
    let is_long = option.starts_with('-');
    let option = option.trim_start_matches('-');
    // A value stands behind one of these, or a part of the option.
    let option = option.split(['=', ':', '.']).next().unwrap_or_default();
    let spelled = spell(option);
    let may_be_begun = !is_exact && spelled.len() >= ABBREVIATION_MIN;
    options
        .split_whitespace()
        .any(|steering| match steering.len() {
            // Its value may follow at once.
            1 if !is_long => option.starts_with(steering),
            1 => option == steering,
            _ => {
                let steering = spell(steering);
                spelled == steering || (may_be_begun && steering.starts_with(&spelled))
            }
        })
}
