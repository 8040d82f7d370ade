//! `service`, with a service manager that does what the real one would.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Home, Ran};

/// Stands in for systemctl: writes down how it is called, starts what the unit says, ends what it started.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$HOME/systemctl.log"
unit="$HOME/.config/systemd/user/greenroom.service"
pid="$XDG_DATA_HOME/greenroom/pid"
start() { eval "exec $(sed -n 's/^ExecStart=//p' "$unit")" > "$HOME/service.out" 2>&1 < /dev/null & }
case "$*" in
  *"daemon-reload") ;;
  *"enable --now"*|*" start "*) test -f "$unit" && start ;;
  *"disable --now"*|*" stop "*) kill "$(cat "$pid")" ;;
  *"is-active"*) grep -q '"mode":"service"' "$XDG_DATA_HOME/greenroom/host.json" && kill -0 "$(cat "$pid")" ;;
  *) echo "unknown: $*" >&2; exit 1 ;;
esac
"#;

struct Managed(Home);

impl Managed {
    fn new() -> Self {
        let home = Home::create();
        let programs = home.path().join("bin");
        fs::create_dir(&programs).unwrap();
        let systemctl = programs.join("systemctl");
        fs::write(&systemctl, SYSTEMCTL).unwrap();
        fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        Self(home)
    }

    fn greenroom(&self) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = self.0.greenroom();
        command.env("PATH", format!("{}:{path}", self.0.path().join("bin").display()));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.greenroom().args(arguments).output().unwrap())
    }

    fn unit(&self) -> PathBuf {
        self.0.path().join(".config/systemd/user/greenroom.service")
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.0.path().join("systemctl.log")).unwrap_or_default()
    }

    fn mode(&self) -> String {
        self.0.status()["mode"].as_str().unwrap_or("none").to_owned()
    }
}

#[test]
fn a_unit_names_this_program_and_its_data() {
    let home = Home::create();
    let printed = home.run(&["service", "install", "--print"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let command = format!(
        "\nExecStart=\"{}\" serve --service --data \"{}\"\n",
        env!("CARGO_BIN_EXE_greenroom"),
        home.data().display()
    );
    assert!(printed.out.contains(&command), "{}", printed.out);
    assert!(!home.data().exists() && !home.path().join(".config").exists());

    let odd = home.path().join("100% \"mine\" $HOME");
    let odd = odd.to_str().unwrap();
    let printed = home.run(&["service", "install", "--print", "--data", odd]);
    assert!(printed.out.contains("/100%% \\\"mine\\\" $$HOME\"\n"), "{}", printed.out);
    let arguments = ["service", "install", "--print", "--manager", "launchd", "--data", "/a&b"];
    let printed = home.run(&arguments);
    assert!(printed.out.contains("<string>/a&amp;b</string>"), "{}", printed.out);
    let refused = home.run(&["service", "install", "--print", "--data", "/a\nb"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
}

#[test]
fn nothing_is_installed_without_consent() {
    let managed = Managed::new();
    let refused = managed.run(&["service", "install"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("--yes"), "{refused:?}");
    assert!(!managed.unit().exists());
    assert_eq!(managed.run(&["service", "status"]).code, Some(3));
    assert_eq!(managed.run(&["service", "uninstall", "--yes"]).code, Some(3));
}

#[test]
fn a_service_is_the_first_to_use_a_directory_and_is_restarted_as_one() {
    let managed = Managed::new();
    let installed = managed.run(&["service", "install", "--yes"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert!(managed.run(&["logs"]).out.contains("ready"));
    let before = managed.0.status();
    let restarted = managed.run(&["restart"]);
    assert_eq!(restarted.code, Some(0), "{restarted:?}");
    assert!(managed.calls().contains("--user start greenroom.service"), "{}", managed.calls());
    assert_eq!(managed.mode(), "service");
    assert_ne!(managed.0.status()["pid"], before["pid"]);

    // A unit of the same name that is for another directory is not this one's.
    let unit = fs::read_to_string(managed.unit()).unwrap();
    let other = unit.replace("/greenroom\"\n", "/elsewhere\"\n");
    assert_ne!(unit, other);
    fs::write(managed.unit(), other).unwrap();
    assert_eq!(managed.run(&["service", "status"]).code, Some(3));
    assert_eq!(managed.run(&["stop"]).code, Some(0));
    let refused = managed.run(&["service", "install", "--yes"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("is not for the data directory"), "{refused:?}");
}

#[test]
fn a_service_takes_over_is_found_is_stopped_and_goes() {
    let managed = Managed::new();
    managed.0.start_background();
    let session = managed.run(&["send", "hello"]);
    assert_eq!(session.code, Some(0), "{session:?}");

    let installed = managed.run(&["service", "install", "--yes"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert!(managed.unit().exists() && managed.calls().contains("enable --now greenroom.service"));
    assert_eq!(managed.mode(), "service");
    let status = managed.run(&["status"]);
    assert!(
        status.out.contains("1 session") && status.out.contains("installed, active"),
        "{status:?}"
    );
    assert_eq!(managed.run(&["service", "status"]).code, Some(0));
    assert!(managed.run(&["logs"]).out.contains("ready"));

    // A client finds it and starts nothing.
    let sent = managed.run(&["send", "hello"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    // Another one has nothing to do, and says so without a failure that would be tried again.
    let second = managed.run(&["serve", "--service"]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(managed.run(&["logs"]).out.contains("another host serves the data directory"));

    let stopped = managed.run(&["stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(managed.calls().contains("stop --no-block greenroom.service"), "{}", managed.calls());
    assert_eq!(managed.mode(), "none");

    // Whoever needs a host starts the service, not another one beside it.
    let mut command = managed.greenroom();
    let mut chat =
        command.args(["chat", "--plain"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut chat.stdin.take().unwrap(), b"hello\n").unwrap();
    let chat = Ran::of(chat.wait_with_output().unwrap());
    assert_eq!(chat.code, Some(0), "{chat:?}");
    assert!(chat.err.contains("started the service greenroom.service"), "{chat:?}");
    assert_eq!(managed.mode(), "service");

    let removed = managed.run(&["service", "uninstall", "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(!managed.unit().exists());
}

#[test]
fn a_host_in_a_terminal_is_not_pushed_aside() {
    let managed = Managed::new();
    let mut command = managed.greenroom();
    command.args(["serve", "--listen", "127.0.0.1:0", "--ready-json", "--workspace", "."]);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let refused = managed.run(&["service", "install", "--yes"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("was not started in the background"), "{refused:?}");
    assert!(!managed.unit().exists());
    assert_eq!(managed.run(&["stop"]).code, Some(0));
    child.wait().unwrap();
}
