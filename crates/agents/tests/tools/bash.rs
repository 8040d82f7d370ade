//! `bash`: real processes, and none left over.

use std::sync::Arc;
use std::time::Duration;

use agents::tool;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::processes::{Process, numbers};
use crate::{Session, named};

/// A child, a grandchild, one in a group of its own, and two in sessions of their own, of which one has lost its parent:
/// they print their numbers and stay.
pub(crate) const TREE: &str = "sleep 1000 & echo $!
    (sleep 1000 & echo $!; wait) &
    timeout 1000 bash -c 'echo $$; exec sleep 1000' &
    setsid bash -c 'echo $$; sleep 1000; true' &
    (setsid bash -c 'echo $$; exec sleep 1000' &)
    wait";

/// How many there are.
pub(crate) const TREE_PROCESSES: usize = 5;

fn command(text: &str) -> Value {
    json!({"command": text})
}

#[tokio::test(start_paused = true)]
async fn a_command_prints_and_ends() {
    let session = Session::with(&[("a", "")]);
    let outcome = session.run("bash", command("ls; echo no >&2; echo yes")).await.unwrap();
    assert_eq!(outcome.text, "a\nno\nyes\n[exit code 0]");
    assert_eq!(outcome.summary, "Ran ls; echo no >&2; echo yes");
    assert!(outcome.success && outcome.whole.is_none());
    let outcome = session.run("bash", command("exit 3")).await.unwrap();
    assert_eq!(outcome.text, "[no output]\n[exit code 3]");
    assert_eq!(outcome.summary, "Ran exit 3 (exit code 3)");
    assert!(!outcome.success);
    let killed = session.text_of("bash", command("echo a; kill -9 $$")).await;
    assert_eq!(killed, "a\n[killed by signal 9]");
    let plan = session.plan("bash", command("cargo test\nls")).await.unwrap();
    assert_eq!(plan.summary, "Run cargo test…");
}

#[tokio::test]
async fn a_command_is_alone_with_its_files() {
    let session = Session::new();
    assert_eq!(session.text_of("bash", command("cat; wait")).await, "[no output]\n[exit code 0]");
    let leads = "read -r line </proc/$$/stat; set -- ${line##*) }; [ $3 = $$ ] && [ $4 = $$ ]";
    assert!(session.run("bash", command(leads)).await.unwrap().success);
    // No more is open than what a test's own children get from whoever started it.
    let open = "for fd in {0..255}; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; true";
    let plain = std::process::Command::new("bash").args(["-c", open]).output();
    let plain = String::from_utf8(plain.unwrap().stdout).unwrap();
    let text = session.text_of("bash", command(open)).await;
    assert_eq!(text, format!("{plain}[exit code 0]"));
    let pwd = session.text_of("bash", command("pwd")).await;
    assert_eq!(pwd, format!("{}\n[exit code 0]", session.directory.path().display()));
    // `[[` is bash's own.
    assert!(session.run("bash", command("[[ a == a* ]]")).await.unwrap().success);
}

#[tokio::test]
async fn a_command_begins_in_the_directory_that_was_opened() {
    let session = Session::with(&[("marker", "")]);
    let (here, moved) =
        (session.directory.path(), session.directory.path().with_extension("moved"));
    std::fs::rename(here, &moved).unwrap();
    std::fs::create_dir(here).unwrap();
    let listed = session.text_of("bash", command("ls")).await;
    std::fs::remove_dir_all(&moved).unwrap();
    assert_eq!(listed, "marker\n[exit code 0]");
}

#[tokio::test]
async fn only_allowed_variables_are_passed_on() {
    let session = Session::new();
    // Cargo sets this one for every test.
    let show = command("echo ${CARGO_PKG_NAME-hidden} $PAGER ${PATH:+path}");
    assert_eq!(session.text_of("bash", show.clone()).await, "hidden cat path\n[exit code 0]");
    let (output, _updates) = mpsc::channel(1);
    let settings = tool::ToolSettings {
        command_variables: vec!["CARGO_PKG_NAME".to_owned()],
        ..tool::ToolSettings::default()
    };
    let mut tools = tool::all(&Arc::new(settings), &Arc::default()).into_iter();
    let bash = tools.find(|tool| tool.name() == "bash").unwrap();
    let shown = bash.run(&show, &session.workspace, &output).await.unwrap();
    assert_eq!(shown.text, "agents cat path\n[exit code 0]");
}

#[tokio::test]
async fn long_output_is_cut_for_the_model_and_stored_whole() {
    let session = Session::new();
    let input = command("seq 100000");
    let outcome = session.run("bash", input).await.unwrap();
    assert!(outcome.text.len() < 25_000, "{}", outcome.text.len());
    assert!(outcome.text.starts_with("1\n2\n"));
    assert!(outcome.text.ends_with("99999\n100000\n[exit code 0]"));
    assert!(outcome.text.contains("bytes left out here"));
    let whole = String::from_utf8(outcome.whole.unwrap()).unwrap();
    assert_eq!(whole.lines().count(), 100_000);
}

#[tokio::test]
async fn output_is_streamed_while_it_runs_within_a_bound() {
    let session = Session::new();
    let (output, mut updates) = mpsc::channel(1);
    let input = command(
        "echo first; until [ -e go ]; do read -t 0.01 </dev/zero; done; seq 50000; until [ -e end ]; do :; done",
    );
    let tool = named("bash");
    let run = tool.run(&input, &session.workspace, &output);
    let watch = async {
        assert_eq!(updates.recv().await.unwrap(), "first\n");
        session.put("go", "");
        loop {
            let text = updates.recv().await.unwrap();
            assert!(text.len() < 10_000, "{}", text.len());
            if text.ends_with("49999\n50000\n") {
                break;
            }
        }
        session.put("end", "");
    };
    let (outcome, ()) = tokio::join!(run, watch);
    assert!(outcome.unwrap().success);
}

