//! Terminals with real shells, driven by the published 1.0.0 client: what its reducers make of the stream is what a fresh snapshot
//! says, and what both show on a screen is the same.

use std::time::Duration;

use ahp::reducers::{apply_action_to_root, apply_action_to_terminal};
use ahp::{Client, ClientConfig, SubscriptionEvent};
use ahp_types::state::{
    RootState, SnapshotState, TerminalContentPart, TerminalLifecycleState, TerminalState,
};
use ahp_ws::WebSocketTransport;
use conformance::TestHost;
use conformance::native::ChatClient;
use serde_json::{Value, json};
use tokio::time::timeout;

const ROOT: &str = "ahp-root://";
const TERMINAL: &str = "ahp-terminal:/one";
const DEADLINE: Duration = Duration::from_secs(60);

/// A client that follows the root and one terminal.
struct Watcher {
    client: Client,
    name: &'static str,
    events: ahp::ClientEventStream,
    root: RootState,
    terminal: Option<TerminalState>,
    /// The names of the actions on the terminal.
    seen: Vec<Value>,
    refused: Vec<String>,
}

impl Watcher {
    async fn connect(host: &TestHost, name: &'static str) -> Self {
        let transport = WebSocketTransport::connect(&host.url).await.unwrap();
        let config = ClientConfig { subscription_buffer: 65_536, ..ClientConfig::default() };
        let client = Client::connect(transport, config).await.unwrap();
        let events = client.events();
        let versions = vec!["1.0.0".to_owned()];
        let init =
            client.initialize(name.to_owned(), versions, vec![ROOT.to_owned()]).await.unwrap();
        assert_eq!(init.terminal_command_prefix.as_deref(), Some("!"));
        let SnapshotState::Root(root) = init.snapshots[0].state.clone() else {
            panic!("the root");
        };
        Self {
            client,
            name,
            events,
            root: *root,
            terminal: None,
            seen: Vec::new(),
            refused: Vec::new(),
        }
    }

    async fn creates(&mut self, more: Value) -> Result<Value, ahp::ClientError> {
        let mut params = json!({
            "channel": TERMINAL,
            "claim": {"kind": "client", "clientId": self.name},
            "cols": 60, "rows": 10,
        });
        if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
            params.extend(more.clone());
        }
        self.client.request("createTerminal", params).await
    }

    async fn opens(&mut self, terminal: &str) {
        let (result, _) = self.client.subscribe(terminal.to_owned()).await.unwrap();
        let SnapshotState::Terminal(state) = result.snapshot.unwrap().state else {
            panic!("a terminal");
        };
        self.terminal = Some(*state);
    }

    async fn sends(&self, action: Value) {
        let action = serde_json::from_value(action).unwrap();
        self.client.dispatch(TERMINAL.to_owned(), action).await.unwrap();
    }

    async fn types(&self, data: &str) {
        self.sends(json!({"type": "terminal/input", "data": data})).await;
    }

    fn state(&self) -> &TerminalState {
        self.terminal.as_ref().unwrap()
    }

    /// What a terminal shows that gets all of the content.
    fn screen(&self) -> String {
        screen_of(self.state())
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.until_within(DEADLINE, what, is_so).await;
    }

    async fn until_within(
        &mut self,
        deadline: Duration,
        what: &str,
        is_so: impl Fn(&Self) -> bool,
    ) {
        let follow = async {
            while !is_so(self) {
                let event = self.events.recv().await.expect("the stream goes on");
                let SubscriptionEvent::Action(envelope) = event.event else { continue };
                if let Some(why) = &envelope.rejection_reason {
                    self.refused.push(why.clone());
                    continue;
                }
                if envelope.channel == ROOT {
                    apply_action_to_root(&mut self.root, &envelope.action);
                } else if let Some(terminal) = &mut self.terminal {
                    apply_action_to_terminal(terminal, &envelope.action);
                    self.seen.push(serde_json::to_value(&envelope.action).unwrap());
                }
            }
        };
        if timeout(deadline, follow).await.is_err() {
            let shown = self.terminal.as_ref().map(screen_of);
            panic!("{} never saw {what}: {shown:?}, refused {:?}", self.name, self.refused);
        }
    }

    async fn sees(&mut self, text: &str) {
        self.until(text, |own| own.screen().contains(text)).await;
    }

    fn was_told(&self, name: &str) -> bool {
        self.seen.iter().any(|action| action["type"] == name)
    }
}

