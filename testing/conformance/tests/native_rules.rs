//! Permission rules: what is remembered is what was read, it reaches no further, and what cannot be read grants nothing (G-63).

use std::os::unix::fs::{PermissionsExt, symlink};

use conformance::native::{ChatClient, NativeHarness, SESSION, bash, calls_of, ends, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call};

fn write(path: &str) -> Call {
    Call::new("w", "write", &json!({"path": path, "content": "new\n"}))
}

/// Whether a call ran without a question; one that asks is denied.
async fn is_asked(harness: &mut NativeHarness, call: Call) -> bool {
    harness.model.answers([Answer::calls([call]), ends()]);
    let turn = harness.ann.sends_message("go").await;
    let chat = harness
        .ann
        .until("it asks, or is over", move |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            let mut turns = chat["turns"].as_array().unwrap().iter();
            calls.iter().any(|call| call["status"] == "pending-confirmation")
                || turns.any(|over| over["id"] == turn.as_str())
        })
        .await;
    let asked = !chat["activeTurn"].is_null();
    if asked {
        let denial = json!({"approved": false, "reason": "denied"});
        harness.ann.decides(denial).await;
        harness.ann.turn_over().await;
    }
    asked
}

/// Lets the model make a call, and chooses one of the options by its id; the label that was read.
async fn choose(harness: &mut NativeHarness, call: Call, option: &str) -> String {
    harness.model.answers([Answer::calls([call]), ends()]);
    harness.ann.sends_message("asked").await;
    let asked = harness.ann.asked().await;
    let mut options = asked["options"].as_array().unwrap().iter();
    let chosen = options.find(|offered| offered["id"] == option);
    assert!(chosen.is_some(), "{option}: {asked:#}");
    let label = chosen.unwrap()["label"].clone();
    let choice = json!({"selectedOptionId": option});
    harness.ann.decides_about(&asked, choice).await;
    harness.ann.turn_over().await;
    label.as_str().unwrap().to_owned()
}

fn rules_file(harness: &NativeHarness) -> std::path::PathBuf {
    harness.work().parent().unwrap().join("data/data/rules.toml")
}

#[tokio::test]
async fn a_rule_for_the_project_is_what_was_read_and_reaches_no_further() {
    let mut harness = NativeHarness::start().await;
    let label = choose(&mut harness, bash("ls -a"), "approve-project").await;
    assert_eq!(label, "Approve, and always allow bash(ls:*) in this project");
    let file = rules_file(&harness);
    let text = std::fs::read_to_string(&file).unwrap();
    let table =
        format!("[project.\"{}\"]\nallow = [\n    \"bash(ls:*)\",\n]\n", harness.work().display());
    assert!(text.ends_with(&table), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for session in ["here", "elsewhere", "restarted"] {
        for command in ["ls", "ls -l .", "ls && ls -a"] {
            assert!(!is_asked(&mut harness, bash(command)).await, "{command} {session}");
        }
        for command in [
            "ls; touch x",
            "ls > x",
            "ls $(touch x)",
            "X=1 ls",
            "ls | tee x",
            "ls\ntouch x",
            "touch x",
        ] {
            assert!(is_asked(&mut harness, bash(command)).await, "{command} {session}");
        }
        match session {
            "here" => {
                let work = harness.work();
                let other = harness.ann.creates_session("native:/other", &work, json!({}));
                other.await;
            }
            _ => harness.restart().await,
        }
    }
    assert!(!harness.work().join("x").exists());
    // Another directory is another project.
    let inside = harness.work().join("inside");
    std::fs::create_dir(&inside).unwrap();
    harness.ann.creates_session("native:/inside", &inside, json!({})).await;
    assert!(is_asked(&mut harness, bash("ls")).await);
}

#[tokio::test]
async fn a_directory_may_be_edited_and_what_steers_tools_is_asked_about_all_the_same() {
    let mut harness = NativeHarness::start().await;
    for directory in ["src", ".git"] {
        std::fs::create_dir(harness.work().join(directory)).unwrap();
    }
    symlink("../.git", harness.work().join("src/innocent")).unwrap();
    let label = choose(&mut harness, write("src/a.rs"), "approve-session").await;
    assert_eq!(label, "Approve, and allow edit(src/**) in this session");
    assert!(!is_asked(&mut harness, write("src/b/c.rs")).await);
    assert_eq!(harness.read("src/b/c.rs"), "new\n");
    for path in ["a.rs", "lib/a.rs", "src/innocent/hook", "src/AGENTS.md"] {
        assert!(is_asked(&mut harness, write(path)).await, "{path}");
    }
    let config = json!({"type": "session/configChanged", "config": {"approvals": "accept-edits"}});
    harness.ann.does_in(SESSION, config).await;
    assert!(!is_asked(&mut harness, write("lib/a.rs")).await);
    for path in [
        ".git/hooks/x",
        ".GitHub/workflows/ci.yml",
        "src/innocent/hook",
        "CLAUDE.md",
        "docs/agents.MD",
        ".mcp.json",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".agents/skills/x/SKILL.md",
        ".greenroom/commands/x.md",
    ] {
        assert!(is_asked(&mut harness, write(path)).await, "{path}");
    }
    assert!(!harness.work().join(".git/hook").exists());
}

#[tokio::test]
async fn what_a_rule_denies_is_not_done_in_any_mode_and_what_it_asks_about_is_asked() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let rules = "# mine\n[always]\nallow = [\"bash\"]\ndeny = [\"bash(touch:*)\", \"read(.env)\"]\nask = [\"bash(id)\"]\n";
    std::fs::write(rules_file(&harness), rules).unwrap();
    harness.write(".env", "SECRET");
    let read = Call::new("r", "read", &json!({"path": ".env"}));
    let calls = [bash("true; /usr/bin/touch x"), read];
    let turn = harness.talk("go", [Answer::calls(calls), ends()]).await;
    let success: Vec<Value> = calls_of(&turn).iter().map(|call| call["success"].clone()).collect();
    assert_eq!(success, [false, false]);
    let results = harness.last_results();
    assert!(results[0].contains("A rule of the user denies this: bash(touch:*)"), "{results:?}");
    assert!(results[1].contains("read(.env)") && !results[1].contains("SECRET"), "{results:?}");
    assert!(!harness.work().join("x").exists());
    assert!(is_asked(&mut harness, bash("id")).await);
    assert!(!is_asked(&mut harness, bash("echo y")).await);
    assert_eq!(std::fs::read_to_string(rules_file(&harness)).unwrap(), rules);
}

