//! Options by which a program that builds, checks or shows runs another program, works elsewhere or writes where it is told.
//!
//! Promises: a prefix rule covers no command with one of them: whoever agreed to `cargo test` did not agree to what
//! `--config` makes of it. Says so rather too often.
//! Must not know: which rules there are.

use super::shell::Word;

/// A program, and its options of this kind, without dashes. One letter also stands for every long option that begins with it,
/// except those in [`HARMLESS`].
const STEERING: &[(&str, &str)] = &[
    ("bun", "c config cwd env-file import preload r require shell tsconfig-override"),
    (
        "cargo",
        "C Z archive-file artifact-dir binaries-metadata cargo-metadata config config-file \
         extract-to index lockfile-path manifest-path out-dir registry target-dir \
         tool-config-file",
    ),
    // Its tests may only compute unless they are allowed more.
    (
        "deno",
        "A E I N P R S W allow-all allow-env allow-ffi allow-import allow-net allow-read \
         allow-run allow-scripts allow-sys allow-write c cert config coverage env env-file \
         import import-map junit-path lock permission-set preload require \
         unsafely-ignore-certificate-errors v8-flags",
    ),
    (
        "dotnet",
        "binaryLogger bl d diag distributedLogger dl e environment fileLogger \
         fileLoggerParameters fl flp l logger o output p property results-directory s settings \
         test-adapter-path",
    ),
    (
        "eslint",
        "c cache-file cache-location config f format inspect-config o output-file parser plugin \
         resolve-plugins-relative-to rulesdir suppressions-location",
    ),
    (
        "go",
        "C asmflags blockprofile compiler coverprofile cpuprofile exec fuzzcachedir gcflags \
         gccgoflags gocoverdir ldflags memprofile modfile mutexprofile o outputdir overlay \
         pkgdir testlogfile toolexec trace vettool",
    ),
    (
        "jest",
        "c cacheDirectory config coverageDirectory coverageReporters dependencyExtractor env \
         filter globalSetup globalTeardown globals haste moduleDirectories moduleNameMapper \
         modulePaths outputFile preset prettierPath projects reporters resolver rootDir roots \
         runner setupFiles setupFilesAfterEnv snapshotSerializers testEnvironment \
         testEnvironmentOptions testResultsProcessor testRunner testSequencer transform \
         watchPlugins",
    ),
    ("kubectl", "kubeconfig"),
    (
        "mypy",
        "any-exprs-report cache-dir cobertura-xml-report config-file custom-typeshed-dir \
         html-report install-types junit-xml line-checking-stats linecount-report \
         linecoverage-report lineprecision-report python-executable shadow-file timing-stats \
         txt-report xml-report xslt-html-report xslt-txt-report",
    ),
    (
        "npm",
        "C cache cafile git globalconfig https-proxy logs-dir node-options prefix proxy reg \
         registry script-shell shell userconfig",
    ),
    (
        "pnpm",
        "C config dir git global-pnpmfile lockfile-dir modules-dir node-options pnpmfile prefix \
         reg registry script-shell shell-emulator store-dir virtual-store-dir",
    ),
    // A base for temporary files is emptied first.
    (
        "pytest",
        "basetemp c confcutdir cov-config cov-report debug html junit-xml log-file o override-ini \
         p pastebin pdbcls report-log rootdir",
    ),
    ("ruff", "cache-dir config o output-file"),
    (
        "tsc",
        "b build declarationDir generateCpuProfile generateTrace outDir outFile p project \
         tsBuildInfoFile",
    ),
    (
        "vitest",
        "api attachmentsDir benchmark browser c config coverage dir diff environment execArgv \
         globalSetup outputFile outputJson pool poolOptions r reporter reporters root runner \
         sequence server setupFiles snapshotEnvironment snapshotSerializers typecheck workspace",
    ),
    ("yarn", "cwd registry use-yarnrc"),
];

/// Long options that only look like some of those: whatever their value is, they run nothing, and write nowhere but where
/// the project says.
const HARMLESS: &[(&str, &str)] = &[
    ("bun", "coverage rerun-each"),
    ("deno", "cached-only check"),
    ("dotnet", "list-tests"),
    ("eslint", "cache cache-strategy color fix fix-dry-run fix-type"),
    ("jest", "cache ci clearMocks collectCoverage collectCoverageFrom color colors coverage"),
    ("pnpm", "global"),
    ("pytest", "capture co code-highlight collect-only color continue-on-collection-errors"),
    ("ruff", "output-format"),
    ("tsc", "preserveWatchOutput pretty"),
    ("vitest", "clearScreen color coverage retry run"),
];