fn screen_of(state: &TerminalState) -> String {
    let (rows, columns) = (state.rows.unwrap_or(24), state.cols.unwrap_or(80));
    let size = |value: i64| u16::try_from(value).unwrap().try_into().unwrap();
    let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
    for part in &state.content {
        match part {
            TerminalContentPart::Unclassified(part) => parser.process(part.value.as_bytes()),
            TerminalContentPart::Command(part) => parser.process(part.output.as_bytes()),
            TerminalContentPart::Unknown(part) => panic!("{part}"),
        }
    }
    parser.screen().contents()
}

async fn start(data: &std::path::Path) -> TestHost {
    TestHost::start(data, &json!({"scenes": [{"steps": [{"say": ["hello"]}]}]})).await
}

fn is_over(watcher: &Watcher) -> bool {
    matches!(watcher.state().lifecycle, TerminalLifecycleState::Exited(_))
}

#[tokio::test]
async fn a_terminal_is_made_used_by_its_holder_alone_and_disposed_of() {
    let data = tempfile::tempdir().unwrap();
    let host = start(data.path()).await;
    let mut ann = Watcher::connect(&host, "ann").await;
    let mut bob = Watcher::connect(&host, "bob").await;
    let wrong = ann.creates(json!({"claim": {"kind": "client", "clientId": "bob"}})).await;
    assert!(format!("{wrong:?}").contains("clientId"), "{wrong:?}");
    let cwd = format!("file://{}", data.path().display());
    ann.creates(json!({"cwd": cwd, "name": "work"})).await.unwrap();
    let again = ann.creates(json!({})).await;
    assert!(format!("{again:?}").contains("exists already"), "{again:?}");
    ann.opens(TERMINAL).await;
    bob.opens(TERMINAL).await;
    for watcher in [&mut ann, &mut bob] {
        let listed = |own: &Watcher| own.root.terminals.as_ref().is_some_and(|all| all.len() == 1);
        watcher.until("the list", listed).await;
        assert_eq!(watcher.root.terminals.as_ref().unwrap()[0].title, "work");
    }
    ann.types("stty size; pwd -P; echo \"$GREENROOM_DATA.\"\r").await;
    let path = data.path().canonicalize().unwrap();
    for watcher in [&mut ann, &mut bob] {
        watcher.sees("10 60\n").await;
        watcher.sees(&path.display().to_string()).await;
        assert!(!watcher.was_told("terminal/input") || watcher.name == "ann");
    }
    assert_eq!(ann.state().content.len(), bob.state().content.len());

    // Only who holds it types, and nobody takes it from a client that is there.
    bob.types("echo bob was here\r").await;
    bob.sends(json!({"type": "terminal/claimed", "claim": {"kind": "client", "clientId": "bob"}}))
        .await;
    bob.sends(json!({"type": "terminal/resized", "cols": 100, "rows": 20})).await;
    bob.until("refusals", |own| own.refused.len() == 3).await;
    assert!(bob.refused[0].contains("do not hold") && bob.refused[1].contains("another client"));

    // A size that cannot be is corrected for everybody.
    ann.sends(json!({"type": "terminal/resized", "cols": 100_000, "rows": 12})).await;
    bob.until("the size", |own| own.state().cols == Some(500) && own.state().rows == Some(12))
        .await;
    ann.sends(json!({"type": "terminal/resized", "cols": 60, "rows": 10})).await;
    ann.sends(json!({"type": "terminal/titleChanged", "title": "mine"})).await;
    bob.until("the title", |own| own.root.terminals.as_ref().unwrap()[0].title == "mine").await;
    ann.sends(json!({"type": "terminal/cleared"})).await;
    bob.until("clear", |own| own.was_told("terminal/cleared")).await;
    ann.types("printf '\\033]2;%s\\007' by-program; stty size\r").await;
    bob.until("the title", |own| own.state().title == "by-program").await;
    bob.sees("10 60").await;
    assert!(!bob.screen().contains("GREENROOM_DATA"), "it was cleared");

    ann.types("exit 3\r").await;
    for watcher in [&mut ann, &mut bob] {
        watcher.until("the end", is_over).await;
        let TerminalLifecycleState::Exited(exited) = &watcher.state().lifecycle else {
            panic!("it is over");
        };
        assert_eq!(exited.exit_code, Some(3));
    }
    let fresh = Watcher::connect(&host, "eve").await;
    let (result, _) = fresh.client.subscribe(TERMINAL.to_owned()).await.unwrap();
    let SnapshotState::Terminal(snapshot) = result.snapshot.unwrap().state else {
        panic!("a terminal");
    };
    assert_eq!(*snapshot, *bob.state());
    let _: Value =
        ann.client.request("disposeTerminal", json!({"channel": TERMINAL})).await.unwrap();
    bob.until("an empty list", |own| own.root.terminals.as_ref().unwrap().is_empty()).await;
    let gone = fresh.client.subscribe(TERMINAL.to_owned()).await;
    assert!(format!("{:?}", gone.err()).contains("-32008"));
    host.stop().await;
}

