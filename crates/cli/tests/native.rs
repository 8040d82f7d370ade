//! The real binary with a model behind it: found, listed, talked to, killed; and its key never printed.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use client::HostTarget;
use conformance::native::{ChatClient, calls_of, messages, parts_of, script_of};
use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Call, Gate, ModelServer};

use crate::running::{Host, data_directory, greenroom, text};

const KEY: &str = "sk-very-secret-0123456789";
const DATABASE: &str = "mysql://user:hunter2@db/";

fn model_of(server: &ModelServer) -> String {
    format!("{}#echo", server.url())
}

fn bash(command: &str) -> Call {
    Call::new("c", "bash", &json!({"command": command}))
}

/// Runs a verb while the model server of this test goes on serving.
async fn run(mut command: Command) -> Output {
    let done = tokio::task::spawn_blocking(move || command.output().unwrap());
    done.await.unwrap()
}

async fn start(data: TempDir, model: &str) -> Host {
    let model = model.to_owned();
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    started.await.unwrap()
}

fn verb(host: &Host, arguments: &[&str]) -> Command {
    let mut command = host.greenroom();
    command.args(arguments);
    command
}

async fn arrives(host: &Host) -> ChatClient {
    ChatClient::arrives_at(&host.target(), "ann").await
}

const SESSION: &str = "native:/binary";

#[tokio::test]
async fn a_message_is_answered_by_the_model() {
    let server = ModelServer::start().await;
    server
        .answers([Answer::streams(["Hello ", "from the model."]), Answer::error(400, "too long")]);
    let host = start(tempfile::tempdir().unwrap(), &model_of(&server)).await;
    let sent = run(verb(&host, &["send", "hello"])).await;
    assert_eq!(text(&sent.stdout), "Hello from the model.\n", "{}", text(&sent.stderr));
    assert!(sent.status.success());
    let sent = run(verb(&host, &["send", "--agent", "native", "hello"])).await;
    assert_eq!(sent.status.code(), Some(1));
    assert!(text(&sent.stderr).contains("too long"), "{}", text(&sent.stderr));
    let sent = run(verb(&host, &["send", "--agent", "scripted", "hello"])).await;
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn models_are_listed_with_whether_they_answer() {
    let server = ModelServer::start().await;
    server.has_models(["echo"]);
    let data = tempfile::tempdir().unwrap();
    let models = |arguments: &[&str]| {
        let mut command = greenroom(data.path());
        command.arg("models").args(arguments);
        run(command)
    };
    let none = models(&[]).await;
    assert!(none.status.success() && text(&none.stdout).contains("greenroom models add"));
    let answers = models(&["--model", &model_of(&server)]).await;
    let line = text(&answers.stdout);
    assert!(answers.status.success() && line.ends_with("  answers\n"), "{line}");
    let unknown = models(&["--model", &format!("{}#nobody", server.url()), "--json"]).await;
    let output: Value = serde_json::from_slice(&unknown.stdout).unwrap();
    assert_eq!(unknown.status.code(), Some(1), "{output:#}");
    assert!(output[0]["answers"] == false && output[0]["error"].is_string(), "{output:#}");
    drop(server);
    let directory = data_directory(data.path());
    std::fs::create_dir_all(&directory).unwrap();
    let toml = "[[models]]\nid = \"gone\"\nname = \"Gone\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    std::fs::write(directory.join("greenroom.toml"), toml).unwrap();
    let gone = models(&["--json"]).await;
    let output: Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(
        (&output[0]["id"], &output[0]["name"], &output[0]["answers"]),
        (&json!("gone"), &json!("Gone"), &json!(false))
    );
    assert!(text(&models(&[]).await.stdout).contains("does not answer: "));
}

#[test]
fn an_invalid_model_is_refused_with_a_message() {
    let data = tempfile::tempdir().unwrap();
    let serve = |model: &str| {
        let mut command = greenroom(data.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--model", model]).output().unwrap()
    };
    for (model, words) in [
        ("http://localhost:1/v1", "names no model"),
        ("http://localhost:1/v1#", "names no model"),
        ("localhost#x", ""),
        ("ftp://localhost/v1#x", ""),
        ("http://user:pass@localhost/v1#x", ""),
    ] {
        let refused = serve(model);
        let output = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{model}: {output}");
        assert!(output.contains(words), "{model}: {output}");
    }
    std::fs::create_dir_all(data_directory(data.path())).unwrap();
    let file = data_directory(data.path()).join("greenroom.toml");
    for (toml, words) in [
        ("[[models]]\nid = \"x\"\n", "base_url"),
        ("[[models]]\nid = \"x\"\nbase_url = \"http://h/v1\"\nkey = \"sk\"\n", "key"),
        (
            "[[models]]\nid = \"x\"\nbase_url = \"http://h/v1\"\n\n[[models]]\nid = \"x\"\nbase_url = \"http://h/v1\"\n",
            "twice",
        ),
        (
            "[[models]]\nid = \"x\"\nbase_url = \"http://h/v1\"\nkey_env = \"A\"\nkey_file = \"b\"\n",
            "keep one",
        ),
    ] {
        std::fs::write(&file, toml).unwrap();
        let refused =
            greenroom(data.path()).args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
        let output = text(&refused.stderr);
        assert!(!refused.status.success() && output.contains(words), "{toml}: {output}");
    }
}

/// All that a host leaves on disk, as text as far as it is any.
fn everything_under(directory: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push_str(&everything_under(&path));
        } else if let Ok(bytes) = std::fs::read(&path) {
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    all
}

/// A host that logs everything into a file and has secrets in its environment.
fn serve_with_secrets(data: &Path) -> (Child, Value) {
    let log = std::fs::File::create(data.join("log")).unwrap();
    let mut child = greenroom(data)
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ready-json",
            "--no-token",
            "--workspace",
            ".",
        ])
        .env("MODEL_KEY", KEY)
        .env("DATABASE_URL", DATABASE)
        .env("MYSQL_PWD", DATABASE)
        .env("PASSED", "passed")
        .env("GREENROOM_LOG", "trace")
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
        &mut line,
    )
    .unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

