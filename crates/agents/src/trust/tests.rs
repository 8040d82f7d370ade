//! Trust with real directories and a real file: who is asked, what for, and what is remembered.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, AgentReply, InputRequest};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::Object;
use wire::published::state::ChatInputResponseKind;

use super::*;
use crate::acp::config::{AcpAgentConfig, TrustPolicy};
use crate::sink::PendingReplies;
use crate::sink::testing::channel_sink;

const CLIENT: &str = "terminal-7";

struct World {
    _place: tempfile::TempDir,
    data: PathBuf,
    project: PathBuf,
    agent: AcpAgentConfig,
    configured: Vec<PathBuf>,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let [data, project] = ["data", "project"].map(|name| root.join(name));
        for directory in [&data, &project] {
            fs::create_dir(directory).unwrap();
        }
        let mut agent = AcpAgentConfig::new("claude", "claude-agent-acp");
        agent.name = "Claude Code".to_owned();
        Self { _place: place, data, project, agent, configured: Vec::new() }
    }

    fn write(&self, name: &str) {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}").unwrap();
    }

    /// A store as a host that just started has it.
    fn store(&self) -> Arc<TrustStore> {
        Arc::new(TrustStore::new(&self.data, self.configured.clone()))
    }

    async fn require_in(
        &self,
        directory: &Path,
        session: &str,
        answer: Option<&str>,
    ) -> (Result<(), AgentError>, Vec<InputRequest>) {
        let directories = [directory.to_owned()];
        self.require_all(&directories, session, answer).await
    }

    /// Requires trust; what is asked is answered with an option, or cancelled.
    async fn require_all(
        &self,
        directories: &[PathBuf],
        session: &str,
        answer: Option<&str>,
    ) -> (Result<(), AgentError>, Vec<InputRequest>) {
        let (events, mut received) = mpsc::channel(8);
        let replies = PendingReplies::default();
        let sink = channel_sink(events, replies.clone());
        let store = self.store();
        let mut asked = Vec::new();
        let required = require_trust(&sink, &store, &self.agent, session, directories);
        let mut required = std::pin::pin!(required);
        let result = loop {
            tokio::select! {
                result = &mut required => break result,
                Some(event) = received.recv() => {
                    let AgentEvent::InputRequested { ask, request } = event else {
                        panic!("{event:?}");
                    };
                    asked.push(request);
                    replies.deliver(reply(ask, answer)).unwrap();
                }
            }
        };
        (result, asked)
    }

    async fn require(
        &self,
        session: &str,
        answer: Option<&str>,
    ) -> (Result<(), AgentError>, Vec<InputRequest>) {
        self.require_in(&self.project, session, answer).await
    }
}

fn reply(ask: u64, answer: Option<&str>) -> AgentReply {
    let answers = answer.map(|option| {
        let value = json!({"kind": "selected", "value": option});
        ("trust".to_owned(), json!({"state": "submitted", "value": value}))
    });
    AgentReply::Answered {
        ask,
        response: match answer {
            Some(_) => ChatInputResponseKind::Accept,
            None => ChatInputResponseKind::Cancel,
        },
        answers: Object::from_iter(answers),
        answered_by: Some(CLIENT.to_owned()),
    }
}

fn message(asked: &[InputRequest]) -> String {
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked[0].message.clone().unwrap()
}

/// An agent that works in several directories reads the configuration of each.
#[tokio::test]
async fn tr_1_every_directory_of_a_session_is_asked_about() {
    let world = World::new();
    let other = world.data.join("other");
    std::fs::create_dir_all(&other).unwrap();
    let both = [world.project.clone(), other];
    let (result, asked) = world.require_all(&both, "s1", Some("session")).await;
    assert_eq!((result, asked.len()), (Ok(()), 2));
    let (result, asked) = world.require_all(&both, "s1", None).await;
    assert_eq!((result, asked.len()), (Ok(()), 0));
    let (result, asked) = world.require_all(&both, "s2", None).await;
    assert_eq!(result.unwrap_err().error_type, "notTrusted");
    assert_eq!(asked.len(), 1, "after a no nobody is asked about the others");
}