#[tokio::test]
async fn commands_are_told_by_the_shell_integration_of_bash() {
    let data = tempfile::tempdir().unwrap();
    let host = start(data.path()).await;
    let mut ann = Watcher::connect(&host, "ann").await;
    let cwd = format!("file://{}", data.path().display());
    ann.creates(json!({"cwd": cwd})).await.unwrap();
    ann.opens(TERMINAL).await;
    ann.until("detection", |own| own.state().supports_command_detection == Some(true)).await;
    ann.types("echo out; (exit 4)\r").await;
    ann.until("the end of it", |own| own.was_told("terminal/commandFinished")).await;
    let command = ann
        .state()
        .content
        .iter()
        .find_map(|part| match part {
            TerminalContentPart::Command(command) => Some(command.clone()),
            _ => None,
        })
        .unwrap();
    assert_eq!(command.command_line, "echo out; (exit 4)");
    assert_eq!((command.exit_code, command.output.as_str()), (Some(4), "out\r\n"));
    assert!(command.is_complete && command.timestamp > 1_700_000_000_000);
    let directory = data.path().join("below");
    std::fs::create_dir(&directory).unwrap();
    ann.types("cd below\r").await;
    let below = format!("file://{}", directory.display());
    ann.until("the directory", |own| own.state().cwd.as_deref() == Some(below.as_str())).await;
    let texts = serde_json::to_string(&ann.seen).unwrap();
    assert!(!texts.contains("]633;"), "{texts}");
    host.stop().await;
}

