//! The items for what was typed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::json;
use workspace::completion::SUGGESTIONS_MAX;
use workspace::discovery::discover;

use super::*;

fn request(roots: &[&Path], text: &str) -> CompletionTask {
    let uri = |root: &&Path| wire::file_uri::uri_of(root.as_os_str().as_bytes());
    CompletionTask {
        context: kernel::MessageContext::default(),
        working_directories: roots.iter().map(uri).collect(),
        text: text.to_owned(),
        offset: text.encode_utf16().count() as u64,
        contexts: Vec::new(),
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn items_of(completer: &Completer, request: CompletionTask) -> Vec<Value> {
    match completions(completer, request, Vec::new(), AgentCommands::default()) {
        CompletionAnswer::Items(items) => items,
        other => panic!("{other:?}"),
    }
}

/// Waits until files are indexed.
fn complete(completer: &Completer, roots: &[&Path], text: &str) -> Vec<Value> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while items_of(completer, request(roots, "@file:")).is_empty() {
        assert!(std::time::Instant::now() < deadline, "no file was ever found");
    }
    items_of(completer, request(roots, text))
}

fn inserted(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["insertText"].as_str().unwrap()).collect()
}

fn project() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    write(at, "src/main.rs", "");
    write(at, "my icon.PNG", "");
    write(
        at,
        ".greenroom/commands/review.md",
        "---\ndescription: Reviews\nargument-hint: FILE\n---\nReview $1.",
    );
    write(at, ".agents/skills/tables/SKILL.md", "---\ndescription: Makes tables\n---\nx");
    write(at, ".agents/skills/quiet/SKILL.md", "---\nuser-invocable: false\n---\nx");
    root
}

#[test]
fn g_040_every_built_in_command_is_proposed_and_those_of_the_project() {
    let (root, completer) = (project(), Completer::default());
    let items = complete(&completer, &[root.path()], "/");
    assert_eq!(
        inserted(&items),
        [
            "/archive ",
            "/branch ",
            "/compact ",
            "/help ",
            "/redo ",
            "/retry-attachments ",
            "/rewind ",
            "/undo ",
            "/review "
        ]
    );
    let items = complete(&completer, &[root.path()], "/rev");
    assert_eq!(
        json!(items),
        json!([{
            "insertText": "/review ",
            "rangeStart": 0,
            "rangeEnd": 4,
            "attachment": {
                "type": "simple",
                "label": "/review",
                "displayKind": "command",
                "_meta": {
                    "compositor/part": {"type": "command", "id": "/review"},
                    "command": "review",
                    "description": "Reviews",
                    "argumentHint": "FILE",
                },
            },
            "_meta": {"compositor/about": {"description": "Reviews", "argumentHint": "FILE"}},
        }])
    );
}

#[test]
fn g_040_built_in_commands_are_proposed_however_many_others_there_are() {
    let root = project();
    for number in 0..100 {
        write(root.path(), &format!(".greenroom/commands/a{number}.md"), "x");
    }
    let items = complete(&Completer::default(), &[root.path()], "/");
    assert_eq!(items.len(), SUGGESTIONS_MAX);
    for built_in in ["/archive ", "/branch ", "/compact ", "/help ", "/redo ", "/rewind ", "/undo "]
    {
        assert!(inserted(&items).contains(&built_in));
    }
}

#[test]
fn files_are_resources_by_their_uris() {
    let (root, completer) = (project(), Completer::default());
    let items = complete(&completer, &[root.path()], "👍 see @main");
    let uri = |path: &str| wire::file_uri::uri_of(root.path().join(path).as_os_str().as_bytes());
    assert_eq!(
        json!(items),
        json!([{
            "insertText": "@file:src/main.rs ",
            "rangeStart": 7,
            "rangeEnd": 12,
            "attachment": {
                "type": "resource",
                "label": "main.rs",
                "uri": uri("src/main.rs"),
                "displayKind": "document",
            },
        }])
    );
    let items = complete(&completer, &[root.path()], "@file:\"my ic");
    assert_eq!(items[0]["insertText"], "@file:\"my icon.PNG\" ");
    assert_eq!(items[0]["attachment"]["displayKind"], "image");
    assert_eq!(items[0]["attachment"]["uri"], uri("my icon.PNG"));
    let items = complete(&completer, &[root.path()], "@file:src");
    assert_eq!(items[0]["attachment"]["displayKind"], "directory");
    assert_eq!(items[0]["insertText"], "@file:src ");
}

#[test]
fn a_number_sign_completes_files_alone() {
    let (root, completer) = (project(), Completer::default());
    for text in ["see #main", "see #file:main"] {
        let items = complete(&completer, &[root.path()], text);
        assert_eq!(inserted(&items), ["#file:src/main.rs "], "{text}");
        assert_eq!(items[0]["rangeStart"], 4);
        assert_eq!(items[0]["attachment"]["label"], "main.rs");
    }
    let items = complete(&completer, &[root.path()], "#");
    assert!(!items.is_empty());
    assert!(inserted(&items).iter().all(|text| text.starts_with("#file:")));
}

#[test]
fn files_of_other_directories_are_named_in_full() {
    let (root, other) = (project(), tempfile::tempdir().unwrap());
    write(other.path(), "elsewhere.rs", "");
    let items = complete(&Completer::default(), &[root.path(), other.path()], "@elsewh");
    let path = other.path().join("elsewhere.rs");
    let expected = format!("@file:{} ", path.display());
    assert_eq!(inserted(&items), [expected]);
}

