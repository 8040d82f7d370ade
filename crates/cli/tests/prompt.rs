//! The system prompt from outside: shown by the scripted agent, rewritten by a pack, looked at by the operator.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::running::{Host, greenroom, result, text};

const GUARD: &str = "---\nsections: [tone, safety, nonsense]\nmode: append\n---\nSay please.\n";
const HIDE: &str = "---\nsections:\n  - environment_context\nmode: replace\n---\nSomewhere.\n";

fn pack(directory: &Path) -> String {
    let pack = directory.join("pack");
    std::fs::create_dir(&pack).unwrap();
    std::fs::write(pack.join("guard.md"), GUARD).unwrap();
    std::fs::write(pack.join("hide.md"), HIDE).unwrap();
    pack.display().to_string()
}

/// A pack that is served until this is dropped.
struct Served(Child);

impl Served {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with("Rewriting tone, environment_context in "), "{line}");
        Self(child)
    }

    /// Stops it; what it complained about.
    fn complaints(mut self) -> String {
        let _ = self.0.kill();
        let mut lines = String::new();
        for line in BufReader::new(self.0.stderr.take().unwrap()).lines() {
            lines.push_str(&line.unwrap());
            lines.push('\n');
        }
        lines
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sections(message: &Value) -> Value {
    let text = message["text"].as_str().unwrap_or_else(|| panic!("{message}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn find<'a>(sections: &'a Value, id: &str) -> &'a Value {
    let mut all = sections.as_array().unwrap().iter();
    all.find(|section| section["id"] == id).unwrap()
}

fn content<'a>(sections: &'a Value, id: &str) -> &'a str {
    find(sections, id)["content"].as_str().unwrap()
}

fn send_prompt(host: &Host, more: &[&str]) -> Value {
    let mut arguments = vec!["send", "--json"];
    arguments.extend(more);
    arguments.push("prompt");
    let sent = host.run(&arguments);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    result(&sent.stdout)
}

#[test]
fn a_pack_rewrites_permitted_sections_and_inspect_shows_it() {
    let host = Host::start();
    let pack = pack(host.data.path());
    std::fs::write(host.data.path().join("AGENTS.md"), "Use tabs.").unwrap();
    let first = send_prompt(&host, &[]);
    let session = first["session"].as_str().unwrap().to_owned();
    let plain = sections(&first);
    assert_eq!(plain.as_array().unwrap().len(), 11);
    assert!(content(&plain, "custom_instructions").contains("Use tabs."));
    assert!(!content(&plain, "tone").contains("please"));

    let mut command = host.greenroom();
    command.args(["transform", &pack, "--session", &session]);
    let served = Served::start(command);
    // It may take a moment until it is active.
    let rewritten = (0..200)
        .map(|_| sections(&send_prompt(&host, &["--session", &session])))
        .find(|sections| content(sections, "tone").contains("please"))
        .expect("the pack takes part");
    assert_eq!(content(&rewritten, "environment_context"), "Somewhere.");
    assert_eq!(find(&rewritten, "safety"), find(&plain, "safety"));
    let clients = host.state(&session)["activeClients"].take();
    let opted_in = &clients[0]["systemMessageTransform"]["sections"];
    assert_eq!(*opted_in, json!(["tone", "nonsense", "environment_context"]), "{clients}");
    let complaints = served.complaints();
    assert!(complaints.contains("`safety` is restricted"), "{complaints}");
    assert!(complaints.contains("no section `nonsense`"), "{complaints}");

    let output = host.run(&["inspect", &session, "--prompt", "--last", "1"]);
    let words = text(&output.stdout);
    assert!(words.contains("and rewrote environment_context, tone, in "), "{words}");
    assert!(words.contains("+ Say please."), "{words}");

    let data = host.kill();
    let after = greenroom(data.path())
        .args(["inspect", &session, "--prompt", "--json", "--last", "50"])
        .output()
        .unwrap();
    let renders: Value = serde_json::from_slice(&after.stdout).unwrap();
    assert_eq!(renders[0]["outcome"], "nobodyOptedIn");
    let last = renders.as_array().unwrap().last().unwrap();
    assert_eq!(last["asked"]["sections"].as_array().unwrap().len(), 2);
    let dry = greenroom(data.path())
        .args(["transform", &pack, "--session", &session, "--dry-run"])
        .output()
        .unwrap();
    let (diff, stderr) = (text(&dry.stdout), text(&dry.stderr));
    assert!(diff.contains("== tone") && diff.contains("+ Say please."), "{diff}{stderr}");
    assert!(!diff.contains("== safety") && stderr.contains("`safety` is restricted"), "{stderr}");
}

#[test]
fn a_restricted_section_is_for_the_operator_alone() {
    let host = Host::start();
    let sent = send_prompt(&host, &[]);
    let session = sent["session"].as_str().unwrap();
    let inspected = host.run(&["inspect", session, "--prompt", "--json"]);
    let renders: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    let safety = find(&renders[0]["sections"], "safety")["after"].as_str().unwrap();
    let sha256 = wire::Digest::new(Sha256::digest(safety).into()).to_string();
    let shown = json!({"id": "safety", "restricted": true, "sha256": sha256});
    assert_eq!(*find(&sections(&sent), "safety"), shown);
    let exported = host.run(&["export", session]);
    let first_line = safety.lines().next().unwrap();
    assert!(first_line.len() > 20 && !text(&exported.stdout).contains(first_line));
}

#[test]
fn unusable_arguments_are_reported() {
    let host = Host::start();
    let missing = host.run(&["inspect", "scripted:/none", "--prompt"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("holds no session or chat scripted:/none"));
    let empty = host.data.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = host.run(&["transform", &empty.display().to_string()]);
    assert!(text(&empty.stderr).contains("holds no .md file"), "{}", text(&empty.stderr));
}