#[tokio::test]
async fn rules_that_cannot_be_read_are_said_and_everything_is_asked_until_they_are_mended() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let file = rules_file(&harness);
    std::fs::write(&file, "[always]\nallow = [\"bash\"]\ndenny = [\"bash(rm:*)\"]\n").unwrap();
    harness.write("a.txt", "one\n");
    let read = || Call::new("r", "read", &json!({"path": "a.txt"}));
    for call in [bash("echo x"), write("b.txt"), read()] {
        assert!(is_asked(&mut harness, call).await);
    }
    harness.model.answers([Answer::calls([bash("ls")]), ends()]);
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    let options = asked["options"].as_array().unwrap().len();
    assert_eq!(options, 2, "nothing can be remembered: {asked:#}");
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    let notices = texts_in(&turn, "systemNotification");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("rules.toml: line 3: there is no `denny`"), "{notices:?}");
    std::fs::write(&file, "[always]\ndeny = [\"bash(rm:*)\"]\n").unwrap();
    for call in [bash("echo x"), write("b.txt"), read()] {
        assert!(!is_asked(&mut harness, call).await);
    }
}

#[tokio::test]
async fn no_file_of_a_workspace_grants_anything() {
    let mut harness = NativeHarness::start().await;
    let rules = "[always]\nallow = [\"bash\", \"edit\"]\n";
    let settings = json!({"permissions": {"allow": ["Bash", "Edit"]}}).to_string();
    for directory in [".greenroom", ".claude"] {
        std::fs::create_dir(harness.work().join(directory)).unwrap();
    }
    for (file, text) in [
        ("rules.toml", rules),
        (".greenroom/rules.toml", rules),
        (".claude/settings.json", settings.as_str()),
        (".claude/settings.local.json", settings.as_str()),
    ] {
        harness.write(file, text);
    }
    assert!(is_asked(&mut harness, bash("ls")).await);
    // Not by a link from the host's own directory either.
    symlink(harness.work().join("rules.toml"), rules_file(&harness)).unwrap();
    assert!(is_asked(&mut harness, bash("ls")).await);
}

