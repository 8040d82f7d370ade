//! Servers over real pipes: what they answer, and how their processes live and end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use agents::mcp::{
    ElicitationAnswer, ElicitationForm, McpConnection, McpContent, McpError, McpServer, ServerState,
};
use common::{Caller, call, eventually, is_alive, piped, place, ready, text};
use serde_json::json;

#[tokio::test]
async fn tools_are_listed_and_called() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&["--garbage"]), directory.path()).await;
    let tools = server.tools();
    let destroy = tools.iter().find(|tool| tool.name == "destroy").unwrap();
    assert_eq!(destroy.title, "Destroy it all");
    assert_eq!(destroy.hints.destructive, Some(true));
    assert_eq!(server.instructions(), "Call `echo` to hear yourself.");

    let echoed = call(&server, "echo", json!({"text": "hello"})).await.unwrap();
    assert_eq!(text(&echoed), "hello");
    assert_eq!(echoed.structured, Some(json!({"said": "hello"})));
    assert!(!echoed.is_error);

    let failed = call(&server, "fail", json!({})).await.unwrap();
    assert!(failed.is_error);
    assert_eq!(text(&failed), "The moon is in the wrong phase");
    let unknown = call(&server, "nonsense", json!({})).await.unwrap();
    assert!(unknown.is_error);
    let refused = call(&server, "error", json!({})).await.unwrap_err();
    let message = "this is never right".to_owned();
    assert_eq!(refused, McpError::Refused { code: -32602, message });

    let roots = call(&server, "roots", json!({})).await.unwrap();
    assert_eq!(text(&roots), format!("file://{}", directory.path().display()));
    call(&server, "log", json!({"count": 2})).await.unwrap();
    let log = server.log();
    assert!(log.contains("(no message) Server is starting") && log.contains("message 1"), "{log}");
}

#[tokio::test]
async fn results_keep_their_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let result = call(&server, "media", json!({})).await.unwrap();
    let [McpContent::Text(_), image, link, note, pixel] = result.content.as_slice() else {
        panic!("{:?}", result.content);
    };
    assert!(
        matches!(image, McpContent::Media { mime_type, uri: None, data } if mime_type == "image/png" && data.starts_with(b"\x89PNG"))
    );
    assert!(matches!(link, McpContent::Link { uri, .. } if uri == "test://guide"));
    assert!(matches!(note, McpContent::Document { text, .. } if text == "Mind the gap."));
    assert!(matches!(pixel, McpContent::Media { uri: Some(uri), .. } if uri == "test://pixel"));
}

#[tokio::test]
async fn only_declared_variables_and_tools_reach_the_other_side() {
    let directory = tempfile::tempdir().unwrap();
    let mut declaration = piped(&[]);
    declaration.tools = Some(vec!["env".to_owned(), "echo".to_owned()]);
    let server = ready(declaration, directory.path()).await;
    let names: Vec<String> = server.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["echo", "env"]);
    let environment = text(&call(&server, "env", json!({})).await.unwrap());
    let has = |line: &str| environment.lines().any(|found| found == line);
    assert!(has("DECLARED=yes") && has("TERM=dumb"), "{environment}");
    // The tests themselves run with variables of cargo.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!environment.contains("CARGO_"), "{environment}");
}

#[tokio::test]
async fn progress_is_shown_and_a_dropped_call_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let caller = Caller::default();
    let arguments = json!({"steps": 3, "ms": 150}).as_object().cloned().unwrap();
    let done = server.call("slow", arguments, &caller).await.unwrap();
    assert_eq!(text(&done), "3 steps");
    let shown = caller.progress.lock().unwrap().clone();
    assert!(shown.contains(&"2 of 3: step 2".to_owned()), "{shown:?}");

    let endless = call(&server, "slow", json!({"steps": 100_000, "ms": 20}));
    assert!(tokio::time::timeout(Duration::from_millis(200), endless).await.is_err());
    eventually("the cancellation", || server.log().contains("cancelled at step")).await;
    assert_eq!(text(&call(&server, "echo", json!({"text": "on"})).await.unwrap()), "on");
}

#[tokio::test]
async fn a_call_without_a_sign_of_life_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut declaration = piped(&[]);
    declaration.timeout = Some(Duration::from_millis(300));
    let server = ready(declaration, directory.path()).await;
    let silent = call(&server, "slow", json!({"steps": 1, "ms": 600_000})).await;
    assert_eq!(silent, Err(McpError::CallSilent(Duration::from_millis(300))));
    eventually("the cancellation", || server.log().contains("cancelled at step 1")).await;
}