#[tokio::test]
async fn tr_1_a_yes_for_good_is_asked_once_and_outlives_the_host() {
    let world = World::new();
    for file in [
        ".mcp.json",
        ".claude/settings.local.json",
        ".claude/CLAUDE.md",
        ".codex/config.toml",
        ".opencode/plugin/a.js",
        ".opencode/node_modules/b/index.js",
        ".vscode/mcp.json",
        ".vscode/settings.json",
        "src/main.rs",
    ] {
        world.write(file);
    }
    let (result, asked) = world.require("s1", Some("always")).await;
    assert_eq!(result, Ok(()));
    let message = message(&asked);
    assert!(message.contains("Claude Code would work in"), "{message}");
    let listed: Vec<&str> = message.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(
        listed,
        [
            "- `.claude/settings.local.json`",
            "- `.codex/config.toml`",
            "- `.mcp.json`",
            "- `.opencode/node_modules`",
            "- `.opencode/plugin/a.js`",
            "- `.vscode/mcp.json`",
        ]
    );
    let question: &Value = &asked[0].questions[0];
    let options: Vec<&str> = question["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(options, ["always", "session", "no"]);
    let read: wire::published::state::ChatInputQuestion =
        serde_json::from_value(question.clone()).unwrap();
    assert_eq!(&serde_json::to_value(read).unwrap(), question);
    // Another session, another start of the host.
    let (result, asked) = world.require("s2", None).await;
    assert_eq!((result, asked), (Ok(()), Vec::new()));
    let entries = world.store().entries().unwrap();
    assert_eq!(entries[0].by, CLIENT);
    assert_eq!(entries[0].session, None);
    assert!(entries[0].since.starts_with("20") && entries[0].since.ends_with('Z'));
}

#[tokio::test]
async fn a_yes_for_a_session_is_for_that_one_alone() {
    let world = World::new();
    let (result, asked) = world.require("s1", Some("session")).await;
    assert_eq!(result, Ok(()));
    assert!(message(&asked).contains("There is none now"));
    let (result, asked) = world.require("s1", None).await;
    assert_eq!((result, asked), (Ok(()), Vec::new()));
    let (result, asked) = world.require("s2", Some("no")).await;
    assert_eq!((result.unwrap_err().error_type.as_str(), asked.len()), ("notTrusted", 1));
}

#[tokio::test]
async fn a_no_and_nobody_to_ask_end_the_turn_with_the_command_that_would_trust() {
    let world = World::new();
    let project = world.project.display().to_string();
    for answer in [Some("no"), Some("perhaps"), None] {
        let (result, asked) = world.require("s1", answer).await;
        let error = result.unwrap_err();
        assert_eq!((error.error_type.as_str(), asked.len()), ("notTrusted", 1));
        let command = format!("`greenroom agents trust {project}` trusts it.");
        assert!(error.message.ends_with(&command), "{error}");
        assert!(error.resumable);
    }
    assert!(!world.data.join(TRUST_FILE).exists(), "nothing was answered");
}

#[tokio::test]
async fn a_fresh_file_asks_again_and_is_named_alone() {
    let world = World::new();
    world.write(".mcp.json");
    world.require("s1", Some("always")).await.0.unwrap();
    world.write("README.md");
    assert!(world.require("s1", None).await.1.is_empty());
    world.write(".qwen/settings.json");
    let (result, asked) = world.require("s1", None).await;
    assert_eq!(result.unwrap_err().error_type, "notTrusted");
    let text = message(&asked);
    assert!(text.starts_with("New in "), "{text}");
    assert!(text.contains("`.qwen/settings.json`") && !text.contains(".mcp.json"));
    world.require("s1", Some("always")).await.0.unwrap();
    assert!(world.require("s1", None).await.1.is_empty());
    assert_eq!(world.store().entries().unwrap().len(), 1);
}

#[tokio::test]
async fn trust_covers_what_is_below_and_nothing_beside_or_above() {
    let world = World::new();
    let [below, beside] = ["project/sub/deep", "project-2"].map(|name| {
        let path = world.data.with_file_name(name);
        fs::create_dir_all(&path).unwrap();
        path
    });
    world.require("s1", Some("always")).await.0.unwrap();
    assert!(world.require_in(&below, "s1", None).await.1.is_empty());
    // A repository that was cloned there with files of its own is another matter.
    world.write("sub/deep/.mcp.json");
    let (result, asked) = world.require_in(&below, "s1", Some("always")).await;
    assert_eq!(result, Ok(()));
    assert!(message(&asked).contains("`.mcp.json`"));
    assert!(world.require_in(&below, "s1", None).await.1.is_empty());
    for other in [beside.as_path(), world.project.parent().unwrap()] {
        assert_eq!(world.require_in(other, "s1", None).await.1.len(), 1);
    }
}

#[tokio::test]
async fn files_above_in_the_same_repository_count() {
    let world = World::new();
    world.write("sub/main.rs");
    world.write(".gemini/settings.json");
    let sub = world.project.join("sub");
    let (_, asked) = world.require_in(&sub, "s1", None).await;
    assert!(message(&asked).contains("There is none now"));
    fs::create_dir(world.project.join(".git")).unwrap();
    let (_, asked) = world.require_in(&sub, "s1", None).await;
    let path = world.project.join(".gemini/settings.json");
    assert!(message(&asked).contains(&format!("`{}`", path.display())));
}

#[tokio::test]
async fn the_settings_file_decides_without_a_question() {
    let mut world = World::new();
    world.write(".mcp.json");
    let link = world.data.join("link");
    std::os::unix::fs::symlink(&world.project, &link).unwrap();
    world.configured = vec![PathBuf::from("/none/such"), link.clone()];
    let (result, asked) = world.require("s1", None).await;
    assert_eq!((result, asked), (Ok(()), Vec::new()));
    world.configured.clear();
    world.agent.trust = TrustPolicy::Never;
    let (result, asked) = world.require("s1", Some("always")).await;
    assert!(asked.is_empty());
    let error = result.unwrap_err();
    assert_eq!(error.error_type, "notTrusted");
    assert!(error.message.contains("trust = \"never\""), "{error}");
    // What was trusted before stays so: `never` is about asking.
    let command_files = CommandFiles::of(&world.project);
    world.store().add(&world.project, None, "me", &command_files).unwrap();
    assert_eq!(world.require("s1", None).await, (Ok(()), Vec::new()));
    assert!(world.store().revoke(&world.project).unwrap());
    assert!(!world.store().revoke(&world.project).unwrap());
    assert!(world.require("s1", None).await.0.is_err());
    world.agent.trust = TrustPolicy::Always;
    assert_eq!(world.require("s1", None).await, (Ok(()), Vec::new()));
}

#[tokio::test]
async fn a_broken_file_is_named_with_its_line_and_trusts_nothing() {
    let world = World::new();
    world.require("s1", Some("always")).await.0.unwrap();
    let path = world.data.join(TRUST_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let broken = text.replace("since = ", "sinse = ");
    fs::write(&path, &broken).unwrap();
    let (result, asked) = world.require("s1", Some("always")).await;
    let error = result.unwrap_err();
    assert!(asked.is_empty());
    assert!(error.message.contains("trust.toml: line "), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), broken, "it is the user's to mend");
    // A link could lead into a workspace.
    fs::remove_file(&path).unwrap();
    world.write("trust.toml");
    std::os::unix::fs::symlink(world.project.join("trust.toml"), &path).unwrap();
    let error = world.require("s1", Some("always")).await.0.unwrap_err();
    assert!(error.message.contains("it is a link"), "{error}");
}

#[tokio::test]
async fn names_of_files_cannot_change_what_the_question_says() {
    let world = World::new();
    let names: [&[u8]; 3] = [b"a\x1b[2J\n- `x`", b"\xff\\", "b\u{202e}txt".as_bytes()];
    fs::create_dir(world.project.join(".qwen")).unwrap();
    for name in names {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(world.project.join(".qwen").join(name), "").unwrap();
    }
    let (_, asked) = world.require("s1", None).await;
    let message = message(&asked);
    assert!(message.contains(r"- `.qwen/a\u{1b}[2J\n- \u{60}x\u{60}`"), "{message}");
    assert!(message.contains(r"- `.qwen/\xff\\`"), "{message}");
    assert!(message.contains(r"- `.qwen/b\u{202e}txt`"), "{message}");
}

#[tokio::test]
async fn many_files_are_told_by_a_digest_and_one_more_is_noticed() {
    let world = World::new();
    for number in 0..400 {
        world.write(&format!(".opencode/agent/{number:04}.md"));
    }
    let (result, asked) = world.require("s1", Some("always")).await;
    assert_eq!(result, Ok(()));
    let text = message(&asked);
    assert!(text.contains("- and 236 more"), "{text}");
    assert!(world.require("s1", None).await.1.is_empty());
    world.write(".opencode/agent/0399b.md");
    assert_eq!(world.require("s1", None).await.1.len(), 1);
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let world = World::new();
    let store = world.store();
    let command_files = CommandFiles::default();
    for number in 0..205 {
        let session = format!("s{number}");
        store.add(&world.project, Some(&session), "me", &command_files).unwrap();
    }
    let entries = store.entries().unwrap();
    assert_eq!(entries.len(), 200);
    assert_eq!(entries[0].session.as_deref(), Some("s5"));
    let bytes = std::ffi::OsStr::from_bytes(b"/\xff");
    let error = store.add(Path::new(bytes), None, "me", &command_files).unwrap_err();
    assert!(error.0.contains("its name is text"), "{error}");
}
