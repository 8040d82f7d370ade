//! Whether bash agrees: what a rule allows is all that bash runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::OnceLock;

use parking_lot::Mutex;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A directory of programs that record how they are called, and one to call them in.
struct Recorder {
    bash: PathBuf,
    programs: TempDir,
    work: TempDir,
    running: Mutex<()>,
}

impl Recorder {
    fn get() -> &'static Self {
        static RECORDER: OnceLock<Recorder> = OnceLock::new();
        RECORDER.get_or_init(|| {
            let (programs, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            for name in ["cargo", "rm", "git", "sudo", "env", "test", "cargotest"] {
                let path = programs.path().join(name);
                let log = programs.path().join("log");
                let script =
                    format!("#!/bin/sh\nprintf '%s\\n' \"${{0##*/}} $1\" >> {}\n", log.display());
                fs::write(&path, script).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let path = std::env::var_os("PATH").unwrap();
            let mut shells = std::env::split_paths(&path).map(|path| path.join("bash"));
            let bash = shells.find(|shell| shell.is_file()).expect("bash is installed");
            Self { bash, programs, work, running: Mutex::default() }
        })
    }

    /// What bash ran, traced by itself and recorded by the programs.
    fn run(&self, text: &str) -> Vec<String> {
        // There is one log for all tests of this process.
        let _running = self.running.lock();
        let log = self.programs.path().join("log");
        let _ = fs::remove_file(&log);
        let output = Command::new(&self.bash)
            .args(["-x", "-c", text])
            .current_dir(self.work.path())
            .env_clear()
            .env("PATH", self.programs.path())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let trace = String::from_utf8_lossy(&output.stderr).into_owned();
        let traced = trace
            .lines()
            .filter_map(|line| line.strip_prefix('+'))
            .map(|line| line.trim_start_matches('+').trim_start().to_owned());
        let mut ran: Vec<String> = traced.collect();
        let recorded = fs::read_to_string(&log).unwrap_or_default();
        ran.extend(recorded.lines().map(str::to_owned));
        ran
    }
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        " ",
        " ",
        " ",
        "cargo test",
        "cargo test ",
        " && cargo test",
        "; cargo test",
        "cargo",
        "test",
        "rm x",
        "git",
        "a",
        "'",
        "\"",
        "\\",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "$(rm x)",
        "`rm x`",
        "$",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        ">f",
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "~",
        "X=1 ",
        "=",
        "eval ",
        "env ",
        "sudo ",
        "if ",
        "; then ",
        "; fi",
        "time ",
        "\t",
        "-x",
        "'a b'",
        "\"a b\"",
        "\\;",
        "\r",
        ",",
        "{a,b}",
        "é",
        "\u{a0}",
        "<<E\n",
        "E\n",
        "[[",
        "]]",
        "alias cargo=rm;",
        "%",
        "^",
        ":",
        "//",
        "cargo() { rm x; };",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// If the rule allows a text, bash runs nothing but what the rule names, and makes no file.
    #[test]
    fn bash_runs_only_what_a_rule_allows(rest in prop::collection::vec(fragment(), 0..7)) {
        let text = format!("cargo test{}", rest.concat());
        if allows_text("bash(cargo test:*)", &text) {
            let recorder = Recorder::get();
            let ran = recorder.run(&text);
            prop_assert!(!ran.is_empty(), "{:?} ran nothing", text);
            for ran in ran {
                prop_assert!(ran == "cargo test" || ran.starts_with("cargo test "), "{text:?} ran {ran:?}");
            }
            let made = fs::read_dir(recorder.work.path()).unwrap().count();
            prop_assert_eq!(made, 0, "{:?} made a file", text);
        }
    }
}

#[test]
fn the_recorder_sees_what_is_not_allowed() {
    let ran = Recorder::get().run("cargo test; rm x; echo y");
    assert!(
        ran.contains(&"rm x".to_owned()) && ran.iter().any(|ran| ran.starts_with("echo y")),
        "{ran:?}"
    );
}