#[tokio::test]
async fn questions_are_asked_and_answered() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let content = json!({"name": "Ada", "sure": true});
    for (answer, said) in [
        (ElicitationAnswer::Accept(Some(content.clone())), format!("accepted {content}")),
        (ElicitationAnswer::Decline, "declined".to_owned()),
        (ElicitationAnswer::Cancel, "cancelled".to_owned()),
    ] {
        let caller = Caller { answer: Some(answer), ..Caller::default() };
        let result = server.call("ask", serde_json::Map::new(), &caller).await.unwrap();
        assert_eq!(text(&result), said);
        let questions = caller.questions.lock().unwrap();
        assert_eq!(questions[0].message, "Who goes there?");
        let ElicitationForm::Fields(schema) = &questions[0].form else {
            panic!("{questions:?}");
        };
        assert_eq!(schema["properties"]["name"]["title"], "Name");
    }
    let caller = Caller { answer: Some(ElicitationAnswer::Accept(None)), ..Caller::default() };
    let result = server.call("ask_url", serde_json::Map::new(), &caller).await.unwrap();
    assert_eq!(text(&result), "accepted null");
    let questions = caller.questions.lock().unwrap();
    let url = "https://sign.example/in".to_owned();
    assert_eq!(questions[0].form, ElicitationForm::Url(url));
}

#[tokio::test]
async fn a_changed_list_is_listed_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let has_extra = || server.tools().iter().any(|tool| tool.name == "extra");
    assert!(!has_extra());
    call(&server, "storm", json!({"count": 500})).await.unwrap();
    eventually("the new tool", has_extra).await;
    assert_eq!(text(&call(&server, "extra", json!({})).await.unwrap()), "here");
}

/// The last part of MC-8: however often a server says that its list changed, it is asked for in intervals, and works meanwhile.
#[tokio::test]
async fn mc_8_a_list_that_changes_all_the_time_is_asked_for_in_intervals() {
    let directory = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let server = ready(piped(&["--restless"]), directory.path()).await;
    let listed = || {
        let tools = server.tools();
        let mut times = tools.iter().filter_map(|tool| tool.name.strip_prefix("listed"));
        times.next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(listed(), 0);
    let echoed = call(&server, "echo", json!({"text": "on"})).await;
    assert_eq!(text(&echoed.unwrap()), "on");
    eventually("the next list", || listed() > 0).await;
    let least = Duration::from_millis(250) * listed();
    assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    let echoed = call(&server, "echo", json!({"text": "still on"})).await;
    assert_eq!(text(&echoed.unwrap()), "still on");
}

#[tokio::test]
async fn mc_2_a_server_is_told_when_the_working_directories_change() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let first = text(&call(&server, "roots", json!({})).await.unwrap());
    let roots = [first.clone(), "file:///another".to_owned()];
    for _ in 0..2 {
        server.set_roots(&roots);
    }
    eventually("the word of it", || server.log().contains("the roots changed")).await;
    let listed = call(&server, "roots", json!({})).await.unwrap();
    assert_eq!(text(&listed), roots.join("\n"));
    let told = server.log().matches("the roots changed").count();
    assert_eq!(told, 1, "the same ones are no news");

    server.set_roots(std::slice::from_ref(&first));
    server.stop();
    server.start();
    server.wait_until_settled().await;
    let listed = call(&server, "roots", json!({})).await.unwrap();
    assert_eq!(text(&listed), first, "also if it was started since");
}

#[tokio::test]
async fn lists_without_an_end_are_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&["--tools", "10000"]), directory.path()).await;
    assert_eq!(server.tools().len(), 512);
    assert_eq!(server.left_out(), ["9504 tools: at most 512 of a server are kept"]);
    let server = ready(piped(&["--endless"]), directory.path()).await;
    let left_out = server.left_out();
    assert!(left_out[0].starts_with("its list has more than 64 pages"), "{left_out:?}");
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let large = call(&server, "big", json!({"bytes": 4 << 20})).await.unwrap();
    assert_eq!(text(&large).len(), 4 << 20);
    let too_large = call(&server, "big", json!({"bytes": 20 << 20})).await;
    assert_eq!(too_large, Err(McpError::TooLarge(16 << 20)));
    eventually("the restart", || server.state() == ServerState::Ready).await;
}

