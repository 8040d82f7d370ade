//! External agents with the real binary: listed, chosen, and started only in directories that somebody trusts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::running::{Host, data_directory, greenroom, text};
use crate::terminal::{ENTER, Terminal};

/// The settings file of a data directory that is not there yet.
fn settings(place: &Path, text: &str) {
    let data = data_directory(place);
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("greenroom.toml"), text).unwrap();
}

/// A directory with programs in it that leave a mark if they are run.
fn programs(place: &Path, names: &[&str]) -> String {
    let bin = place.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for name in names {
        let path = bin.join(name);
        let mark = place.join("ran");
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    bin.to_str().unwrap().to_owned()
}

fn run(place: &Path, path: &str, arguments: &[&str]) -> Output {
    let mut command = greenroom(place);
    command.args(arguments).env("PATH", path).output().unwrap()
}

fn json_of(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_installed_is_listed_and_how_to_install_the_rest() {
    let place = tempfile::tempdir().unwrap();
    let path = programs(place.path(), &["qwen", "gemini"]);
    settings(
        place.path(),
        "[[agents]]\nid = \"mine\"\nname = \"Mine\"\ncommand = \"no-such-agent\"\nenv = { SECRET = \"hush\" }\n",
    );
    let listed = json_of(&run(place.path(), &path, &["agents", "--json"]));
    let agents = listed.as_array().unwrap();
    let offered: Vec<&str> = agents
        .iter()
        .filter(|agent| agent["offered"] == true)
        .map(|agent| agent["id"].as_str().unwrap())
        .collect();
    assert_eq!(offered, ["mine", "gemini", "qwen"]);
    assert_eq!(agents[0]["program"], Value::Null);
    let gemini = format!("{path}/gemini");
    assert_eq!(agents[1]["program"], json!(gemini));
    assert!(!listed.to_string().contains("hush"), "values are not shown");
    let output = run(place.path(), &path, &["agents"]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("mine      Mine: Not installed: `no-such-agent` is not on the PATH"),
        "{shown}"
    );
    assert!(shown.contains(&format!("gemini    Gemini CLI: {gemini}\n")), "{shown}");
    let (_, missing) = shown.split_once("Not installed:\n").unwrap();
    let claude = "claude    Claude Code: Install it with `npm install -g @agentclientprotocol/claude-agent-acp` (Node 22 or newer).\n";
    assert!(missing.contains(claude), "{shown}");
    assert!(!place.path().join("ran").exists(), "nothing was run");

    let checked = json_of(&run(place.path(), &path, &["doctor", "--json"]));
    let findings = checked.as_array().unwrap().iter();
    let agents: Vec<&Value> = findings.filter(|it| it["check"] == "agent").collect();
    let levels: Vec<&str> = agents.iter().map(|it| it["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["warn", "ok", "ok"], "{agents:?}");

    settings(place.path(), "[[agents]]\nid = \"mine\"\ncomand = \"x\"\n");
    let wrong = run(place.path(), &path, &["agents"]);
    assert_ne!(wrong.status.code(), Some(0));
    let said = text(&wrong.stderr);
    assert!(
        said.contains(
            "greenroom.toml:3: there is no setting `agents.comand`; did you mean `command`?"
        ),
        "{said}"
    );
}

#[test]
fn directories_are_trusted_listed_and_revoked() {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().canonicalize().unwrap().join("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    fs::write(project.join(".claude/settings.json"), "{}").unwrap();
    let agents = |arguments: &[&str]| {
        let mut command = greenroom(place.path());
        let output = command.arg("agents").args(arguments).output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        (output.status.code(), said)
    };
    assert!(agents(&["trust"]).1.starts_with("No directory is trusted"));
    let (code, said) = agents(&["trust", "project"]);
    assert_eq!(code, Some(0), "{said}");
    let file = project.join(".claude/settings.json").display().to_string();
    assert!(
        said.contains(&format!("Agents may be started in {} and below it.", project.display())),
        "{said}"
    );
    assert!(said.contains(&file), "{said}");
    assert!(agents(&["trust", "project"]).1.contains("trusted already"));
    let (_, listed) = agents(&["trust", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["directory"], json!(project));
    assert_eq!(listed[0]["by"], "greenroom agents trust");
    assert_eq!(listed[0]["files"], json!([file]));
    let mode = fs::metadata(data_directory(place.path()).join("trust.toml")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    assert_eq!(agents(&["trust", "--revoke", "project"]).0, Some(0));
    let (code, said) = agents(&["trust", "--revoke", "project"]);
    assert!(code == Some(1) && said.contains("was not trusted"), "{said}");
    // What was answered about a server of the directory is listed, and goes with it.
    let item = format!(
        "[[items]]\ndirectory = {project:?}\nitem = \"mcp:files\"\ndigest = \"d\"\nsince = \"2026-11-17T00:00:00Z\"\nby = \"ann\"\n"
    );
    fs::write(data_directory(place.path()).join("trust.toml"), item).unwrap();
    let (_, listed) = agents(&["trust"]);
    let line = format!("{}: only its MCP server files", project.display());
    assert!(listed.contains(&line) && listed.contains("by ann"), "{listed}");
    let (_, listed) = agents(&["trust", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["item"], "mcp:files");
    assert_eq!(agents(&["trust", "--revoke", "project"]).0, Some(0));
    assert!(agents(&["trust"]).1.starts_with("No directory is trusted"));
    settings(place.path(), &format!("trusted = [{:?}]\n", place.path().join("project")));
    let (code, said) = agents(&["trust", "--revoke", "project"]);
    assert!(code == Some(1) && said.contains("`trusted` of greenroom.toml"), "{said}");
    assert!(agents(&["trust", "none"]).1.contains("none cannot be trusted"));
}

/// A host with an agent behind it that answers everything, in a directory with a file that can run commands.
fn fake_host() -> Host {
    host_with(&json!({"scenes": [{"when": "", "steps": [{"say": ["all is well"]}]}]}))
}

fn host_with(script: &Value) -> Host {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let state = root.join("state");
    fs::create_dir(&state).unwrap();
    fs::write(root.join("script.json"), script.to_string()).unwrap();
    fs::write(root.join(".mcp.json"), "{}").unwrap();
    let command = acp_agent::binary().unwrap();
    settings(
        place.path(),
        &format!(
            "agents_auto = false\n[[agents]]\nid = \"fake\"\nname = \"Fake Agent\"\ncommand = {command:?}\nargs = [\"--script\", {:?}, \"--state\", {state:?}]\n",
            root.join("script.json")
        ),
    );
    Host::start_with(place, &[])
}

fn starts(host: &Host) -> usize {
    acp_agent::starts(&host.data.path().join("state")).len()
}

#[test]
fn a_terminal_asks_before_an_agent_starts_in_a_directory() {
    let host = fake_host();
    let mut command = host.greenroom();
    command.args(["chat", "--agent", "fake"]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("\n›");
    ann.type_line("hello");
    let screen = ann.sees("Trust this directory?");
    for words in [
        "Fake Agent would work in",
        ".mcp.json",
        "1 Yes, for good",
        "2 Yes, in this session",
        "3 No, do not start Fake Agent",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert_eq!(starts(&host), 0, "nothing runs before the answer");
    ann.decide('3');
    let screen = ann.sees("was not started");
    assert!(screen.contains("greenroom agents trust"), "{screen}");
    assert_eq!(starts(&host), 0);
    ann.type_line("again");
    ann.wait_until(|screen| screen.matches("1 Yes, for good").count() > 0);
    ann.decide('1');
    ann.wait_until(|screen| screen.contains("all is well") && !screen.contains("Esc interrupts"));
    assert_eq!(starts(&host), 1);
    // The list of agents, and a new session with the one that is chosen there: nobody is asked again.
    ann.type_line("/agents");
    let screen = ann.sees("agent ›");
    assert!(screen.contains("Fake Agent") && screen.contains("Scripted"), "{screen}");
    ann.press("fake");
    ann.press(ENTER);
    ann.wait_until(|screen| !screen.contains("agent ›"));
    ann.type_line("once more");
    ann.wait_until(|screen| screen.matches("all is well").count() == 2);
}

#[test]
fn lines_and_scripts_are_asked_or_told_what_would_trust() {
    let host = fake_host();
    let sent = host.run(&["send", "--agent", "fake", "hello"]);
    let said = text(&sent.stderr);
    assert_eq!(sent.status.code(), Some(1), "{said}");
    let work = host.data.path().canonicalize().unwrap();
    let command = format!("`greenroom agents trust {}` trusts it.", work.display());
    assert!(said.contains(&command), "{said}");
    assert_eq!(starts(&host), 0);
    let chat = host.run_with(&["chat", "--plain", "--agent", "fake"], "hello\n2\n");
    let (out, err) = (text(&chat.stdout), text(&chat.stderr));
    assert!(err.contains("2 Yes, in this session"), "{err}");
    assert_eq!(chat.status.code(), Some(0), "{err}");
    assert!(out.contains("all is well"), "{out}{err}");
    let trusted = text(&host.run(&["agents", "trust"]).stdout);
    assert!(
        trusted.contains(" only  since ") && trusted.contains(" by a terminal, with 1 file"),
        "{trusted}"
    );
    assert_eq!(host.run(&["agents", "trust", "."]).status.code(), Some(0));
    let sent = host.run(&["send", "--agent", "fake", "hello"]);
    assert_eq!(text(&sent.stdout).trim(), "all is well", "{sent:?}");
    let listed = host.run(&["agents", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(listed[0]["version"].is_string(), "{listed}");
    let unknown = host.run(&["send", "--agent", "goose", "hello"]);
    let said = text(&unknown.stderr);
    assert!(said.contains("the host offers no agent `goose`"), "{said}");
    assert!(said.contains("https://block.github.io/goose"), "{said}");
}

// AG-1, AG-29
#[test]
fn an_agent_that_ran_is_listed_with_its_version_and_whether_it_is_signed_in() {
    let missing = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let wants = json!({"method": "session/new", "times": 1, "answer": missing});
    let says = json!([{"when": "", "steps": [{"say": ["all is well"]}]}]);
    let host = host_with(&json!({"answers": [wants], "scenes": says}));
    assert_eq!(host.run(&["agents", "trust", "."]).status.code(), Some(0));
    let listed = || -> Value {
        let listed = host.run(&["agents", "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed[0].clone()
    };
    let before = listed();
    assert_eq!((&before["id"], &before["offered"]), (&json!("fake"), &json!(true)));
    assert!(before["version"].is_null() && before["signedIn"].is_null(), "{before:#}");
    for (signed_in, words) in [(false, " · not signed in"), (true, " · signed in")] {
        let sent = host.run(&["send", "--agent", "fake", "hello"]);
        assert_eq!(sent.status.success(), signed_in, "{sent:?}");
        let agent = listed();
        assert_eq!(agent["signedIn"], signed_in, "{agent:#}");
        let version = agent["version"].as_str().unwrap();
        let shown = text(&host.run(&["agents"]).stdout);
        assert!(shown.contains(&format!("fake      Fake Agent {version}: ")), "{shown}");
        assert!(shown.contains(words), "{shown}");
    }
}

// AG-18
#[test]
fn what_an_agent_printed_is_shown_to_its_user_without_secrets() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("noisy");
    let lines =
        "echo \"cannot find the \\033[31mlibrary\" >&2; echo \"key is $NOISY_KEY\" >&2; exit 3";
    fs::write(&script, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let key = place.path().join("key");
    fs::write(&key, "s3cret-value\n").unwrap();
    settings(
        place.path(),
        &format!(
            "agents_auto = false\n[[agents]]\nid = \"noisy\"\ncommand = {script:?}\ntrust = \"always\"\nenv_from = {{ NOISY_KEY = {{ file = {key:?} }} }}\n"
        ),
    );
    let host = Host::start_with(place, &[]);
    let before = host.run(&["agents", "--log", "noisy"]);
    assert!(text(&before.stderr).contains("printed nothing"), "{before:?}");
    let sent = host.run(&["send", "--agent", "noisy", "hello"]);
    assert_eq!(sent.status.code(), Some(1), "{sent:?}");
    let log = host.run(&["agents", "--log", "noisy"]);
    let shown = text(&log.stdout);
    assert_eq!(log.status.code(), Some(0), "{log:?}");
    assert!(shown.contains("cannot find the") && shown.contains("key is ***"), "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains("s3cret"), "{shown}");
    let unknown = host.run(&["agents", "--log", "goose"]);
    assert!(text(&unknown.stderr).contains("offers no agent"), "{unknown:?}");
}
