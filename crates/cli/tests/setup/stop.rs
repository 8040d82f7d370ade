//! `stop` and `status`: what they say, and whom they never signal.

use std::fs;
use std::io::Read;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::running::{Host, data_directory, text};
use crate::{Bystander, Home};

fn code(host: &Host, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = host.run(arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn without_a_host_there_is_nothing_to_stop_and_nothing_is_made() {
    let home = Home::create();
    let status = home.run(&["status"]);
    assert_eq!(status.code, Some(3), "{status:?}");
    assert!(status.out.contains("No host is running") && status.out.contains("greenroom chat"));
    assert_eq!(home.status()["running"], json!(false));
    let stopped = home.run(&["stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.out.contains("No host is running"), "{stopped:?}");
    assert!(!home.data().exists());
}

#[test]
fn status_says_what_the_host_is_and_does() {
    let host = Host::start();
    host.new_session("hello");
    let mut asking = host.greenroom().args(["send", "hang"]).spawn().unwrap();
    let mut begun = [0; 4];
    let out = asking.stdout.as_mut().unwrap();
    out.read_exact(&mut begun).unwrap();
    let (status, out, err) = code(&host, &["status", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["pid"], host.pid());
    assert_eq!(report["address"], host.ready["url"]);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["mode"], "foreground");
    assert_eq!(report["clients"], 1, "the one that sends");
    assert_eq!(report["sessions"], json!({"total": 2, "working": 1, "waiting": 0}));
    assert_eq!(report["models"], json!([]));
    assert!(report["uptimeSeconds"].as_i64().unwrap() >= 0);
    let token = host.ready["token"].as_str().unwrap();
    assert!(!out.contains(token));

    let (status, out, _) = code(&host, &["status"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("2, 1 working") && out.contains("1 connected"), "{out}");
    assert!(!out.contains(token), "{out}");
    asking.kill().unwrap();
    asking.wait().unwrap();
}

#[test]
fn a_stopped_host_is_gone_and_its_turn_can_be_resumed() {
    let host = Host::start();
    let mut asking = host.greenroom().args(["send", "hang"]).spawn().unwrap();
    let mut begun = [0; 4];
    asking.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
    let (stopped, out, err) = code(&host, &["stop"]);
    assert_eq!(stopped, Some(0), "{err}");
    assert!(out.contains("The host has stopped."), "{out}");
    let pid = host.pid();
    assert!(err.contains(&format!("Stopping the host (pid {pid}")), "{err}");
    assert!(err.contains("1 turn is running") && err.contains("can be resumed"), "{err}");
    assert_eq!(code(&host, &["status"]).0, Some(3));
    assert!(!data_directory(host.data.path()).join("endpoint.json").exists());
    asking.kill().unwrap();
    asking.wait().unwrap();

    let host = Host::start_with(host.kill(), &[]);
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(sessions[0]["status"].as_u64().unwrap() & 31, 2, "{sessions}");
}

/// Every file in which a host leaves its number, with another's number.
fn forge_numbers(data: &std::path::Path, pid: u32) {
    let endpoint =
        json!({"url": "ws://127.0.0.1:9/", "token": "t", "pid": pid, "version": "0.1.0"});
    fs::write(data.join("endpoint.json"), endpoint.to_string()).unwrap();
    for file in ["lock", "pid"] {
        fs::write(data.join(file), format!("{pid}\n")).unwrap();
    }
    let file = data.join("host.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    record["pid"] = json!(pid);
    record["mode"] = json!("background");
    fs::write(file, record.to_string()).unwrap();
}

#[test]
fn a_stranger_with_the_number_of_a_killed_host_is_never_signalled() {
    let mut stranger = Bystander::start();
    let host = Host::start();
    let home = host.kill();
    let data = data_directory(home.path());
    forge_numbers(&data, stranger.pid());
    let home = Home(home);
    let status = home.run(&["status"]);
    assert_eq!(status.code, Some(3), "{status:?}");
    for verb in [&["stop"][..], &["stop", "--force", "--timeout", "0"]] {
        let stopped = home.run(verb);
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
        assert!(stopped.out.contains("No host is running"), "{stopped:?}");
    }
    assert!(stranger.is_alive());

    // Somebody holds the directory, and all files say that it is the stranger.
    let lock = fs::File::open(&data).unwrap();
    lock.lock().unwrap();
    for verb in [&["stop"][..], &["stop", "--force", "--timeout", "0"], &["restart"]] {
        let refused = home.run(verb);
        assert_eq!(refused.code, Some(1), "{refused:?}");
    }
    let refused = home.run(&["stop", "--force"]);
    assert!(refused.err.contains("No signal was sent"), "{refused:?}");
    assert!(stranger.is_alive());
}

#[test]
fn a_host_that_hangs_is_killed_only_when_asked() {
    let host = Host::start();
    host.new_session("hello");
    let pid = Pid::from_raw(i32::try_from(host.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let (status, out, err) = code(&host, &["status", "--json"]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("does not answer"), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["running"], &report["answers"]), (&json!(true), &json!(false)));

    let (stopped, _, err) = code(&host, &["stop", "--timeout", "1"]);
    assert_eq!(stopped, Some(1));
    assert!(err.contains("has not stopped within 1 s") && err.contains("stop --force"), "{err}");
    let (stopped, out, err) = code(&host, &["stop", "--timeout", "1", "--force"]);
    assert_eq!(stopped, Some(0), "{err}");
    assert!(err.contains("is killed") && out.contains("has stopped"), "{err}");
    assert_eq!(code(&host, &["status"]).0, Some(3));

    let host = Host::start_with(host.kill(), &[]);
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "nothing is lost");
}

#[test]
fn a_host_on_standard_input_can_be_stopped_too() {
    let home = Home::create();
    let mut command = home.greenroom();
    command.args(["serve", "--stdio", "--workspace", "."]);
    let mut serving = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let input = serving.stdin.take();
    let ping =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"channel": "ahp-root://"}});
    std::io::Write::write_all(&mut input.as_ref().unwrap(), format!("{ping}\n").as_bytes())
        .unwrap();
    serving.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
    let stopped = home.run(&["stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(serving.wait().unwrap().success());
}