#[tokio::test]
async fn a_full_screen_program_is_the_same_for_two_clients_and_one_that_comes_later() {
    let data = tempfile::tempdir().unwrap();
    let host = start(data.path()).await;
    let mut ann = Watcher::connect(&host, "ann").await;
    let mut bob = Watcher::connect(&host, "bob").await;
    let lines: String = (1..=200).map(|line| format!("row {line}\n")).collect();
    std::fs::write(data.path().join("text"), lines).unwrap();
    let cwd = format!("file://{}", data.path().display());
    ann.creates(json!({"cwd": cwd})).await.unwrap();
    ann.opens(TERMINAL).await;
    bob.opens(TERMINAL).await;
    // A program of the alternate screen, whichever there is.
    let program = "if command -v less >/dev/null; then LESS= less text; elif command -v vi >/dev/null; then vi text; \
                   else printf '\\033[?1049h\\033[Hrow 1\\n'; head -1; printf '\\033[2J'; tail -9 text; cat; fi\r";
    ann.types(program).await;
    ann.sees("row 1\n").await;
    ann.types("G").await;
    for watcher in [&mut ann, &mut bob] {
        // The command that was typed names the last row, too.
        watcher.sees("row 199").await;
    }
    let mut late = Watcher::connect(&host, "late").await;
    late.opens(TERMINAL).await;
    late.sees("row 199").await;
    assert_eq!(ann.screen(), bob.screen());
    assert_eq!(late.screen(), bob.screen());
    assert!(!late.screen().contains("command -v"), "{}", late.screen());

    // The terminal outlives the connection of who made it; its last screen outlives the host.
    ann.client.shutdown().await;
    bob.until("nothing more", |_| true).await;
    let before = bob.screen();
    host.stop().await;
    let host = start(data.path()).await;
    let mut again = Watcher::connect(&host, "again").await;
    again.opens(TERMINAL).await;
    again.until("the end", is_over).await;
    let shown = again.screen();
    assert!(shown.contains("the host was restarted: what ran here has ended"), "{shown}");
    let kept: Vec<&str> = before.lines().filter(|line| line.contains("row")).skip(3).collect();
    assert!(kept.iter().all(|line| shown.contains(line)), "{before}\n---\n{shown}");
    let is_ended = |own: &Watcher| {
        let listed = own.root.terminals.as_ref().and_then(|all| all.first());
        listed.is_some_and(|entry| matches!(entry.lifecycle, TerminalLifecycleState::Exited(_)))
    };
    again.until("the end in the list", is_ended).await;
    host.stop().await;
}

/// What is printed by default; `GREENROOM_FAULTS_FULL=1` asks for a gigabyte.
fn printed_bytes() -> usize {
    if std::env::var_os("GREENROOM_FAULTS_FULL").is_some() { 1 << 30 } else { 30 << 20 }
}

/// What the files of a directory take.
fn bytes_in(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_in(&entry.path()),
        // Some are gone by the time they are looked at.
        _ => entry.metadata().map_or(0, |facts| facts.len()),
    });
    sizes.sum()
}

#[tokio::test]
async fn a_terminal_that_prints_a_gigabyte_stays_small_and_others_go_on() {
    let data = tempfile::tempdir().unwrap();
    let host = start(data.path()).await;
    let mut bob = ChatClient::arrives(&host, "bob").await;
    let session = "scripted:/beside";
    bob.creates_session(session, data.path(), json!({})).await;
    let mut ann = Watcher::connect(&host, "ann").await;
    ann.creates(json!({})).await.unwrap();
    ann.opens(TERMINAL).await;
    let bytes = printed_bytes();
    ann.types(&format!("head -c {bytes} /dev/zero | tr '\\0' x; echo; echo 'at the' end\r")).await;
    ann.until("output", |own| own.screen().contains("xxxxx")).await;
    // Another chat streams meanwhile.
    for _ in 0..10 {
        bob.sends_message("go on").await;
        assert_eq!(bob.turn_over().await["state"], "complete");
    }
    let end = ann.until_within(DEADLINE * 20, "at the end", |own| {
        own.screen().contains("at the end") && own.was_told("terminal/commandFinished")
    });
    end.await;
    let (result, _) = ann.client.subscribe(TERMINAL.to_owned()).await.unwrap();
    let SnapshotState::Terminal(snapshot) = result.snapshot.unwrap().state else {
        panic!("a terminal");
    };
    let bytes = serde_json::to_vec(&snapshot.content).unwrap().len();
    assert!(bytes < 8 << 20, "{bytes}");
    let shown = screen_of(&snapshot);
    assert!(shown.contains("at the end") && shown.starts_with("xxx"), "{shown}");
    let kept = bytes_in(data.path());
    assert!(kept < 96 << 20, "{kept} bytes on disk");
    host.stop().await;
}
