//! A published client in a process of its own (`shared/program.rs`), used like one in this process.

use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::v1_0::shared::view::View;

const DEADLINE: Duration = Duration::from_secs(60);

pub struct Remote {
    program: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    view: View,
}

/// Programs of the other packages are built into the same directory as this test (`cargo run -p xtask -- generations`).
fn path_of(program: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let built = test.ancestors().nth(2).expect("a directory");
    let path = built.join(program);
    assert!(
        path.is_file(),
        "{} is not built: `cargo run -p xtask -- generations` builds it",
        path.display()
    );
    path
}

impl Remote {
    pub async fn joins(program: &'static str, url: &str, name: &str) -> Self {
        let mut child = Command::new(path_of(program))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("its input");
        let output = child.stdout.take().expect("its output");
        let mut remote =
            Self { program, child, input, output: BufReader::new(output), view: View::default() };
        remote.tells(json!({"do": "join", "url": url, "name": name}));
        remote
    }

    /// Says what to do, and waits until it is done. The program panics where a client in this process would.
    fn tells(&mut self, request: Value) -> Value {
        writeln!(self.input, "{request}").expect("the program listens");
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("a line");
        assert!(read > 0, "{} ended at {request}", self.program);
        let mut answer: Value = serde_json::from_str(&line).expect("JSON");
        let chats = answer["chats"].take();
        self.view = View {
            session: answer["session"].take(),
            chats: serde_json::from_value(chats).expect("chats"),
        };
        answer["answer"].take()
    }

    pub async fn sends_message(&mut self, turn: &str, text: &str) {
        self.tells(json!({"do": "send", "turn": turn, "text": text}));
    }

    pub async fn does(&mut self, channel: &str, action: Value) {
        self.tells(json!({"do": "dispatch", "channel": channel, "action": action}));
    }

    pub async fn asks(&mut self, method: &str, params: Value) -> Value {
        self.tells(json!({"do": "ask", "method": method, "params": params}))
    }

    pub async fn follows(&mut self, channel: &str) {
        self.tells(json!({"do": "follow", "channel": channel}));
    }

    pub async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            let (program, view) = (self.program, &self.view);
            assert!(since.elapsed() < DEADLINE, "{program} waited in vain until {what}: {view:?}");
            self.tells(json!({"do": "hear"}));
        }
    }

    pub async fn until_told(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let told = self.tells(json!({"do": "until told", "method": method}));
        assert!(fits(&told), "{told}");
        told
    }

    pub fn was_told(&mut self, method: &str) -> bool {
        self.tells(json!({"do": "was told", "method": method})) == true
    }

    pub async fn agrees(&mut self, after: &str) {
        self.tells(json!({"do": "agree", "after": after}));
    }

    pub async fn goes(&mut self) {
        self.tells(json!({"do": "go"}));
    }

    pub async fn comes_back(&mut self, url: &str) {
        self.tells(json!({"do": "come back", "url": url}));
    }
}

impl Deref for Remote {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
