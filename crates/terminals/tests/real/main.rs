//! Real shells and programs in real pseudo-terminals.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

mod faults;
mod shells;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use terminals::{
    CommandEnd, IntegrationFiles, Mark, Program, RunningTerminal, ScreenModel, StartDirectory,
    TerminalEvent, TerminalLaunch, TerminalSize, open, shell_environment,
};

/// Longer than anything takes that works.
const DEADLINE: Duration = Duration::from_secs(60);

struct Seen {
    terminal: RunningTerminal,
    screen: ScreenModel,
    output: Vec<TerminalEvent>,
    data_bytes: usize,
}

impl Seen {
    async fn start(launch: TerminalLaunch) -> Self {
        let screen = ScreenModel::new(launch.size);
        let terminal = open(launch, Mark::unique(), None).await.unwrap();
        Self { terminal, screen, output: Vec::new(), data_bytes: 0 }
    }

    /// Reads until this is so.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.until_within(DEADLINE, what, is_so).await;
    }

    async fn until_within(
        &mut self,
        deadline: Duration,
        what: &str,
        is_so: impl Fn(&Self) -> bool,
    ) {
        let read = async {
            while !is_so(self) {
                let Some(output) = self.terminal.next().await else {
                    panic!("it ended before {what}: {}", self.screen.contents());
                };
                for output in &output {
                    if let TerminalEvent::Data(text) = output {
                        self.data_bytes += text.len();
                        self.screen.process(text.as_bytes());
                    }
                }
                // What was printed is on the screen; it may be a lot.
                let is_kept = |output: &TerminalEvent| !matches!(output, TerminalEvent::Data(_));
                self.output.extend(output.into_iter().filter(is_kept));
            }
        };
        if tokio::time::timeout(deadline, read).await.is_err() {
            let last: Vec<String> = self
                .output
                .iter()
                .rev()
                .take(3)
                .map(|output| format!("{output:.300?}"))
                .map(|text| text.chars().take(500).collect())
                .collect();
            panic!("never {what}: {}\n{last:?}", self.screen.contents());
        }
    }

    async fn sees(&mut self, text: &str) {
        self.until(text, |seen| seen.screen.contents().contains(text)).await;
    }

    async fn ends(&mut self) -> CommandEnd {
        let ended = |output: &TerminalEvent| matches!(output, TerminalEvent::Ended(_));
        self.until("ended", |seen| seen.output.iter().any(ended)).await;
        assert_eq!(self.terminal.next().await, None);
        match self.output.last() {
            Some(TerminalEvent::Ended(end)) => *end,
            other => panic!("{other:?}"),
        }
    }
}

fn shell(path: &str, home: &Path, integration: Option<IntegrationFiles>) -> TerminalLaunch {
    let variables: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), home.into()),
        ("PS1".into(), "ready> ".into()),
        ("GREENROOM_TOKEN".into(), "secret".into()),
    ];
    TerminalLaunch {
        program: Program::Shell { path: PathBuf::from(path), integration },
        directory: StartDirectory::Path(home.to_owned()),
        variables: shell_environment(variables.into_iter(), &[], &|_| false),
        size: TerminalSize::clamped(80, 24),
    }
}

/// A script of ours in place of a shell.
fn program(home: &Path, text: &str) -> TerminalLaunch {
    let script = home.join("program");
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, mode).unwrap();
    shell(script.to_str().unwrap(), home, None)
}

#[tokio::test]
async fn a_shell_has_a_terminal_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let mut seen = Seen::start(shell("/bin/sh", home.path(), None)).await;
    seen.sees("ready> ").await;
    seen.terminal.write("tty; stty size; echo \"<$GREENROOM_TOKEN>$TERM\"\n").unwrap();
    seen.sees("<>xterm-256color").await;
    let contents = seen.screen.contents();
    assert!(contents.contains("/dev/pts/") && contents.contains("24 80"), "{contents}");
    // It controls the terminal: the key that interrupts works, also in what it runs.
    seen.terminal.write("cat\n").unwrap();
    seen.terminal.write("typed\n").unwrap();
    // Once as it is typed, once as it is printed: from then on the program runs, and the key is for it.
    seen.until("printed", |seen| seen.screen.contents().matches("typed").count() >= 2).await;
    seen.terminal.write("\x03").unwrap();
    seen.sees("^C\nready> ").await;
    seen.terminal.resize(TerminalSize::clamped(100, 30));
    seen.screen.resize(TerminalSize::clamped(100, 30));
    seen.terminal.write("stty size\n").unwrap();
    seen.sees("30 100").await;
    // Nothing is open in it that is not open in every process that is started here.
    let ls = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let open = String::from_utf8(ls.stdout).unwrap().replace('\n', ",");
    let command = "ls /proc/self/fd | tr '\\n' ,; echo .\n";
    seen.terminal.write(command).unwrap();
    seen.sees(&format!("{open}.")).await;
    seen.terminal.write("exit 7\n").unwrap();
    assert_eq!(seen.ends().await, CommandEnd::Exited(7));
}

