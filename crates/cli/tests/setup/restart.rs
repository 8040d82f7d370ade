//! `restart`: the same host again, and clients that stay.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Home;
use crate::running::{Host, data_directory, text};
use crate::terminal::{CTRL_D, Terminal};

#[test]
fn a_chat_survives_a_restart() {
    let home = Home::create();
    let mut ann = Terminal::start("ann", home.greenroom());
    ann.sees("started a host in the background: `greenroom stop`");
    ann.sees("\n›");
    ann.type_line("hello");
    ann.sees("same words.");
    let before = home.status();
    assert_eq!(before["mode"], "background");
    let log = home.data().join("host.log");
    assert_eq!(before["log"], log.to_str().unwrap());

    let restarted = home.run(&["restart"]);
    assert_eq!(restarted.code, Some(0), "{restarted:?}");
    let after = home.status();
    assert_ne!(after["pid"], before["pid"]);
    assert_eq!(after["address"], before["address"], "others know it");
    assert_eq!(after["sessions"]["total"], 1);

    ann.type_line("think");
    ann.sees("The answer is 42.");
    ann.press(CTRL_D);
    assert_eq!(ann.ends(), Some(0));
}

/// Waits until a host that the test started itself is ready.
fn wait_until_ready(home: &Home) -> Value {
    loop {
        let status = home.status();
        if status["answers"] == json!(true) {
            return status;
        }
    }
}

#[test]
fn a_host_is_restarted_with_the_options_and_where_it_ran() {
    let home = Home::create();
    let work = home.path().join("a project");
    fs::create_dir(&work).unwrap();
    fs::create_dir_all(home.data()).unwrap();
    let mut command = home.greenroom();
    command
        .args(["serve", "--background", "--no-scripted"])
        .args(["--model", "http://127.0.0.1:9/v1#m1"])
        .current_dir(&work);
    let mut child = command.spawn().unwrap();
    let before = wait_until_ready(&home);
    assert_eq!(before["models"], json!(["m1"]));
    let restarted = home.run(&["restart"]);
    assert_eq!(restarted.code, Some(0), "{restarted:?}");
    child.wait().unwrap();
    let after = home.status();
    assert_ne!(after["pid"], before["pid"]);
    assert_eq!(after["models"], json!(["m1"]));
    let record: Value =
        serde_json::from_slice(&fs::read(home.data().join("host.json")).unwrap()).unwrap();
    assert_eq!(Path::new(record["directory"].as_str().unwrap()), work.canonicalize().unwrap());

    // Also after it was stopped.
    assert_eq!(home.run(&["stop"]).code, Some(0));
    assert_eq!(home.run(&["restart"]).code, Some(0));
    assert_eq!(home.status()["models"], json!(["m1"]));
}

#[test]
fn a_host_in_a_terminal_is_left_there_unless_asked() {
    let host = Host::start();
    let refused = host.run(&["restart"]);
    let err = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{err}");
    assert!(err.contains("restart --background"), "{err}");
    let session = host.new_session("hello");

    let _stop = StopAtEnd(&host);
    let moved = host.run(&["restart", "--background"]);
    assert_eq!(moved.status.code(), Some(0), "{}", text(&moved.stderr));
    let status: Value = serde_json::from_slice(&host.run(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["mode"], "background");
    assert_ne!(status["pid"], host.pid());
    let again = host.run(&["send", "hello", "--session", &session]);
    assert!(again.status.success(), "{}", text(&again.stderr));
}

/// The host in the background is none of the test's children.
struct StopAtEnd<'a>(&'a Host);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.run(&["stop", "--force"]);
    }
}

#[test]
fn nothing_is_stopped_for_settings_that_are_wrong() {
    let home = Home::create();
    home.start_background();
    let before = home.status();
    home.settings("lisen = \"127.0.0.1:1\"\n");
    let refused = home.run(&["restart"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("`listen`") && refused.err.contains("Nothing was stopped"));
    assert_eq!(home.status()["pid"], before["pid"]);
}

#[test]
fn nothing_is_stopped_for_a_certificate_that_cannot_be_used() {
    let home = Home::create();
    home.start_background();
    let before = home.status();
    home.settings("tls_cert = \"/nowhere/cert.pem\"\ntls_key = \"/nowhere/key.pem\"\n");
    let refused = home.run(&["restart"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("tls_cert: /nowhere/cert.pem")
            && refused.err.contains("Nothing was stopped"),
        "{refused:?}"
    );
    assert_eq!(home.status()["pid"], before["pid"]);
    let checked = home.run(&["config", "check"]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.err.contains("tls_cert: /nowhere/cert.pem"), "{checked:?}");
}

#[test]
fn keys_that_the_new_host_would_miss_are_named() {
    let home = Home::create();
    home.settings(
        "[[models]]\nid = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"NO_SUCH_KEY\"\n",
    );
    let started = home.run(&["restart"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.err.contains("NO_SUCH_KEY is not set here"), "{started:?}");
}

#[test]
fn a_host_of_another_version_is_noticed() {
    let host = Host::start();
    let file = data_directory(host.data.path()).join("endpoint.json");
    let mut endpoint: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    endpoint["version"] = json!("0.0.9");
    fs::write(&file, endpoint.to_string()).unwrap();
    let words = format!(
        "The running host is 0.0.9, this is {}: `greenroom restart`",
        env!("CARGO_PKG_VERSION")
    );
    let chat = host.run_with(&["chat", "--plain"], "hello\n");
    assert!(text(&chat.stderr).contains(&words), "{}", text(&chat.stderr));
    assert!(text(&chat.stdout).starts_with("Hello!"));
    for verb in ["status", "doctor"] {
        let shown = text(&host.run(&[verb]).stdout);
        assert!(shown.contains(&words), "{shown}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_directory_that_cannot_be_written_is_named() {
    let home = Home::create();
    let started = home.run(&["restart", "--data", "/proc/greenroom"]);
    assert_eq!(started.code, Some(1), "{started:?}");
    assert!(started.err.contains("/proc/greenroom cannot be created"), "{started:?}");
    assert_eq!(home.run(&["status", "--data", "/proc/greenroom"]).code, Some(3));
}
