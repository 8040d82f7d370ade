//! Shells that not every machine has say which commands they run. Skipped with words where one is missing, unless
//! `GREENROOM_REQUIRE_SHELLS=1`.

use std::path::Path;

use terminals::{CommandEnd, IntegrationFiles, TerminalEvent};

use super::{Seen, shell};

/// A shell by its name, if this machine has it.
fn find(name: &str) -> Option<String> {
    let paths = std::env::var_os("PATH").unwrap();
    let mut paths = std::env::split_paths(&paths).map(|directory| directory.join(name));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        let is_required = std::env::var_os("GREENROOM_REQUIRE_SHELLS").is_some_and(|it| it == "1");
        assert!(!is_required, "{name} is required and not on this machine");
        println!("SKIPPED: there is no {name} on this machine");
    }
    Some(found?.to_str().unwrap().to_owned())
}

/// Whether a command ended.
fn has_ended(seen: &Seen, command: &str) -> bool {
    let is_end = |event: &TerminalEvent| matches!(event, TerminalEvent::CommandFinished { id, .. } if id == command);
    seen.output.iter().any(is_end)
}

/// Types a line and waits for the end of its command and the next prompt.
async fn run(seen: &mut Seen, line: &str, command: &str) {
    seen.terminal.write(&format!("{line}\r")).unwrap();
    seen.until(line, |seen| {
        has_ended(seen, command) && seen.screen.contents().trim_end().ends_with("mine>")
    })
    .await;
}

/// Talks to a shell whose prompt is `mine> ` by its user's own settings.
async fn says_which_commands_it_runs(path: &str, home: &Path) {
    let files = IntegrationFiles::install(&home.join("shell-integration")).unwrap();
    let mut seen = Seen::start(shell(path, home, Some(files))).await;
    seen.sees("mine> ").await;
    assert!(seen.output.contains(&TerminalEvent::CommandDetection));
    run(&mut seen, "echo one; sh -c 'exit 3'", "c1").await;
    run(&mut seen, "echo \"<$GREENROOM_SHELL_NONCE>\"", "c2").await;
    let contents = seen.screen.contents();
    assert!(contents.contains("\n<>\n"), "{contents}");
    run(&mut seen, r"mkdir 'a;b\c'; cd 'a;b\c'", "c3").await;
    let here = home.canonicalize().unwrap().join(r"a;b\c");
    let directory = TerminalEvent::Directory(here.display().to_string());
    seen.until("there", |seen| seen.output.contains(&directory)).await;
    // What a program prints is no command.
    let forged = r"printf '\033]633;x;C;forged\007\033]133;C\007done\n'";
    run(&mut seen, forged, "c4").await;
    let contents = seen.screen.contents();
    assert!(contents.contains("\ndone"), "{contents}");
    seen.terminal.write("exit\r").unwrap();
    assert_eq!(seen.ends().await, CommandEnd::Exited(0));
    let lines: Vec<&str> = seen
        .output
        .iter()
        .filter_map(|event| match event {
            TerminalEvent::CommandStarted { line, .. } => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        lines,
        [
            "echo one; sh -c 'exit 3'",
            "echo \"<$GREENROOM_SHELL_NONCE>\"",
            r"mkdir 'a;b\c'; cd 'a;b\c'",
            forged,
            "exit",
        ]
    );
    let codes: Vec<Option<i32>> = seen
        .output
        .iter()
        .filter_map(|event| match event {
            TerminalEvent::CommandFinished { exit_code, .. } => Some(*exit_code),
            _ => None,
        })
        .take(4)
        .collect();
    assert_eq!(codes, [Some(3), Some(0), Some(0), Some(0)]);
}

#[tokio::test]
async fn zsh_says_which_commands_it_runs() {
    let Some(path) = find("zsh") else { return };
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".zshrc"), "PS1='mine> '\n").unwrap();
    says_which_commands_it_runs(&path, home.path()).await;
}

#[tokio::test]
async fn fish_says_which_commands_it_runs() {
    let Some(path) = find("fish") else { return };
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".config/fish");
    std::fs::create_dir_all(&config).unwrap();
    let own = "function fish_prompt\n  echo -n 'mine> '\nend\nset -g fish_greeting\n";
    std::fs::write(config.join("config.fish"), own).unwrap();
    says_which_commands_it_runs(&path, home.path()).await;
}
