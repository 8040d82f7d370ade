//! `greenroom models` with the real binary: models are added, removed and chosen in the configuration file and at the host
//! that runs; keys come from where they are named; a session whose model is gone says so.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ModelServer};

use crate::running::{Host, data_directory, greenroom, text};
use crate::terminal::{CTRL_C, Terminal};

const KEY: &str = "sk-very-secret-0123456789";

/// Runs a verb while the servers of this test go on serving.
async fn run(mut command: Command) -> Output {
    let done = tokio::task::spawn_blocking(move || command.output().unwrap());
    done.await.unwrap()
}

async fn models(data: &Path, arguments: &[&str]) -> Output {
    let mut command = greenroom(data);
    command.arg("models").args(arguments);
    run(command).await
}

/// The same, which must succeed; what it printed.
async fn models_ok(data: &Path, arguments: &[&str]) -> String {
    let done = models(data, arguments).await;
    assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
    text(&done.stdout)
}

/// The same, which must fail without changing the file; what it said.
async fn models_fail(data: &Path, arguments: &[&str]) -> String {
    let before = std::fs::read(file_in(data)).ok();
    let done = models(data, arguments).await;
    assert_eq!(done.status.code(), Some(1), "{arguments:?}: {}", text(&done.stdout));
    assert_eq!(std::fs::read(file_in(data)).ok(), before, "{arguments:?}");
    text(&done.stderr)
}

fn file_in(data: &Path) -> PathBuf {
    data_directory(data).join("greenroom.toml")
}

fn write_file(data: &Path, toml: &str) -> PathBuf {
    let file = file_in(data);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, toml).unwrap();
    file
}

fn read_file(data: &Path) -> String {
    std::fs::read_to_string(file_in(data)).unwrap()
}

async fn server_with(names: &[&str]) -> ModelServer {
    let server = ModelServer::start().await;
    server.has_models(names.iter().copied());
    server
}

async fn start(data: TempDir, more: &[&str]) -> Host {
    let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
    let started = tokio::task::spawn_blocking(move || {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        Host::start_with(data, &more)
    });
    started.await.unwrap()
}

async fn verb(host: &Host, arguments: &[&str]) -> Output {
    let mut command = host.greenroom();
    command.args(arguments);
    run(command).await
}

/// Sends a message in a session; how the turn ended.
async fn send(host: &Host, arguments: &[&str]) -> Value {
    let sent = verb(host, &[&["send", "--json"], arguments].concat()).await;
    let output = text(&sent.stdout);
    let result = output.lines().last().unwrap_or_default();
    serde_json::from_str(result).unwrap_or_else(|_| panic!("{output}{}", text(&sent.stderr)))
}