#[tokio::test]
async fn a_key_is_in_no_state_log_error_file_or_child_process() {
    let server = ModelServer::start().await;
    server.answers([
        Answer::calls([bash(
            "env; tr '\\0' '\\n' </proc/self/environ; echo seen:${HOME:+home}:$PASSED",
        )]),
        Answer::error(400, &format!("what is {KEY}?")),
    ]);
    let data = tempfile::tempdir().unwrap();
    let directory = data_directory(data.path());
    std::fs::create_dir_all(&directory).unwrap();
    let toml = format!(
        "tool_env = [\"PASSED\"]\n[[models]]\nid = \"echo\"\nbase_url = \"{}\"\nkey_env = \"MODEL_KEY\"\nprices = {{input = 1.0, output = 2.0}}\n",
        server.url()
    );
    std::fs::write(directory.join("greenroom.toml"), toml).unwrap();
    let (mut child, ready) = serve_with_secrets(data.path());
    let target = HostTarget { url: ready["url"].as_str().unwrap().to_owned(), token: None };
    let mut ann = ChatClient::arrives_at(&target, "ann").await;
    let work = data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({"approvals": "full-access"})).await;
    ann.sends_message("look around").await;
    let turn = ann.turn_over().await;
    let request = &server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str()),
        "it is used"
    );
    let output = turn.to_string();
    assert!(output.contains("seen:home:passed"), "the command ran: {turn:#}");
    assert!(!output.contains(DATABASE), "{turn:#}");
    assert_eq!(turn["state"], "error");
    assert!(!output.contains(KEY), "{turn:#}");
    let info =
        ann.connection.request("subscribe", json!({"channel": "ahp-root://"})).await.unwrap();
    assert!(info.to_string().contains("greenroom.prices") && !info.to_string().contains(KEY));
    child.kill().unwrap();
    child.wait().unwrap();
    let log = std::fs::read_to_string(data.path().join("log")).unwrap();
    assert!(!log.is_empty() && !log.contains(KEY), "{log}");
    assert!(!everything_under(&directory).contains(KEY));
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// The process ids that the second call of the running turn has printed so far, a line each.
fn printed_pids(chat: &Value) -> Vec<String> {
    let calls = calls_of(&chat["activeTurn"]);
    let output = calls.get(1).map(|call| &call["content"][0]["text"]);
    let lines = output.and_then(Value::as_str).unwrap_or_default().lines();
    lines.filter_map(|line| line.strip_prefix("pid:")).map(str::to_owned).collect()
}

