//! `greenroom compose`: every vector of the compositor through the real binary, over a workspace on disk.

use crate::running;

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::running::{greenroom, text};

const FILE: &str = include_str!("../../compositor/tests/vectors.json");

/// Vectors that say something about a session; this verb has none.
const OF_A_SESSION: [(&str, &str); 1] =
    [("V19", "the verb does not know what the session already holds inline")];

/// Runs the verb over a message, in a workspace.
fn compose(workspace: &Path, arguments: &[&str], input: &str) -> Output {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut child = greenroom(elsewhere.path())
        // What whoever runs this keeps for agents is not part of it.
        .env("HOME", elsewhere.path())
        .arg("compose")
        .args(arguments)
        .arg("--workspace")
        .arg(workspace)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // A verb that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn to_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

fn put(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The commands and skills that all vectors know, as a project declares them.
fn declare(workspace: &Path, file: &Value) {
    let mut triggers = Vec::new();
    for (id, what) in file["commands"].as_object().unwrap() {
        let name = id.trim_start_matches('/');
        let body = match what {
            Value::String(what) if what == "host action" => continue,
            Value::String(template) => template.clone(),
            Value::Object(what) if what.contains_key("intent") => {
                format!("---\nintent: {}\n---\n", what["intent"].as_str().unwrap())
            }
            what => {
                triggers.push((name, what["skill"].as_str().unwrap()));
                continue;
            }
        };
        put(&workspace.join(format!(".greenroom/commands/{name}.md")), body);
    }
    for skill in file["skills"].as_array().unwrap() {
        let skill = skill.as_str().unwrap();
        let trigger = triggers
            .iter()
            .find(|(_, of)| *of == skill)
            .map(|(name, _)| format!("command: {name}\n"));
        let head = format!("---\nname: {skill}\n{}---\n", trigger.unwrap_or_default());
        put(
            &workspace.join(format!(".agents/skills/{skill}/SKILL.md")),
            head + "How it is done.\n",
        );
    }
}

/// The files that a vector uses.
fn lay_out(workspace: &Path, vector: &Value) {
    for (path, lies) in vector["workspace"].as_object().into_iter().flatten() {
        let path = workspace.join(path);
        match (&lies["utf8"], &lies["base64"], &lies["symlink"]) {
            (Value::String(text), ..) => put(&path, text),
            (_, Value::String(data), _) => put(&path, STANDARD.decode(data).unwrap()),
            (.., Value::String(to)) => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(to, &path).unwrap();
            }
            _ => put(&path, vec![b'0'; lies["zeros"].as_u64().unwrap() as usize]),
        }
    }
}

/// Bodies that are only described, written out.
fn write_out(value: &mut Value) {
    if let Some(of) = value.get("base64_of") {
        let hex = of["hex"].as_str().unwrap();
        let beginning = (0..hex.len()).step_by(2);
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let mut bytes: Vec<u8> = beginning.map(byte).collect();
        let zeros = of["then_zero_bytes"].as_u64().unwrap() as usize;
        bytes.resize(bytes.len() + zeros, 0);
        *value = Value::String(STANDARD.encode(bytes));
        return;
    }
    match value {
        Value::Array(values) => values.iter_mut().for_each(write_out),
        Value::Object(fields) => fields.values_mut().for_each(write_out),
        _ => {}
    }
}

/// A vector as it is in a workspace that lies elsewhere than `/ws`.
fn moved(vector: &Value, workspace: &Path) -> Value {
    let there = format!("file://{}/", workspace.display());
    let vector = vector.to_string().replace("file:///ws/", &there);
    let mut vector = serde_json::from_str(&vector).unwrap();
    write_out(&mut vector);
    vector
}

fn check(file: &Value, vector: &Value) {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().canonicalize().unwrap().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    let vector = moved(vector, &workspace);
    let id = vector["id"].as_str().unwrap();
    declare(&workspace, file);
    lay_out(&workspace, &vector);
    let entities = directory.path().join("entities.json");
    let known = vector.get("entities").cloned().unwrap_or(json!([]));
    put(&entities, known.to_string());
    let entities = entities.display().to_string();
    let input = vector["input"].to_string();

    let output = compose(&workspace, &["--json", "--entities", &entities], &input);
    let all = to_json(&output);
    assert_eq!(all["parts"], vector["persisted"], "{id}: persisted parts");
    let is_refused = vector["persisted"].as_array().unwrap().is_empty();
    assert_eq!(output.status.code(), Some(i32::from(is_refused)), "{id}");
    for expected in vector["diagnostics"].as_array().into_iter().flatten() {
        let diagnostics = all["diagnostics"].as_array().unwrap();
        assert!(diagnostics.contains(expected), "{id}: {diagnostics:?}");
    }
    for (target, blocks) in vector["lowered"].as_object().unwrap() {
        assert_eq!(&all["lowered"][target], blocks, "{id}: {target}");
        let arguments = ["--json", "--entities", &entities, "--target", target];
        let one = to_json(&compose(&workspace, &arguments, &input));
        assert_eq!(&one["lowered"], blocks, "{id}: only {target}");
    }
}

#[test]
fn every_vector_comes_out_of_the_binary_as_it_is_written() {
    let file: Value = serde_json::from_str(FILE).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    let mut skipped = Vec::new();
    for vector in vectors {
        let id = vector["id"].as_str().unwrap();
        match OF_A_SESSION.iter().find(|(skipped, _)| *skipped == id) {
            Some(_) => skipped.push(id),
            None => check(&file, vector),
        }
    }
    assert_eq!(skipped, OF_A_SESSION.map(|(id, _)| id));
}

#[test]
fn an_empty_message_is_refused() {
    let workspace = tempfile::tempdir().unwrap();
    let only_context =
        json!([{"type": "editor-context", "kind": "open", "payload": {}, "emitted_at": 1}]);
    for input in [only_context.to_string(), "[]".to_owned()] {
        let refused = compose(workspace.path(), &["--json"], &input);
        assert_eq!(refused.status.code(), Some(1), "{input}");
        let output = to_json(&refused);
        assert_eq!(output["parts"], json!([]));
        assert!(output["diagnostics"].to_string().contains("empty_message"));
        assert!(text(&refused.stderr).contains("empty_message"));
    }
}

#[test]
fn a_message_that_could_not_be_sent_is_refused() {
    let workspace = tempfile::tempdir().unwrap();
    let parts =
        json!([{"type": "command", "id": "/rewind"}, {"type": "text", "text": "and go on"}]);
    let refused = compose(workspace.path(), &["--json"], &parts.to_string());
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
    assert!(text(&refused.stderr).contains("send it alone"));
    let alone = compose(workspace.path(), &["--json"], "/rewind\n");
    assert!(alone.status.success(), "{}", text(&alone.stderr));
}

#[test]
fn plain_text_is_printed_and_nothing_is_written() {
    let workspace = tempfile::tempdir().unwrap();
    put(&workspace.path().join("a.txt"), "one\ntwo\n");
    let output = compose(workspace.path(), &["--target", "openai_chat"], "see @file:a.txt:2 now\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let words = text(&output.stdout);
    for expected in [
        r#"0 {"type":"text","text":"see "}"#,
        r#"1 {"type":"mention","target":{"kind":"file","path":"a.txt""#,
        "Sent to openai_chat",
        r"a.txt:2-2\n```\ntwo\n```",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    assert!(!words.contains("anthropic"), "{words}");
    assert!(!words.contains("@file"), "{words}");
    let left: Vec<_> = std::fs::read_dir(workspace.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn impossible_arguments_are_usage_errors() {
    let workspace = tempfile::tempdir().unwrap();
    let unknown = compose(workspace.path(), &["--target", "telex"], "hello");
    assert_eq!(unknown.status.code(), Some(2));
    let output = text(&unknown.stderr);
    assert!(output.contains("there are anthropic, openai_responses"), "{output}");
    let nowhere = compose(&workspace.path().join("nowhere"), &[], "hello");
    assert_eq!(nowhere.status.code(), Some(1), "{}", text(&nowhere.stderr));
    assert!(text(&nowhere.stderr).contains("is not a directory"));
}

/// What the user keeps in all projects counts here as it does when the message is sent.
#[test]
fn the_users_own_commands_and_plugins_are_known() {
    let (work, data, home) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plugin = home.path().join("elsewhere");
    put(&plugin.join("commands/go.md"), "Go far.");
    put(&home.path().join(".agents/plugins/kit/commands/build.md"), "Build it all.");
    put(
        &running::data_directory(data.path()).join("greenroom.toml"),
        format!("plugins = [\"{}\"]\n", plugin.display()),
    );
    for (message, expansion) in [("/kit:build", "Build it all."), ("/elsewhere:go", "Go far.")] {
        let mut child = greenroom(data.path())
            .args(["compose", "--json", "--workspace"])
            .arg(work.path())
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(message.as_bytes()).unwrap();
        drop(input);
        let composed = to_json(&child.wait_with_output().unwrap());
        assert!(composed["lowered"].to_string().contains(expansion), "{composed:#}");
    }
}