#[tokio::test]
async fn a_model_is_added_to_nothing_listed_chosen_and_removed() {
    let server = server_with(&["one", "two"]).await;
    let data = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("{}#{name}", server.url());
    assert!(models_ok(data.path(), &[]).await.contains("greenroom models add"));
    let said = models_ok(data.path(), &["add", &at("one")]).await;
    assert!(said.contains("Added one") && said.contains("It is the default"), "{said}");
    let mode = std::fs::metadata(file_in(data.path())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let said = models_ok(data.path(), &["add", &at("two")]).await;
    assert!(said.contains("`greenroom models default two`"), "{said}");
    let said = models_ok(data.path(), &["add", &at("two")]).await;
    assert!(said.contains("already"), "{said}");
    models_ok(data.path(), &["default", "two"]).await;
    let listed = models_ok(data.path(), &[]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(
        lines[0].starts_with("two (default)  http") && lines[0].ends_with("  answers"),
        "{listed}"
    );
    let said = models_ok(data.path(), &["remove", "two"]).await;
    assert!(said.contains("The default is one"), "{said}");
    assert!(!read_file(data.path()).contains("default_model"));
    let error = models_fail(data.path(), &["remove", "two"]).await;
    assert!(error.contains("no model `two`; there are: one"), "{error}");
    let error = models_fail(data.path(), &["default", "nobody"]).await;
    assert!(error.contains("there are: one"), "{error}");
    models_ok(data.path(), &["remove", "one"]).await;
    assert_eq!(read_file(data.path()).trim(), "");
}

#[tokio::test]
async fn the_same_name_at_another_server_gets_an_id_of_its_own() {
    let (first, second) = (server_with(&["m"]).await, server_with(&["m"]).await);
    let data = tempfile::tempdir().unwrap();
    models_ok(data.path(), &["add", &format!("{}#m", first.url())]).await;
    let said = models_ok(data.path(), &["add", &format!("{}#m", second.url())]).await;
    let authority = second.url().replace("http://", "").replace("/v1", "");
    assert!(said.contains(&format!("Added m@{authority}")), "{said}");
    let error =
        models_fail(data.path(), &["add", &format!("{}#m", second.url()), "--id", "m"]).await;
    assert!(error.contains("--id"), "{error}");
    models_ok(data.path(), &["add", &format!("{}#m", second.url()), "--id", "mine"]).await;
    let listed: Value = serde_json::from_str(&models_ok(data.path(), &["--json"]).await).unwrap();
    let ids: Vec<&Value> = listed.as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, [&json!("m"), &json!(format!("m@{authority}")), &json!("mine")]);
    assert_eq!((&listed[0]["default"], &listed[1]["default"]), (&json!(true), &json!(false)));
}

const COMMENTED: &str = "# The settings of this machine\nscripted = true # for now\n\n[limits] # bounds\nclients_max = 77\n\n\
# Models\n\n# the local one\n[[models]]\nid = \"local\"\nbase_url = \"http://127.0.0.1:9/v1\" # not running\n\
[models.settings.temperature]\ntype = \"number\"\n# the end\n";

#[tokio::test]
async fn comments_order_links_and_modes_are_kept() {
    let server = server_with(&["new"]).await;
    let data = tempfile::tempdir().unwrap();
    let link = write_file(data.path(), "");
    let real = data.path().join("dotfiles.toml");
    std::fs::rename(&link, &real).unwrap();
    std::fs::write(&real, COMMENTED).unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("../dotfiles.toml", &link).unwrap();
    models_ok(data.path(), &["add", &format!("{}#new", server.url())]).await;
    let added = std::fs::read_to_string(&real).unwrap();
    let (before, after) = added.split_once("\n[[models]]\nid = \"new\"\n").unwrap();
    assert_eq!(format!("{before}# the end\n"), COMMENTED);
    assert!(after.ends_with("# the end\n"), "{added}");
    models_ok(data.path(), &["remove", "new"]).await;
    assert_eq!(std::fs::read_to_string(&real).unwrap().trim_end(), COMMENTED.trim_end());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    std::fs::write(&real, COMMENTED.replace('\n', "\r\n")).unwrap();
    models_ok(data.path(), &["default", "local"]).await;
    let written = std::fs::read_to_string(&real).unwrap();
    let expected = COMMENTED.replace("# for now\n", "# for now\ndefault_model = \"local\"\n");
    assert_eq!(written, expected.replace('\n', "\r\n"));
    let left: Vec<_> =
        std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".new")), "{left:?}");
}

#[tokio::test]
async fn a_file_that_is_wrong_read_only_or_no_file_is_not_touched() {
    let server = server_with(&["new"]).await;
    let address = format!("{}#new", server.url());
    let data = tempfile::tempdir().unwrap();
    for (toml, words) in [
        ("[[models]\n", "could not use it"),
        ("no_such_setting = 1\n", "no_such_setting"),
        ("models = 3\n", "could not use it"),
        (
            "[[models]]\nid = \"a\"\nbase_url = \"http://h/v1\"\nkey = \"sk\"\n",
            "no setting `models.key`",
        ),
        ("default_model = \"gone\"\n", "no model `gone`"),
    ] {
        write_file(data.path(), toml);
        let error = models_fail(data.path(), &["add", &address]).await;
        assert!(error.contains(words) && error.contains("greenroom.toml"), "{toml}: {error}");
    }
    let file = write_file(data.path(), "# mine\n");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o444)).unwrap();
    let error = models_fail(data.path(), &["add", &address]).await;
    assert!(error.contains("read-only") && error.contains("chmod"), "{error}");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    let error = models_fail(data.path(), &["add", &address]).await;
    assert!(error.contains("a link to a file that is not there"), "{error}");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let error = models_fail(data.path(), &["add", &address]).await;
    assert!(error.contains("is not a file"), "{error}");
}

