//! `bash` in the background: started, looked at, ended, and none left over.

use std::sync::Arc;
use std::time::Duration;

use agents::tool::{self, ChatTools, ProcessRecord, Tool, ToolOutcome, ToolSettings};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::bash::{TREE, TREE_PROCESSES};
use crate::processes::{Process, numbers};
use crate::{Session, error};

/// The tools of one chat.
pub(crate) struct Chat {
    session: Session,
    shared: Arc<ChatTools>,
    tools: Vec<Box<dyn Tool>>,
}

impl Chat {
    pub(crate) fn new() -> Self {
        let shared = Arc::new(ChatTools::default());
        Self { session: Session::new(), tools: tool::all(&Arc::default(), &shared), shared }
    }

    async fn call(&self, tool: &str, input: Value) -> Result<ToolOutcome, tool::ToolError> {
        let mut tools = self.tools.iter();
        let tool = tools.find(|known| known.name() == tool).unwrap();
        tool.plan(&input, &self.session.workspace).await?;
        let (output, _updates) = mpsc::channel(1);
        tool.run(&input, &self.session.workspace, &output).await
    }

    /// Starts a command; its id and its process.
    pub(crate) async fn start(&self, command: &str) -> (String, ProcessRecord) {
        let input = json!({"command": command, "background": true});
        let started = self.call("bash", input).await.unwrap();
        let told = Value::Object(started.structured.unwrap());
        let id = told["id"].as_str().unwrap().to_owned();
        assert!(started.text.contains(&format!("as `{id}`")), "{}", started.text);
        (id, serde_json::from_value(told["process"].clone()).unwrap())
    }

    pub(crate) async fn look(&self, id: &str) -> String {
        let input = json!({"id": id, "wait_seconds": 300});
        self.call("bash_output", input).await.unwrap().text
    }

    /// Looks until what was printed ends so.
    async fn until(&self, id: &str, end: &str) -> String {
        let mut seen = String::new();
        while !seen.ends_with(end) {
            seen.push_str(&self.look(id).await);
        }
        seen
    }
}

#[tokio::test]
async fn output_is_what_came_since_the_last_look() {
    let chat = Chat::new();
    let command = "echo one; until [ -e go ]; do sleep 0.05; done; echo two >&2; exit 3";
    let (id, process) = chat.start(command).await;
    let seen = chat.until(&id, "[it still runs]").await;
    assert!(seen.ends_with("one\n[it still runs]"), "{seen}");
    assert!(process.is_running());
    chat.session.put("go", "");
    let seen = chat.until(&id, "[exit code 3]").await;
    assert!(seen.contains("two\n") && !seen.contains("one"), "{seen}");
    assert_eq!(chat.look(&id).await, "[no new output]\n[exit code 3]");
    assert!(!process.is_running());
    let unknown = error(chat.call("bash_output", json!({"id": "b0"})).await);
    assert!(unknown.contains(&format!("there are: {id}.")), "{unknown}");
}

#[tokio::test]
async fn a_command_goes_on_until_it_is_killed_with_all_it_started() {
    let chat = Chat::new();
    let (id, _) = chat.start(TREE).await;
    let mut seen = String::new();
    let processes: Vec<Process> = loop {
        seen.push_str(&chat.look(&id).await);
        seen.push('\n');
        if let Some(numbers) = numbers(&seen, TREE_PROCESSES) {
            break numbers.into_iter().map(Process::new).collect();
        }
    };
    assert!(processes.iter().all(Process::is_alive));
    assert!(seen.ends_with("[it still runs]\n"), "{seen}");
    let killed = chat.call("bash_kill", json!({"id": id})).await.unwrap();
    assert_eq!(killed.text, "[no new output]\n[killed by signal 9]");
    processes.iter().for_each(Process::is_gone);
    let again = chat.call("bash_kill", json!({"id": id})).await.unwrap();
    assert_eq!(again.text, killed.text, "killing twice is no error");
}

#[tokio::test]
async fn what_a_chat_left_running_ends_with_it() {
    let chat = Chat::new();
    let (_, first) = chat.start("sleep 1000").await;
    let (_, second) = chat.start("setsid sleep 1000").await;
    assert!(chat.shared.is_in_use());
    let processes = [first, second].map(|process| Process::new(process.pid));
    chat.shared.end();
    processes.iter().for_each(Process::is_gone);
    assert!(!chat.shared.is_in_use());

    let (_, third) = chat.start("sleep 1000").await;
    let process = Process::new(third.pid);
    drop(chat);
    process.is_gone();
}

#[tokio::test]
async fn much_output_is_shown_in_parts_and_bounded() {
    let chat = Chat::new();
    let (id, _) = chat.start("seq 1 60000; seq 1 400000").await;
    let mut seen = String::new();
    loop {
        let look = chat.look(&id).await;
        assert!(look.len() < 25 * 1_024, "{}", look.len());
        seen.push_str(&look);
        if look.ends_with("[exit code 0]") {
            break;
        }
    }
    assert!(seen.contains("[more output waits; look again]"));
    assert!(seen.contains("400000\n"));
    let (id, process) = chat.start("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end").await;
    Process::new(process.pid).is_gone();
    // Its output may still be on its way; this waits for the end of it.
    let look = chat.call("bash_kill", json!({"id": id})).await.unwrap().text;
    assert!(look.starts_with('['), "{}", &look[..100]);
    assert!(look.contains("bytes were dropped here"), "{}", &look[..100]);
}

#[tokio::test]
async fn only_so_many_run_and_a_time_limit_holds_where_it_is_given() {
    let chat = Chat::new();
    let limited = json!({"command": "sleep 1000", "background": true, "timeout_seconds": 1});
    let started = chat.call("bash", limited).await.unwrap();
    let id = Value::Object(started.structured.unwrap())["id"].clone();
    let id = id.as_str().unwrap();
    let seen = chat.until(id, "]").await;
    assert!(seen.contains("killed after 1 seconds"), "{seen}");
    for _ in 0..16 {
        chat.start("sleep 1000").await;
    }
    let input = json!({"command": "true", "background": true});
    let why = error(chat.call("bash", input).await);
    assert!(why.contains("16 commands run in the background already"), "{why}");
}

#[tokio::test]
async fn the_operator_says_how_long_commands_may_take() {
    let settings = ToolSettings {
        command_timeout: Duration::from_secs(1),
        command_timeout_max: Duration::from_secs(2),
        ..ToolSettings::default()
    };
    let tools = tool::all(&Arc::new(settings), &Arc::default());
    let bash = tools.iter().find(|tool| tool.name() == "bash").unwrap();
    let session = Session::new();
    let (output, _updates) = mpsc::channel(1);
    for (input, seconds) in [
        (json!({"command": "sleep 1000"}), 1),
        (json!({"command": "sleep 1000", "timeout_seconds": 900}), 2),
    ] {
        let outcome = bash.run(&input, &session.workspace, &output).await.unwrap();
        let expected = format!("killed after {seconds} seconds");
        assert!(outcome.text.contains(&expected), "{}", outcome.text);
    }
}