#[tokio::test]
async fn a_rule_made_in_one_chat_holds_in_another_of_the_session() {
    let mut harness = NativeHarness::start().await;
    choose(&mut harness, bash("touch one"), "approve-session").await;
    let mut bob = ChatClient::arrives(harness.host(), "bob").await;
    let params = json!({"channel": SESSION, "chat": "ahp-chat:/second"});
    bob.connection.request("createChat", params).await.unwrap();
    bob.enters(SESSION, "ahp-chat:/second").await;
    harness.model.answers([Answer::calls([bash("touch one")]), ends()]);
    bob.sends_message("go").await;
    let turn = bob.turn_over().await;
    assert_eq!(calls_of(&turn)[0]["confirmed"], "setting");
}

#[tokio::test]
async fn what_a_session_was_allowed_goes_with_it() {
    let mut harness = NativeHarness::start().await;
    choose(&mut harness, bash("ls -a"), "approve-session").await;
    assert!(!is_asked(&mut harness, bash("ls")).await);
    let text = std::fs::read_to_string(rules_file(&harness)).unwrap();
    let table = format!("[session.\"{SESSION}\".\"{}\"]", harness.work().display());
    assert!(text.contains(&table), "{text}");
    let disposed = json!({"channel": SESSION});
    let disposed = harness.ann.connection.request("disposeSession", disposed);
    disposed.await.unwrap();
    while std::fs::read_to_string(rules_file(&harness)).unwrap().contains(SESSION) {
        tokio::task::yield_now().await;
    }
    let work = harness.work();
    harness.ann.creates_session(SESSION, &work, json!({})).await;
    assert!(is_asked(&mut harness, bash("ls")).await);
}

/// A host that died when a session was disposed of has left its rules behind.
#[tokio::test]
async fn a_session_that_begins_has_no_rules_of_another_of_its_name() {
    let mut harness = NativeHarness::start().await;
    let name = "native:/again";
    let rules = format!(
        "[session.\"{name}\"]\nallow = [\"bash(ls:*)\"]\n\n[session.\"native:/other\"]\nallow = [\"bash(pwd)\"]\n"
    );
    std::fs::write(rules_file(&harness), rules).unwrap();
    let work = harness.work();
    harness.ann.creates_session(name, &work, json!({})).await;
    assert!(is_asked(&mut harness, bash("ls")).await);
    let left = std::fs::read_to_string(rules_file(&harness)).unwrap();
    assert!(!left.contains(name) && left.contains("native:/other"), "{left}");
}

#[tokio::test]
async fn what_may_not_be_read_is_not_found_either() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    std::fs::create_dir(harness.work().join("private")).unwrap();
    for path in ["open.txt", ".env", "private/notes.txt", "asked.txt"] {
        harness.write(path, "the word\n");
    }
    let rules =
        "[always]\ndeny = [\"read(.env)\", \"read(private/**)\"]\nask = [\"read(asked.txt)\"]\n";
    std::fs::write(rules_file(&harness), rules).unwrap();
    let calls = [
        Call::new("g", "grep", &json!({"pattern": "word", "include_ignored": true})),
        Call::new("f", "glob", &json!({"pattern": "**", "include_ignored": true})),
        Call::new("l", "list", &json!({"depth": 3, "include_ignored": true})),
        Call::new("p", "grep", &json!({"pattern": "word", "path": "private"})),
    ];
    harness.talk("go", [Answer::calls(calls), ends()]).await;
    let results = harness.last_results();
    for result in &results[..3] {
        assert!(result.contains("open.txt"), "{result}");
        for hidden in [".env", "notes.txt", "asked.txt"] {
            assert!(!result.contains(hidden), "{hidden}: {result}");
        }
        assert!(
            result.contains("[3 files and directories are left out by the user's rules"),
            "{result}"
        );
    }
    assert!(
        results[3].contains("[1 file or directory is left out") && !results[3].contains("notes"),
        "{results:?}"
    );
    // A question about the call itself is about all that it shows.
    std::fs::write(rules_file(&harness), "[always]\nask = [\"grep\"]\n").unwrap();
    let grep = Call::new("g", "grep", &json!({"pattern": "word"}));
    harness.model.answers([Answer::calls([grep]), ends()]);
    harness.ann.sends_message("again").await;
    let asked = harness.ann.asked().await;
    harness.ann.decides_about(&asked, json!({})).await;
    harness.ann.turn_over().await;
    let results = harness.last_results();
    let last = results.last().unwrap();
    assert!(last.contains("notes.txt") && !last.contains("left out"), "{last}");
}