#[tokio::test]
async fn many_at_once_are_all_added() {
    let names: Vec<String> = (0..8).map(|n| format!("m{n}")).collect();
    let server = ModelServer::start().await;
    server.has_models(names.iter().map(String::as_str));
    let data = tempfile::tempdir().unwrap();
    let adding = names.iter().map(|name| {
        let mut command = greenroom(data.path());
        command.args(["models", "add", &format!("{}#{name}", server.url())]);
        tokio::spawn(run(command))
    });
    for added in adding.collect::<Vec<_>>() {
        let added = added.await.unwrap();
        assert!(added.status.success(), "{}", text(&added.stderr));
    }
    let file = read_file(data.path());
    for name in &names {
        assert_eq!(file.matches(&format!("id = \"{name}\"")).count(), 1, "{file}");
    }
}

/// A listener that answers whatever comes with the same bytes; its address.
async fn answers_everything(answer: &'static [u8]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut bytes = [0; 1_024];
            let _ = tokio::io::AsyncReadExt::read(&mut socket, &mut bytes).await;
            let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, answer).await;
            open.push(socket);
        }
    });
    address
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_said_with_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let server = server_with(&["m"]).await;
    let at = |url: &str| format!("{url}#m");
    let no_v1 = server.url().replace("/v1", "");
    // A web server that is called in the wrong language, and one that never says anything.
    let tls =
        format!("https://{}/v1", answers_everything(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
    let silent = format!("http://{}/v1", answers_everything(b"").await);
    for (address, words) in [
        (at("http://127.0.0.1:9/v1"), ["connection refused", "is running"]),
        (at(&no_v1), ["(404)", "ends in /v1"]),
        (at(&tls), ["no encrypted connection", "http://"]),
        (at(&silent), ["did not begin to answer", "check the address"]),
        (at("http://no-such-host.invalid/v1"), ["cannot be reached", "its name"]),
        ("localhost#m".to_owned(), ["http://", ""]),
        ("ftp://localhost/v1#m".to_owned(), ["must begin with http://", ""]),
    ] {
        let error = models_fail(data.path(), &["add", &address]).await;
        assert!(words.iter().all(|word| error.contains(word)), "{address}: {error}");
    }
    server.accepts_key(KEY);
    let error = models_fail(data.path(), &["add", &at(&server.url())]).await;
    assert!(error.contains("requires a key") && error.contains("where its key is"), "{error}");
    let wrong = data.path().join("wrong");
    std::fs::write(&wrong, "sk-wrong-9876543210\n").unwrap();
    let wrong = wrong.to_str().unwrap();
    let error = models_fail(data.path(), &["add", &at(&server.url()), "--key-file", wrong]).await;
    assert!(
        error.contains("does not accept the key") && error.contains("Check the key"),
        "{error}"
    );
    assert!(error.contains("can be read by others") && !error.contains("sk-wrong"), "{error}");
    let said =
        models_ok(data.path(), &["add", &at(&server.url()), "--key-file", wrong, "--no-check"])
            .await;
    assert!(said.contains("Added m"), "{said}");
    assert!(!read_file(data.path()).contains("sk-wrong"));
}

#[tokio::test]
async fn servers_without_a_list_or_with_a_huge_one_are_fine() {
    let data = tempfile::tempdir().unwrap();
    let server = ModelServer::start().await;
    server.answers_lists([Answer::error(404, "no list here")]);
    let added = models(data.path(), &["add", &format!("{}#m", server.url())]).await;
    assert!(added.status.success(), "{}", text(&added.stderr));
    assert!(
        text(&added.stderr).contains("does not say which models it has"),
        "{}",
        text(&added.stderr)
    );
    server.answers_lists([Answer::error(404, "no list here")]);
    let error = models_fail(data.path(), &["add", &server.url()]).await;
    assert!(error.contains("name one: URL#MODEL"), "{error}");
    let entry = json!({"id": "x".repeat(1_000)}).to_string();
    let huge = format!("{{\"data\":[{}]}}", vec![entry; 100_000].join(","));
    server.answers_lists([Answer::status(200, &huge)]);
    let added = models(data.path(), &["add", &format!("{}#huge", server.url())]).await;
    assert!(added.status.success(), "{}", text(&added.stderr));
    assert!(text(&added.stderr).contains("larger than"), "{}", text(&added.stderr));
    let many: Vec<Value> = (0..10_000).map(|n| json!({"id": format!("m-{n}\u{1b}[31m")})).collect();
    let many = json!({"data": many}).to_string();
    server.answers_lists([Answer::status(200, &many)]);
    let error = models_fail(data.path(), &["add", &format!("{}#no", server.url())]).await;
    assert!(error.contains("and 9985 more") && error.lines().count() < 30, "{error}");
    assert!(error.contains("\\x1b[31m") && !error.contains('\u{1b}'), "{error}");
    server.answers_lists([Answer::status(200, &many)]);
    let error =
        models_fail(data.path(), &["add", &format!("{}#m-7\u{1b}[31m", server.url())]).await;
    assert!(error.contains("control characters") && !error.contains('\u{1b}'), "{error}");
}

#[tokio::test]
async fn a_person_chooses_from_the_list_in_a_terminal() {
    let server = server_with(&["alpha", "beta", "gamma"]).await;
    let data = tempfile::tempdir().unwrap();
    let mut command = greenroom(data.path());
    command.args(["models", "add", &server.url()]);
    let chosen = tokio::task::spawn_blocking(move || {
        let mut ann = Terminal::start("ann", command);
        ann.sees("3  gamma");
        ann.type_line("mm");
        ann.sees("1  gamma");
        ann.type_line("1");
        ann.sees("It is the default.");
        ann.ends()
    });
    assert_eq!(chosen.await.unwrap(), Some(0));
    assert!(read_file(data.path()).contains("id = \"gamma\""));
}

#[tokio::test]
async fn a_running_host_takes_what_is_added_removed_and_chosen_at_once() {
    let server = server_with(&["one", "two"]).await;
    let host = start(tempfile::tempdir().unwrap(), &[]).await;
    let offered = |root: &Value| {
        let agents = root["agents"].as_array().unwrap().clone();
        let native =
            agents.into_iter().find(|agent| agent["provider"] == "native").unwrap_or_default();
        let models = native["models"].as_array().cloned().unwrap_or_default();
        let ids = models.iter().map(|model| model["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(host.state("ahp-root://")["agents"][0]["provider"], "scripted");
    let data = host.data.path().to_owned();
    let said = models_ok(&data, &["add", &format!("{}#one", server.url())]).await;
    assert!(said.contains("uses it now"), "{said}");
    assert_eq!(host.state("ahp-root://")["agents"][0]["provider"], "native");
    models_ok(&data, &["add", &format!("{}#two", server.url())]).await;
    assert_eq!(offered(&host.state("ahp-root://")), ["one", "two"]);
    models_ok(&data, &["default", "two"]).await;
    assert_eq!(offered(&host.state("ahp-root://")), ["two", "one"]);
    server.answers([Answer::streams(["Two it is."])]);
    let turn = send(&host, &["hello"]).await;
    assert_eq!(turn["text"], "Two it is.", "{turn:#}");
    assert_eq!(server.requests().last().unwrap().json()["model"], "two");
    models_ok(&data, &["remove", "one"]).await;
    models_ok(&data, &["remove", "two"]).await;
    assert!(offered(&host.state("ahp-root://")).is_empty());
    let turn = send(&host, &["--session", turn["session"].as_str().unwrap(), "again"]).await;
    assert_eq!(turn["error"]["errorType"], "modelMissing", "{turn:#}");
    // A host with a configuration of its own does not read this one.
    let other = data.join("other.toml");
    let said = models_ok(
        &data,
        &["add", &format!("{}#one", server.url()), "--config", other.to_str().unwrap()],
    )
    .await;
    assert!(said.contains("another settings file"), "{said}");
}

/// All that lies under a directory, as text as far as it is any.
fn everything_under(directory: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push_str(&everything_under(&path))
        } else {
            all.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()))
        }
    }
    all
}