#[tokio::test]
async fn a_crash_is_mended_once() {
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let declaration = piped(&["--starts", starts.to_str().unwrap()]);
    let server = ready(declaration, directory.path()).await;
    let fire = McpError::Ended("the disk is on fire".to_owned());
    assert_eq!(call(&server, "crash", json!({})).await, Err(fire.clone()));
    let count = || fs::read_to_string(&starts).unwrap().lines().count();
    eventually("the restart", || count() == 2 && server.state() == ServerState::Ready).await;
    assert_eq!(call(&server, "crash", json!({})).await, Err(fire.clone()));
    eventually("the failure", || server.state() == ServerState::Failed(fire.clone())).await;
    assert_eq!(call(&server, "echo", json!({})).await, Err(fire));
    assert_eq!(count(), 2);
    server.start();
    server.wait_until_settled().await;
    assert_eq!(server.state(), ServerState::Ready);
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let server = McpServer::new(piped(&["--exits"]), place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let words = "there is no database at db.example".to_owned();
    assert_eq!(server.state(), ServerState::Failed(McpError::Ended(words)));

    let mut declaration = piped(&[]);
    let agents::mcp::McpTransport::Process { command, .. } = &mut declaration.transport else {
        unreachable!()
    };
    *command = "no-such-program".to_owned();
    let server = McpServer::new(declaration, place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let command = "no-such-program".to_owned();
    assert_eq!(server.state(), ServerState::Failed(McpError::CommandMissing { command }));
}

#[tokio::test]
async fn tr_5_what_a_server_says_of_its_secrets_is_blanked() {
    let directory = tempfile::tempdir().unwrap();
    let mut declaration = piped(&["--tells", "API_KEY"]);
    let agents::mcp::McpTransport::Process { env, .. } = &mut declaration.transport else {
        unreachable!()
    };
    env.insert("API_KEY".to_owned(), "sk-very-secret".to_owned());
    let server = McpServer::new(declaration, place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let words = "cannot sign in with ***".to_owned();
    assert_eq!(server.state(), ServerState::Failed(McpError::Ended(words)));
}

#[tokio::test]
async fn mc_1_a_server_without_initialize_is_asked_to_describe_itself() {
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let switches = ["--newest", "--starts", starts.to_str().unwrap()];
    let server = ready(piped(&switches), directory.path()).await;
    let said = call(&server, "echo", json!({"text": "new"})).await;
    assert_eq!(text(&said.unwrap()), "new");
    let count = || std::fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(count(), 2, "first as servers of today are asked");
}

#[tokio::test]
async fn mc_1_a_server_that_refuses_for_another_reason_is_not_asked_again() {
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let switches = ["--refuses", "no key is set", "--starts"].into_iter().chain(starts.to_str());
    let declaration = piped(&switches.collect::<Vec<_>>());
    let server = McpServer::new(declaration, place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let refused = McpError::Refused { code: -32603, message: "no key is set".to_owned() };
    assert_eq!(server.state(), ServerState::Failed(refused));
    let count = std::fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(count, 1);
}

/// The clock stands still unless everybody waits for it: the limit is reached at once.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let opened = McpConnection::open(&piped(&["--silent"]), &place(directory.path()), None).await;
    let limit = Duration::from_secs(30);
    assert_eq!(opened.err(), Some(McpError::Silent(limit, String::new())));
}

#[tokio::test]
async fn stopping_ends_everything_that_was_started() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&["--stays"]), directory.path()).await;
    let leader = text(&call(&server, "pid", json!({})).await.unwrap());
    let child = text(&call(&server, "child", json!({})).await.unwrap());
    assert!(is_alive(&leader) && is_alive(&child));
    let waiting = call(&server, "slow", json!({"steps": 1, "ms": 600_000}));
    // The call is under way when this is asked for the first time.
    let stopping = async { server.stop() };
    let (answer, ()) = tokio::join!(waiting, stopping);
    assert_eq!(answer, Err(McpError::Stopped));
    assert_eq!(server.state(), ServerState::Stopped);
    eventually("the end", || !is_alive(&leader) && !is_alive(&child)).await;
}

#[tokio::test]
async fn a_question_is_taken_back_when_nobody_waits_for_its_answer() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&[]), directory.path()).await;
    let caller = Caller::default();
    let asking = server.call("ask", serde_json::Map::new(), &caller);
    let stopping = async {
        eventually("the question", || !caller.questions.lock().unwrap().is_empty()).await;
        server.stop();
    };
    let (answer, ()) = tokio::join!(asking, stopping);
    assert_eq!(answer, Err(McpError::Stopped));
    assert!(caller.withdrawn.load(std::sync::atomic::Ordering::SeqCst));
}

/// Names the file that a process which is about to be killed writes its servers' processes into.
const TO_BE_KILLED: &str = "MCP_TEST_TO_BE_KILLED";

/// No test by itself: what the next one starts and kills.
#[tokio::test]
async fn holds_a_server_until_it_is_killed() {
    let Some(file) = std::env::var_os(TO_BE_KILLED) else {
        return; // nobody is about to kill it
    };
    let directory = tempfile::tempdir().unwrap();
    let server = ready(piped(&["--stays"]), directory.path()).await;
    let leader = text(&call(&server, "pid", json!({})).await.unwrap());
    let child = text(&call(&server, "child", json!({})).await.unwrap());
    fs::write(file, format!("{leader} {child} ")).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_host_leaves_no_server_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("processes");
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_server_until_it_is_killed"])
        .env(TO_BE_KILLED, &file)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(&file).unwrap_or_default();
    eventually("the server", || read().ends_with(' ')).await;
    let processes = read();
    let processes: Vec<&str> = processes.split_whitespace().collect();
    assert!(processes.iter().all(|process| is_alive(process)), "{processes:?}");
    host.kill().unwrap(); // SIGKILL
    host.wait().unwrap();
    eventually("the end", || !processes.iter().any(|process| is_alive(process))).await;
}
