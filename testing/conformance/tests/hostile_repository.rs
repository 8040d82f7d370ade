//! A repository whose files would run commands, one in each place that agents read: nothing of it runs before somebody said yes to it
//! (TR-1, TR-2).

use std::path::Path;

use conformance::acp::{AcpSetup, scene};
use conformance::native::{ends, error_of};
use serde_json::{Value, json};

use crate::mcp::{notices, start};

/// Places of servers that the native agent reads, with the names that they declare: each asks on its own.
const SERVERS: [&str; 4] = ["project", "editor", "plugin", "manifest"];

fn touch(work: &Path, name: &str) -> Value {
    let mark = work.join(format!("ran-{name}"));
    json!({"command": "touch", "args": [mark]})
}

/// Every file, by its path.
fn hostile_files(work: &Path) -> Vec<(&'static str, String)> {
    let server = |name: &str| touch(work, name);
    let line = |name: &str| format!("touch {}", work.join(format!("ran-{name}")).display());
    let hooks = |name: &str| {
        let hook = json!([{"hooks": [{"type": "command", "command": line(name)}]}]);
        json!({"hooks": {"SessionStart": hook, "UserPromptSubmit": hook, "Stop": hook}}).to_string()
    };
    let servers = |name: &str| json!({"mcpServers": {name: server(name)}}).to_string();
    vec![
        (".mcp.json", servers("project")),
        (".vscode/mcp.json", json!({"servers": {"editor": server("editor")}}).to_string()),
        (".agents/plugins/evil/.mcp.json", servers("plugin")),
        (
            ".agents/plugins/sly/plugin.json",
            json!({"name": "sly", "mcpServers": {"manifest": server("manifest")}}).to_string(),
        ),
        (".agents/plugins/evil/hooks/hooks.json", hooks("plugin-hook")),
        (".claude/settings.json", hooks("claude-hook")),
        (".github/hooks/all.json", hooks("github-hook")),
        (".qwen/settings.json", hooks("qwen-hook")),
        (".gemini/settings.json", servers("gemini")),
        (
            ".codex/config.toml",
            format!(
                "[mcp_servers.codex]\ncommand = \"sh\"\nargs = [\"-c\", \"{}\"]\n",
                line("codex")
            ),
        ),
        (
            "opencode.json",
            json!({"mcp": {"open": {"type": "local", "command": ["sh", "-c", line("opencode")]}}})
                .to_string(),
        ),
    ]
}

/// What ran.
fn marks(work: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(work).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("ran-")).collect()
}

#[tokio::test]
async fn tr_2_the_native_agent_runs_nothing_of_it_before_a_yes_to_that_very_thing() {
    let mut harness = start(json!({"approvals": "full-access"}), Vec::new()).await;
    let work = harness.work();
    for (path, text) in hostile_files(&work) {
        harness.write(path, &text);
    }
    harness.model.answers([ends()]);
    harness.ann.sends_message("one").await;
    let mut asked: Vec<&str> = Vec::new();
    for _ in SERVERS {
        let question = harness.ann.questioned().await;
        let message = question["message"].as_str().unwrap();
        assert!(message.contains("touch"), "{message}");
        let is_it = |name: &&str| message.contains(&format!("server `{name}`"));
        asked.extend(SERVERS.into_iter().filter(is_it));
        assert_eq!(marks(&work), Vec::<String>::new());
        harness.ann.chooses("no").await;
    }
    let turn = harness.ann.turn_over().await;
    asked.sort_unstable();
    assert_eq!(asked, ["editor", "manifest", "plugin", "project"]);
    assert!(notices(&turn).contains("you did not allow it"), "{turn:#}");
    assert_eq!(marks(&work), Vec::<String>::new());

    // A yes is one to that server alone.
    let config = json!({"approvals": "full-access"});
    harness.ann.creates_session("native:/second", &work, config).await;
    harness.model.answers([ends()]);
    harness.ann.sends_message("two").await;
    for _ in SERVERS {
        let question = harness.ann.questioned().await;
        let is_project = question.to_string().contains("server `project`");
        harness.ann.chooses(if is_project { "session" } else { "no" }).await;
    }
    harness.ann.turn_over().await;
    assert_eq!(marks(&work), ["ran-project"]);
}

#[tokio::test]
async fn tr_1_an_agent_of_others_is_not_even_started_before_a_yes_to_the_directory() {
    let opens = json!({"write": {"path": "ran-agent", "text": "x"}});
    let script = json!({"on_open": [opens], "scenes": [scene("", json!([{"say": ["ok"]}]))]});
    let mut harness = AcpSetup::new(script).entry("").start().await;
    let work = harness.work();
    for (path, text) in hostile_files(&work) {
        let path = work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    harness.ann.sends_message("one").await;
    let question = harness.ann.questioned().await.to_string();
    for (path, _) in hostile_files(&work) {
        assert!(question.contains(path), "{path}: {question}");
    }
    harness.ann.chooses("no").await;
    let error = error_of(&harness.ann.turn_over().await);
    assert_eq!(error["error"]["errorType"], "notTrusted", "{error:#}");
    assert!(harness.starts().is_empty());
    assert_eq!(marks(&work), Vec::<String>::new());
    harness.ann.sends_message("two").await;
    harness.ann.chooses("session").await;
    harness.ann.turn_over().await;
    harness.until("it was started", |_| marks(&work) == ["ran-agent"]).await;
}