async fn wait_until_dead(pids: &[String]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while pids.iter().any(|pid| is_alive(pid)) {
        assert!(Instant::now() < deadline, "{pids:?} live on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_host_that_is_killed_takes_its_commands_along_and_its_turn_goes_on_afterwards() {
    const TREE: &str =
        "sleep 1000 & echo pid:$!; (sh -c 'echo pid:$$; sleep 1002; true') & echo pid:$$; wait";
    let server = ModelServer::start().await;
    let read = Call::new("r", "read", &json!({"path": "a.txt"}));
    let gate = Gate::new();
    server.answers([
        Answer::streams(["Looking."]).then_calls([read]).waits(&gate),
        Answer::calls([bash(TREE)]),
    ]);
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("a.txt"), "one\n").unwrap();
    let host = start(data, &model_of(&server)).await;
    let mut ann = arrives(&host).await;
    let work = host.data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({"approvals": "full-access"})).await;
    let chat = ann.chat.clone();
    ann.sends_message("go").await;
    gate.reached().await;
    ann.leaves_word("steering", "s", "to the left").await;
    ann.until("it waits", |chat| chat["steeringMessage"]["id"] == "s").await;
    gate.open();
    let seen = ann.until("the command runs", |chat| printed_pids(chat).len() == 3).await;
    let pids = printed_pids(&seen);
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    let data = host.kill();
    wait_until_dead(&pids).await;
    let host = start(data, &model_of(&server)).await;
    let mut ann = arrives(&host).await;
    ann.enters(SESSION, chat.as_str()).await;
    let turn = ann.sees()["turns"][0].clone();
    assert_eq!(turn["state"], "error");
    assert_eq!(parts_of(&turn, "error")[0]["resumable"], true, "{turn:#}");
    server.answers([Answer::streams(["There it is."])]);
    ann.resumes(&turn).await;
    ann.until("it goes on", |chat| chat["turns"][0]["state"] == "complete").await;
    let requests = server.requests();
    let sent = script_of(&messages(&requests.last().unwrap().json()));
    expect![[r#"
        user: go
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        user: to the left
        assistant: - [bash {"command":"TREE"}]
        tool: The host was stopped before this was over. The command's end was not seen; what it had done until then is not undone. Nothing of it runs any more.
    "#]]
    .assert_eq(&sent.replace(TREE, "TREE"));
    server.answers([Answer::streams(["Yes."])]);
    ann.sends_message("and now?").await;
    ann.turn_over().await;
    let requests = server.requests();
    let sent = script_of(&messages(&requests.last().unwrap().json()));
    expect![[r#"
        user: go
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        user: to the left
        assistant: - [bash {"command":"TREE"}]
        tool: The host was stopped before this was over. The command's end was not seen; what it had done until then is not undone. Nothing of it runs any more.
        assistant: There it is.
        user: and now? | (The host showed this to the user before this message:
        The host was stopped while these were at work:

        - Run sleep 1000 & echo pid:$!; (sh -c 'echo pid:$$; sleep 1002; true') & echo pid:$$;…: The command's end was not seen; what it had done until then is not undone. Nothing of it runs any more.)
    "#]]
    .assert_eq(&sent.replace(TREE, "TREE"));
}

/// Processes that have the mark of a call.
fn marked(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let has_mark = |pid: &String| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        is_alive(pid) && String::from_utf8_lossy(&environment).contains(mark)
    };
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(has_mark).collect()
}

/// A command is at work and a write waits for it when the host is killed, and so is what would have ended the command with it: the command goes on
/// without anybody. The next host ends it and says so; of the write, which never began, there is nothing to say.
#[tokio::test]
async fn what_outlives_a_killed_host_is_ended_and_told() {
    let server = ModelServer::start().await;
    let write = Call::new("w", "write", &json!({"path": "b.txt", "content": "new"}));
    let command = bash("trap '' HUP; echo pid:$$; echo left > a.txt; sleep 1000");
    let read = Call::new("r", "read", &json!({"path": "c.txt"}));
    server.answers([Answer::calls([read, command, write])]);
    let host = start(tempfile::tempdir().unwrap(), &model_of(&server)).await;
    let mut ann = arrives(&host).await;
    let work = host.data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({"approvals": "full-access"})).await;
    let chat = ann.chat.clone();
    ann.sends_message("go").await;
    let seen = ann.until("the command runs", |chat| printed_pids(chat).len() == 1).await;
    let pids = printed_pids(&seen);
    let mark = calls_of(&seen["activeTurn"])[1]["_meta"]["greenroom.mark"]
        .clone()
        .as_str()
        .unwrap()
        .to_owned();
    for pid in marked(&mark) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains("read -r _ <&3") {
            let watcher = Pid::from_raw(pid.parse().unwrap()).unwrap();
            kill_process(watcher, Signal::KILL).unwrap();
        }
    }
    let data = host.kill();
    assert!(pids.iter().all(|pid| is_alive(pid)), "it goes on");
    let host = start(data, &model_of(&server)).await;
    let mut ann = arrives(&host).await;
    ann.enters(SESSION, chat.as_str()).await;
    server.answers([Answer::streams(["I see."])]);
    // Not resumed: the user goes on with something else.
    ann.sends_message("what happened?").await;
    let turn = ann.turn_over().await;
    let told = parts_of(&turn, "systemNotification");
    let told = told[0]["content"].to_string();
    assert!(told.contains("still ran, and w") && told.contains("ended now"), "{told}");
    assert!(!told.contains("b.txt"), "it never began: {told}");
    assert!(!work.join("b.txt").exists());
    wait_until_dead(&pids).await;
    assert!(marked(&mark).is_empty());
    let sent = script_of(&messages(&server.requests().last().unwrap().json()));
    assert!(
        sent.contains(
            "tool: The host was stopped before this was over. The command's end was not seen"
        ),
        "{sent}"
    );
    // What was found is told the same later, though nothing of it could be found now.
    server.answers([Answer::streams(["Still."])]);
    ann.sends_message("and?").await;
    ann.turn_over().await;
    let later = script_of(&messages(&server.requests().last().unwrap().json()));
    assert!(later.starts_with(&sent), "{sent}\n{later}");
    assert!(!work.join("b.txt").exists());
}

/// A data directory whose host, if one was started, dies with the test.
struct Unserved(TempDir);

impl Drop for Unserved {
    fn drop(&mut self) {
        let endpoint: Value = std::fs::read(data_directory(self.0.path()).join("endpoint.json"))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let pid = endpoint["pid"].as_i64();
        let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[tokio::test]
async fn a_model_on_the_command_line_is_all_it_takes() {
    let server = ModelServer::start().await;
    server.answers([Answer::calls([bash("echo ran")]), Answer::streams(["It ran."])]);
    let data = Unserved(tempfile::tempdir().unwrap());
    let mut command = greenroom(data.0.path());
    command.args(["chat", "--plain", "--model", &model_of(&server)]);
    command.stdin(Stdio::piped());
    let talked = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // The second line answers what the agent asks.
        std::io::Write::write_all(&mut input, b"run it\n1\n").unwrap();
        drop(input);
        child.wait_with_output().unwrap()
    })
    .await
    .unwrap();
    let (out, err) = (text(&talked.stdout), text(&talked.stderr));
    assert!(talked.status.success(), "{err}");
    assert!(out.contains("It ran."), "{out}{err}");
    assert!(err.contains("started a host"), "{err}");
    let last = messages(&server.requests()[1].json());
    let last = script_of(&last);
    assert!(last.contains("ran\n[exit code 0]"), "{last}");
}