#[tokio::test]
async fn a_key_command_is_run_again_when_its_key_is_no_longer_accepted() {
    const NEW_KEY: &str = "sk-rotated-key-9876543210";
    let server = server_with(&["m"]).await;
    server.accepts_key(KEY);
    let data = tempfile::tempdir().unwrap();
    let secrets = tempfile::tempdir().unwrap();
    let (key, runs) = (secrets.path().join("the key"), secrets.path().join("runs"));
    std::fs::write(&key, KEY).unwrap();
    let script = format!("echo run >> '{}'; cat '{}'", runs.display(), key.display());
    let command = format!("sh -c {}", shell_quote(&script));
    models_ok(data.path(), &["add", &format!("{}#m", server.url()), "--key-command", &command])
        .await;
    assert!(
        read_file(data.path()).contains("key_command = [\"sh\", \"-c\", "),
        "{}",
        read_file(data.path())
    );
    let runs = || std::fs::read_to_string(&runs).unwrap().lines().count();
    let before = runs();
    let host = start(data, &[]).await;
    server.answers([Answer::streams(["a"]), Answer::streams(["b"]), Answer::streams(["c"])]);
    for text in ["a", "b"] {
        assert_eq!(send(&host, &["hi"]).await["text"], text);
    }
    assert_eq!(runs(), before + 1, "it is run once");
    server.accepts_key(NEW_KEY);
    std::fs::write(&key, NEW_KEY).unwrap();
    assert_eq!(send(&host, &["hi"]).await["text"], "c");
    assert_eq!(runs(), before + 2, "and again when it was refused");
    std::fs::write(&key, "sk-nobody-knows-this-one").unwrap();
    server.accepts_key(KEY);
    let turn = send(&host, &["hi"]).await;
    assert_eq!(turn["error"]["errorType"], "modelUnauthorized", "{turn:#}");
    let seen = format!("{turn}{}", everything_under(&data_directory(host.data.path())));
    for secret in [KEY, NEW_KEY, "sk-nobody"] {
        assert!(!seen.contains(secret), "{turn:#}");
    }
}