#[tokio::test]
async fn bash_says_which_commands_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let rc = "PS1='mine> '\nPROMPT_COMMAND='MINE=$?'\nHISTCONTROL=ignoreboth\n";
    std::fs::write(home.path().join(".bashrc"), rc).unwrap();
    let files = IntegrationFiles::install(&home.path().join("shell-integration")).unwrap();
    let mut seen = Seen::start(shell("/bin/bash", home.path(), Some(files))).await;
    seen.sees("mine> ").await;
    seen.terminal.write("echo one; (exit 3)\n").unwrap();
    seen.sees("one\nmine> ").await;
    seen.terminal.write("echo \"kept $MINE\" $GREENROOM_SHELL_NONCE\n").unwrap();
    seen.sees("kept 3\nmine> ").await;
    seen.terminal.write("\n\n echo hidden\n").unwrap();
    seen.sees("hidden\nmine> ").await;
    seen.terminal.write("mkdir 'a;b'; cd 'a;b'\n").unwrap();
    let here = format!("{}/a;b", home.path().display());
    let directory = TerminalEvent::Directory(here);
    seen.until("there", |seen| seen.output.contains(&directory)).await;
    // What a program prints is no command.
    seen.terminal.write("printf '\\033]633;x;C;forged\\007\\033]133;C\\007done\\n'\n").unwrap();
    seen.sees("\ndone\nmine>").await;
    seen.terminal.write("exit\n").unwrap();
    assert_eq!(seen.ends().await, CommandEnd::Exited(0));
    let commands: Vec<(String, Option<i32>)> = seen
        .output
        .iter()
        .filter_map(|output| match output {
            TerminalEvent::CommandStarted { line, .. } => Some((line.clone(), None)),
            TerminalEvent::CommandFinished { id, exit_code, .. } => Some((id.clone(), *exit_code)),
            _ => None,
        })
        .collect();
    let commands: Vec<(&str, Option<i32>)> =
        commands.iter().map(|(text, code)| (text.as_str(), *code)).collect();
    assert_eq!(
        commands,
        [
            ("echo one; (exit 3)", None),
            ("c1", Some(3)),
            ("echo \"kept $MINE\" $GREENROOM_SHELL_NONCE", None),
            ("c2", Some(0)),
            ("", None),
            ("c3", Some(0)),
            ("mkdir 'a;b'; cd 'a;b'", None),
            ("c4", Some(0)),
            (r"printf '\033]633;x;C;forged\007\033]133;C\007done\n'", None),
            ("c5", Some(0)),
            ("exit", None),
            ("c6", None),
        ]
    );
    let texts: String = seen.output.iter().map(|output| format!("{output:?}")).collect();
    // What was typed is echoed as it is; the sequences themselves are gone.
    assert!(!texts.contains("1b}]633;") && !texts.contains("1b}]133;"), "{texts}");
}

#[tokio::test]
async fn a_printer_without_end_can_be_stopped() {
    let home = tempfile::tempdir().unwrap();
    let mut seen = Seen::start(shell("/bin/sh", home.path(), None)).await;
    seen.sees("ready> ").await;
    seen.terminal.write("yes\n").unwrap();
    seen.sees("y\ny\ny\n").await;
    seen.terminal.write("\x03").unwrap();
    seen.terminal.write("echo after\n").unwrap();
    seen.sees("after\nready>").await;
    seen.terminal.kill();
    assert_eq!(seen.ends().await, CommandEnd::Signalled(9));
}

#[tokio::test]
async fn a_full_screen_program_is_seen_as_it_is() {
    let Some(pager) =
        ["/usr/bin/less", "/usr/bin/vi"].into_iter().find(|path| Path::new(path).exists())
    else {
        println!("skipped: there is no less and no vi");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let text: String = (1..=100).map(|line| format!("row {line}\n")).collect();
    std::fs::write(home.path().join("text"), text).unwrap();
    let mut seen = Seen::start(shell("/bin/sh", home.path(), None)).await;
    seen.sees("ready> ").await;
    seen.terminal.write(&format!("LESS= {pager} text\n")).unwrap();
    seen.sees("row 1\n").await;
    seen.terminal.write("G").unwrap();
    seen.sees("row 100").await;
    let mut late = ScreenModel::new(TerminalSize::clamped(80, 24));
    late.process(seen.screen.repaint().as_bytes());
    assert_eq!(late.contents(), seen.screen.contents());
    seen.terminal.write("q:q!\n").unwrap();
    seen.terminal.write("exit\n").unwrap();
    seen.ends().await;
    assert!(!seen.screen.contents().contains("row 100"), "{}", seen.screen.contents());
}

#[tokio::test]
async fn what_is_left_without_a_reader_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let mut seen = Seen::start(shell("/bin/sh", home.path(), None)).await;
    seen.sees("ready> ").await;
    seen.terminal.write("sleep 1000 & echo started $!.\n").unwrap();
    seen.until("started", |seen| {
        let contents = seen.screen.contents();
        contents.lines().any(|line| line.starts_with("started") && line.ends_with('.'))
    })
    .await;
    let process = seen.terminal.process();
    assert!(process.is_running());
    drop(seen);
    let gone = async {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while process.is_running() {
            tick.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, gone).await.unwrap();
}

#[tokio::test]
async fn a_program_that_closes_the_terminal_is_not_hung_up_on() {
    let home = tempfile::tempdir().unwrap();
    // As `touch` does before it ends.
    let text = "#!/bin/sh\necho before\nexec 0<&- 1>&- 2>&-\nsleep 0.3\n\
                exec 1>/dev/tty\necho after\nexec 1>&-\nsleep 0.3\nexit 5\n";
    let mut seen = Seen::start(program(home.path(), text)).await;
    assert_eq!(seen.ends().await, CommandEnd::Exited(5));
    assert_eq!(seen.screen.contents(), "before\nafter");
}