#[test]
fn skills_and_contexts_are_mentions_that_come_back() {
    let (root, completer) = (project(), Completer::default());
    let uri = root.path().canonicalize().unwrap().join(".agents/skills/tables/SKILL.md");
    let uri = wire::file_uri::uri_of(uri.as_os_str().as_bytes());
    let items = complete(&completer, &[root.path()], "@skill:");
    assert_eq!(
        json!(items),
        json!([{
            "insertText": "@skill:tables ",
            "rangeStart": 0,
            "rangeEnd": 7,
            "attachment": {
                "type": "simple",
                "label": "@skill:tables",
                "displayKind": "skill",
                "_meta": {
                    "compositor/part": {"type": "mention", "target": {"kind": "skill", "name": "tables"}},
                    "uri": uri,
                    "description": "Makes tables",
                },
            },
            "_meta": {"compositor/about": {"description": "Makes tables"}},
        }])
    );
    let mut sent = request(&[root.path()], "@sel");
    sent.contexts = vec!["open".to_owned(), "selection".to_owned()];
    let offered = items_of(&completer, sent.clone());
    assert_eq!(
        offered[0]["attachment"],
        json!({
            "type": "simple",
            "label": "@selection",
            "displayKind": "context",
            "_meta": {"compositor/part": {"type": "mention", "target": {"kind": "context", "name": "selection"}}},
        })
    );
    sent.text = "@".to_owned();
    sent.offset = 1;
    let offered = items_of(&completer, sent);
    let first = ["@open ", "@selection ", "@skill:tables "];
    assert_eq!(inserted(&offered)[..3], first);
    assert!(inserted(&offered).contains(&"@file:src/main.rs "));
    // What no client sends would never resolve.
    let items = complete(&completer, &[root.path()], "@");
    assert_eq!(inserted(&items)[0], "@skill:tables ");
    for context in ["@selection ", "@open ", "@cursor ", "@last "] {
        assert!(!inserted(&items).contains(&context), "{context}");
    }
}

#[test]
fn text_without_a_token_has_no_completions() {
    let (root, completer) = (project(), Completer::default());
    for text in ["", "hello", "me@home", "see /re", "/review x", "@main x"] {
        assert_eq!(complete(&completer, &[root.path()], text), Vec::<Value>::new(), "{text:?}");
    }
    let mut beyond = request(&[root.path()], "@x");
    beyond.offset = 3;
    assert_eq!(
        completions(&completer, beyond, Vec::new(), AgentCommands::default()),
        CompletionAnswer::OutsideText
    );
    let nowhere = items_of(&completer, request(&[], "/comp"));
    assert_eq!(inserted(&nowhere), ["/compact "]);
}

#[test]
fn an_accepted_item_is_understood_when_it_is_submitted() {
    use std::collections::{BTreeMap, BTreeSet};
    let (root, completer) = (project(), Completer::default());
    let catalogue = discover(
        &request(&[root.path()], "").working_directories,
        &workspace::UserDirectories::default(),
        &[],
        &workspace::Confinement::none(),
    );
    let kinds = |text: &str| {
        let items = complete(&completer, &[root.path()], text);
        let item = &items[0];
        let typed = item["insertText"].as_str().unwrap();
        let mut attachment = item["attachment"].clone();
        let end = typed.trim_end().encode_utf16().count();
        attachment["range"] =
            json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": end}});
        let message =
            json!({"text": typed, "origin": {"kind": "user"}, "attachments": [attachment]});
        let roots = [root.path().display().to_string()];
        let around = compositor::Environment {
            catalogue: &catalogue.catalogue,
            skills: &BTreeSet::from(["tables".to_owned()]),
            contexts: &BTreeMap::new(),
            entity_kinds: &BTreeSet::new(),
            roots: &roots,
            inline: compositor::compose::AttachmentBudget { each_bytes: 1_024, left_bytes: 1_024 },
            now_ms: 0,
        };
        let input = compositor::SubmittedMessage::Ahp(message.as_object().unwrap().clone());
        let composed = compositor::compose(input, &around).unwrap();
        let parts =
            composed.parts.iter().map(|part| part.object()["type"].as_str().unwrap().to_owned());
        parts.collect::<Vec<_>>()
    };
    assert_eq!(kinds("/rev")[0], "command");
    assert_eq!(kinds("@main")[0], "file-ref");
    assert_eq!(kinds("@src")[0], "directory-ref");
    assert_eq!(kinds("@skill:ta")[0], "mention");
    assert_eq!(kinds("#main")[0], "file-ref");
}

#[test]
fn ag_28_commands_of_the_agent_are_completed_whole() {
    let root = project();
    let completer = Completer::default();
    let command = |name: &str| compositor::command::agent::AgentCommandEntry {
        name: name.to_owned(),
        description: Some(format!("Does {name}")),
        hint: None,
        expands: false,
    };
    let commands = AgentCommands {
        commands: ["init", "memory show", "memory add"].map(command).to_vec(),
        compact_refusal: Some("it cannot".to_owned()),
    };
    let complete = |text: &str| {
        let completed =
            completions(&completer, request(&[root.path()], text), Vec::new(), commands.clone());
        match completed {
            CompletionAnswer::Items(items) => items,
            other => panic!("{other:?}"),
        }
    };
    let all = complete("/");
    assert!(inserted(&all).contains(&"/memory show "), "{all:?}");
    assert!(!inserted(&all).contains(&"/compact "), "it would be refused");
    assert_eq!(inserted(&complete("/ini")), ["/init "]);
    let shown = complete("/memory sh");
    assert_eq!(inserted(&shown), ["/memory show "]);
    let range = (&shown[0]["rangeStart"], &shown[0]["rangeEnd"]);
    assert_eq!(range, (&json!(0), &json!(10)));
    let about = &shown[0]["_meta"]["compositor/about"]["description"];
    assert_eq!(about, "Does memory show");
    assert!(complete("/memory show all").is_empty());
}