fn shell_quote(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

#[tokio::test]
async fn a_model_by_its_address_is_there_until_the_host_stops() {
    let server = ModelServer::start().await;
    let address = format!("{}#echo", server.url());
    let host = start(tempfile::tempdir().unwrap(), &[]).await;
    server.answers([
        Answer::streams(["Here."]),
        Answer::streams(["Again."]),
        Answer::streams(["By id."]),
    ]);
    let sent = verb(&host, &["send", "--model", &address, "hello"]).await;
    let (out, err) = (text(&sent.stdout), text(&sent.stderr));
    assert_eq!(out, "Here.\n", "{err}");
    assert!(
        err.contains(&format!("To keep it: greenroom models add '{address}'"))
            || err.contains(&format!("To keep it: greenroom models add {address}")),
        "{err}"
    );
    let sent = verb(&host, &["send", "--model", &address, "hello"]).await;
    assert_eq!(text(&sent.stdout), "Again.\n");
    assert!(!text(&sent.stderr).contains("keep it"), "said once: {}", text(&sent.stderr));
    let sent = verb(&host, &["send", "--model", "echo", "hello"]).await;
    assert_eq!(text(&sent.stdout), "By id.\n", "{}", text(&sent.stderr));
    let sent = verb(&host, &["send", "--model", "nobody", "hello"]).await;
    assert_eq!(sent.status.code(), Some(4));
    assert!(text(&sent.stderr).contains("it has: echo"), "{}", text(&sent.stderr));
    let root = host.state("ahp-root://");
    assert_eq!(root["agents"][0]["models"][0]["id"], "echo");
    assert!(!file_in(host.data.path()).exists(), "nothing is written down");
    let host = start(host.kill(), &[]).await;
    assert_eq!(host.state("ahp-root://")["agents"][0]["provider"], "scripted");
}

#[tokio::test]
async fn a_host_without_a_token_takes_no_models() {
    let server = ModelServer::start().await;
    let host = start(tempfile::tempdir().unwrap(), &["--no-token"]).await;
    let sent = verb(&host, &["send", "--model", &format!("{}#m", server.url()), "x"]).await;
    assert_eq!(sent.status.code(), Some(4));
    assert!(text(&sent.stderr).contains("asks for none"), "{}", text(&sent.stderr));
}

#[tokio::test]
async fn a_session_whose_model_is_gone_says_so_and_goes_on_only_when_somebody_chooses() {
    let server = server_with(&["first", "second"]).await;
    let data = tempfile::tempdir().unwrap();
    for name in ["first", "second"] {
        models_ok(data.path(), &["add", &format!("{}#{name}", server.url())]).await;
    }
    let host = start(data, &[]).await;
    server.answers([Answer::streams(["one"]), Answer::streams(["two"])]);
    let turn = send(&host, &["--model", "second", "hi"]).await;
    let session = turn["session"].as_str().unwrap().to_owned();
    // A chat that is continued keeps its model, though another is the default.
    send(&host, &["--session", &session, "more"]).await;
    assert_eq!(server.requests().last().unwrap().json()["model"], "second");
    let asked = server.requests().len();
    let data = host.kill();
    models_ok(data.path(), &["remove", "second"]).await;
    let host = start(data, &[]).await;
    let mut command = host.greenroom();
    command.args(["chat", "--session", &session]);
    let opened = tokio::task::spawn_blocking(move || {
        let mut ann = Terminal::start("ann", command);
        ann.sees("there are: first");
        ann.press(CTRL_C);
        ann.press(CTRL_C);
        ann.ends();
    });
    opened.await.unwrap();
    let turn = send(&host, &["--session", &session, "where did this go?"]).await;
    let error = turn["error"]["message"].as_str().unwrap();
    assert_eq!(turn["error"]["errorType"], "modelMissing");
    assert!(
        error.contains("`second`") && error.contains("nothing was sent") && error.contains("first"),
        "{error}"
    );
    assert_eq!(server.requests().len(), asked, "nothing was sent to anybody");
    let chat = host.state(turn["chat"].as_str().unwrap());
    let last = chat["turns"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["state"], "error", "everybody sees it: {last:#}");
    server.answers([Answer::streams(["chosen"])]);
    let turn = send(&host, &["--session", &session, "--model", "first", "now"]).await;
    assert_eq!(turn["text"], "chosen", "{turn:#}");
    server.answers([Answer::streams(["and on"])]);
    let turn = send(&host, &["--session", &session, "and now"]).await;
    assert_eq!(turn["text"], "and on", "{turn:#}");
    let data = host.kill();
    models_ok(data.path(), &["remove", "first"]).await;
    let host = start(data, &[]).await;
    let mut command = host.greenroom();
    command.args(["chat", "--plain", "--session", &session]).stdin(Stdio::piped());
    let said = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello?\n").unwrap();
        text(&child.wait_with_output().unwrap().stderr)
    })
    .await
    .unwrap();
    assert!(said.contains("no agent `native` now") && said.contains("scripted"), "{said}");
    assert!(said.contains("Add one and resume the turn"), "{said}");
}