#[tokio::test]
async fn an_impatient_call_kills_the_whole_tree() {
    let session = Session::new();
    let (output, mut updates) = mpsc::channel(1);
    let input = json!({"command": TREE, "timeout_seconds": 5});
    let tool = named("bash");
    let mut run = tool.run(&input, &session.workspace, &output);
    let mut processes = Vec::new();
    let outcome = loop {
        tokio::select! {
            outcome = &mut run => break outcome.unwrap(),
            text = updates.recv() => {
                if let Some(numbers) = numbers(&text.unwrap(), TREE_PROCESSES) {
                    processes = numbers.into_iter().map(Process::new).collect();
                }
            }
        }
    };
    assert!(!outcome.success);
    assert!(outcome.text.contains("[killed after 5 seconds"), "{}", outcome.text);
    assert!(outcome.summary.ends_with("after 5 seconds"), "{}", outcome.summary);
    assert_eq!(processes.len(), TREE_PROCESSES, "{}", outcome.text);
    assert!(processes.iter().all(Process::was_alive));
    processes.iter().for_each(Process::is_gone);
}

#[tokio::test]
async fn a_dropped_call_kills_the_whole_tree() {
    let session = Session::new();
    let (output, mut updates) = mpsc::channel(1);
    let (input, tool) = (command(TREE), named("bash"));
    let mut run = tool.run(&input, &session.workspace, &output);
    let processes: Vec<Process> = loop {
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            text = updates.recv() => {
                if let Some(numbers) = numbers(&text.unwrap(), TREE_PROCESSES) {
                    break numbers.into_iter().map(Process::new).collect();
                }
            }
        }
    };
    assert!(processes.iter().all(|process| process.was_alive() && process.is_alive()));
    drop(run);
    processes.iter().for_each(Process::is_gone);
}

#[tokio::test]
async fn a_call_dropped_at_any_moment_leaves_nothing_behind() {
    let session = Session::new();
    for polls in 0..40 {
        let (output, _updates) = mpsc::channel(1);
        let input = command(&format!("echo $$ >> pids; exec sleep 100{polls}"));
        let tool = named("bash");
        let mut run = tool.run(&input, &session.workspace, &output);
        for _ in 0..polls * polls {
            let now = std::future::poll_fn(|context| {
                let polled = run.as_mut().poll(context);
                std::task::Poll::Ready(polled)
            });
            assert!(now.await.is_pending());
            tokio::task::yield_now().await;
        }
    }
    let pids = std::fs::read_to_string(session.path("pids")).unwrap_or_default();
    for number in numbers(&pids, 0).unwrap() {
        Process::new(number).is_gone();
    }
}

#[tokio::test]
async fn background_processes_end_with_the_command() {
    let session = Session::new();
    let left = "sleep 1000 & echo $!; setsid bash -c 'echo $$ >pid; exec sleep 1000' & until [ -s pid ]; do :; done; cat pid";
    let outcome = session.run("bash", command(left)).await.unwrap();
    assert!(outcome.success);
    let numbers = numbers(&outcome.text, 2).unwrap();
    assert_eq!(numbers.len(), 2, "{}", outcome.text);
    for number in numbers {
        Process::new(number).is_gone();
    }
}

#[tokio::test]
async fn a_child_without_session_and_mark_is_known_by_its_parent() {
    let session = Session::new();
    let (output, mut updates) = mpsc::channel(1);
    let nameless = "env -i \"$(command -v setsid)\" \"$(command -v bash)\" -c 'echo $$; exec \"$0\" 1000' \"$(command -v sleep)\" & wait";
    let (input, tool) = (command(nameless), named("bash"));
    let mut run = tool.run(&input, &session.workspace, &output);
    let process = loop {
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            text = updates.recv() => {
                if let Some(numbers) = numbers(&text.unwrap(), 1) {
                    break Process::new(numbers[0]);
                }
            }
        }
    };
    assert!(process.was_alive() && process.is_alive());
    drop(run);
    process.is_gone();
}

#[tokio::test]
async fn processes_of_other_sessions_are_not_killed() {
    let session = Session::new();
    let mut stranger =
        std::process::Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap();
    let other = Session::new();
    let (output, mut updates) = mpsc::channel(1);
    let waits = command("echo $$; until [ -e go ]; do :; done; echo went");
    let tool = named("bash");
    let neighbour = tool.run(&waits, &other.workspace, &output);
    let ends = async {
        while numbers(&updates.recv().await.unwrap(), 1).is_none() {}
        let outcome = session.run("bash", command("true")).await.unwrap();
        assert!(outcome.success);
        other.put("go", "");
    };
    let (outcome, ()) = tokio::join!(neighbour, ends);
    assert!(outcome.unwrap().text.contains("went"));
    assert!(stranger.try_wait().unwrap().is_none(), "it was killed");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn a_process_out_of_reach_does_not_delay_the_call() {
    let session = Session::new();
    let input = command(
        "env -i PATH=\"$PATH\" setsid sh -c 'echo $$ >pid; exec sleep 1000' & until [ -s pid ]; do :; done; echo done",
    );
    let call = session.run("bash", input);
    let outcome = tokio::time::timeout(Duration::from_secs(60), call).await;
    // Ended by the test, when this goes.
    let _escaped = Process::new(session.text("pid").trim().parse().unwrap());
    assert_eq!(outcome.unwrap().unwrap().text, "done\n[exit code 0]");
}