/// Programs that take several short options in one word.
const CLUSTERING: &[&str] =
    &["cargo", "deno", "eslint", "jest", "npm", "pnpm", "pytest", "ruff", "vitest"];

/// Programs that know their options by their whole names alone.
const EXACT: &[&str] = &["cargo", "deno", "go", "ruff", "tsc"];

/// Programs that know their options by any beginning that only one of them has.
const ABBREVIATING: &[&str] = &["mypy", "npm", "pnpm"];

/// Programs that may take `--` for the value of an option, so that options may follow.
const WITHOUT_END: &[&str] = &["eslint", "go", "tsc"];

/// Programs that read further arguments from the file behind an `@`.
const READING_ARGUMENTS: &[&str] = &["dotnet", "mypy", "pytest", "ruff", "tsc"];

/// Shorter beginnings of an option are other options.
const ABBREVIATION_MIN: usize = 4;

/// Whether a command has such an option, or may have one.
pub(super) fn has_steering_option(command: &[Word]) -> bool {
    let Some((program, words)) = command.split_first() else {
        return false; // it runs nothing
    };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    let Some(options) = options_of(STEERING, name) else {
        return false; // a person wrote the rule, and knows the program
    };
    if name == "cargo" && names_target_file(words) {
        return true;
    }
    let has_end = !WITHOUT_END.contains(&name);
    let mut before_end = words.iter().take_while(|word| !(has_end && word.text == "--"));
    before_end.any(|word| match option_of(name, &word.text) {
        Some(option) => {
            is_one_of(name, option, options)
                || (CLUSTERING.contains(&name) && has_short(option, options))
                || (word.expands && is_pattern(option))
        }
        None if word.text.starts_with('@') => READING_ARGUMENTS.contains(&name),
        // It may become an option.
        None => {
            word.expands
                && !word.text.starts_with(|c: char| c.is_alphanumeric() || "./".contains(c))
        }
    })
}

fn options_of(
    table: &'static [(&'static str, &'static str)],
    program: &str,
) -> Option<&'static str> {
    let found = table.iter().find(|(name, _)| *name == program);
    found.map(|(_, options)| *options)
}

/// Whether Cargo is told to build for a target that a file describes: the file names the linker.
fn names_target_file(words: &[Word]) -> bool {
    words.iter().enumerate().any(|(index, word)| {
        let value = match word.text.strip_prefix("--target") {
            Some("") => words.get(index + 1),
            Some(_) => Some(word),
            None => None,
        };
        value.is_some_and(|value| {
            let is_path = value.text.contains(['/', '\\']);
            value.expands || is_path || value.text.to_ascii_lowercase().ends_with(".json")
        })
    })
}

/// Whether the name of an option may become another one.
fn is_pattern(option: &str) -> bool {
    option.split('=').next().unwrap_or_default().contains(['*', '?', '['])
}

/// Whether one of several short options in a word is such an option, or may be.
fn has_short(word: &str, options: &str) -> bool {
    let options = options.split_whitespace();
    let mut short =
        options.filter(|option| option.len() == 1).filter_map(|option| option.chars().next());
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

/// Whether it is a long option of which nothing is to be feared. Parts of one (`coverage.provider`) are others.
fn is_harmless(program: &str, option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    let mut harmless = options_of(HARMLESS, program).unwrap_or_default().split_whitespace();
    option.starts_with('-') && harmless.any(|known| spell(known) == spell(name))
}

fn is_one_of(program: &str, option: &str, options: &str) -> bool {
    if is_harmless(program, option) {
        return false;
    }
    let is_long = option.starts_with('-');
    let option = option.trim_start_matches('-');
    // To Go an option of a test is also one of the program that is tested.
    let option = option.strip_prefix("test.").filter(|_| program == "go").unwrap_or(option);
    if option.starts_with(|c: char| !c.is_alphanumeric()) {
        return true; // such as the registry of a scope: `--@scope:registry=..`
    }
    // A value stands behind one of these, or a part of the option.
    let option = option.split(['=', ':', '.']).next().unwrap_or_default();
    let spelled = spell(option);
    let is_begun = |steering: &str| {
        let least = if !ABBREVIATING.contains(&program) {
            ABBREVIATION_MIN
        } else if is_long {
            1
        } else {
            2
        };
        !EXACT.contains(&program) && spelled.len() >= least && steering.starts_with(&spelled)
    };
    options.split_whitespace().any(|steering| match steering.len() {
        // Its value may follow at once; behind two dashes a longer name does, which may be such an option, too.
        1 => option.starts_with(steering) || (is_long && spelled.starts_with(steering)),
        _ => {
            let steering = spell(steering);
            spelled == steering || is_begun(&steering)
        }
    })
}