#[tokio::test]
async fn a_first_start_without_a_model_says_how_to_get_one() {
    let server = server_with(&["small", "big"]).await;
    let port = server.url().replace("http://127.0.0.1:", "").replace("/v1", "");
    let host = start(tempfile::tempdir().unwrap(), &[]).await;
    let chat = |ports: &str| {
        let mut command = host.greenroom();
        command.arg("chat").env("GREENROOM_MODEL_PORTS", ports);
        command
    };
    let command = chat(&format!("9,{port}"));
    let found = tokio::task::spawn_blocking(move || {
        let mut ann = Terminal::start("ann", command);
        let screen = ann.sees("Then /new starts a session with it.");
        ann.press(CTRL_C);
        ann.press(CTRL_C);
        ann.ends();
        screen
    });
    let screen = found.await.unwrap();
    assert!(
        screen
            .replace('\n', "")
            .contains(&format!("models add 'http://127.0.0.1:{port}/v1#small'"))
            || screen
                .replace('\n', "")
                .contains(&format!("models add http://127.0.0.1:{port}/v1#small")),
        "{screen}"
    );
    let mut command = chat("9");
    command.arg("--plain").stdin(Stdio::piped());
    let said = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello\n").unwrap();
        text(&child.wait_with_output().unwrap().stderr)
    })
    .await
    .unwrap();
    assert!(said.contains("No model is configured") && said.contains("localhost:11434"), "{said}");
    // With a model nobody is asked and nothing is said.
    let asked = server.requests().len();
    models_ok(host.data.path(), &["add", &format!("{}#small", server.url()), "--no-check"]).await;
    server.answers([Answer::streams(["Hi."])]);
    let mut command = chat(&port);
    command.arg("--plain").stdin(Stdio::piped());
    let said = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello\n").unwrap();
        let output = child.wait_with_output().unwrap();
        (text(&output.stdout), text(&output.stderr))
    });
    let (out, err) = said.await.unwrap();
    assert!(out.contains("Hi.") && !err.contains("No model"), "{out}{err}");
    assert_eq!(server.requests().len(), asked + 1);
}
