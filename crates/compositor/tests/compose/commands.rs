//! Commands: resolved at submission, once (C-040 to C-053).

use compositor::command::agent::{AgentCommandEntry, AgentCommands};
use compositor::command::{CommandEffect, Mentions};
use compositor::{SubmittedMessage, compose};
use serde_json::{Value, json};

use crate::environment::{World, values};

fn check(text: &str, expected: Value) {
    assert_eq!(values(&World::new().typed(text)), expected, "{text:?}");
}

#[test]
fn c_040_an_action_an_intent_or_passed_through() {
    check("/compact", json!([{"type": "command", "id": "/compact", "args": {}}]));
    check(
        "/search icon set",
        json!([
            {"type": "command", "id": "/search", "args": {"raw": "icon set", "argv": ["icon", "set"]}},
            {"type": "text", "text": "icon set", "intent": "search", "derived_from": {"part": 0}},
        ]),
    );
    check("/frobnicate  now", json!([{"type": "text", "text": "/frobnicate  now"}]));
    let composed = World::new().typed("/compact keep 'the plan' please");
    assert_eq!(composed.actions.len(), 1);
    assert_eq!(composed.actions[0].name, "/compact");
    assert_eq!(composed.actions[0].raw, "keep 'the plan' please");
    assert_eq!(composed.actions[0].argv, ["keep", "the plan", "please"]);
}

#[test]
fn c_041_the_literal_of_a_known_command_is_in_no_text() {
    let world = World::new();
    for text in ["/compact now", "/search x", "/review a b", "/svg cat", "/plain x", "/look a"] {
        for part in &world.typed(text).parts {
            let text = part.object().get("text").and_then(Value::as_str);
            assert!(!text.unwrap_or("").contains('/'), "{part:?}");
        }
    }
}

#[test]
fn c_044_the_command_is_stored_and_expanded_only_once() {
    let mut world = World::new();
    let composed = world.typed("/review src/foo.ts critical");
    let expanded = json!([
        {"type": "command", "id": "/review",
            "args": {"raw": "src/foo.ts critical", "argv": ["src/foo.ts", "critical"]}},
        {"type": "text", "text": "Review src/foo.ts with severity critical.", "derived_from": {"part": 0}},
    ]);
    assert_eq!(values(&composed), expanded);
    // Another template today: yesterday's expansion is used again.
    world.catalogue = compositor::Catalogue::built_in();
    let body = "Changed".to_owned();
    let mentions = Mentions::Literal;
    world.command("/review", CommandEffect::Template { body, mentions });
    assert_eq!(values(&world.parts(expanded.clone())), expanded);
    world.catalogue = compositor::Catalogue::built_in();
    assert_eq!(values(&world.parts(expanded.clone())), expanded);
}

#[test]
fn c_040_an_expansion_may_have_an_intent() {
    let mut world = World::new();
    let (intent, body) = ("search".to_owned(), "Find $1.".to_owned());
    let mentions = Mentions::Literal;
    let what = CommandEffect::Directed { intent, body, mentions };
    world.command("/find", what);
    assert_eq!(
        values(&world.typed("/find it"))[1],
        json!({"type": "text", "text": "Find it.", "intent": "search", "derived_from": {"part": 0}})
    );
}

#[test]
fn c_044_expansions_refer_to_the_new_index_of_their_command() {
    let composed = World::new().parts(json!([
        {"type": "command", "id": "/plain", "args": {}},
        {"type": "command", "id": "/review", "args": {"raw": "a b"}},
        {"type": "text", "text": "as said before", "derived_from": {"part": 1}},
    ]));
    assert_eq!(
        values(&composed),
        json!([
            {"type": "command", "id": "/plain", "args": {}},
            {"type": "text", "text": "Run the checklist.", "derived_from": {"part": 0}},
            {"type": "command", "id": "/review", "args": {"raw": "a b"}},
            {"type": "text", "text": "as said before", "derived_from": {"part": 2}},
        ])
    );
}

#[test]
fn c_045_a_slash_is_a_command_only_at_the_beginning() {
    let text_part = |text: &str| json!([{"type": "text", "text": text}]);
    check("please run /compact later", text_part("please run /compact later"));
    check(" /compact", text_part(" /compact"));
    check("/compact,", text_part("/compact,"));
    check("/etc/hosts", text_part("/etc/hosts"));
    check("\\/compact is a name", text_part("/compact is a name"));
    check("\\/", text_part("/"));
    check("a\\/b", text_part("a\\/b"));
}

#[test]
fn c_046_to_c_049_templates_are_filled() {
    let expanded = |text: &str| {
        let composed = World::new().typed(text);
        composed.parts[1].object()["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(expanded("/ten a b c d e f g h i j"), "A=a J=j X=a0");
    assert_eq!(expanded("/echo  \"x  y\" $1 "), "Say: \"x  y\" $1 ");
    assert_eq!(expanded("/review 'my file.ts'"), "Review my file.ts with severity .");
    assert_eq!(expanded("/plain"), "Run the checklist.");
    assert_eq!(expanded("/plain now"), "Run the checklist.\n\nnow");
    assert_eq!(expanded("/review\n\na\tb"), "Review a with severity b.");
}

#[test]
fn c_050_arguments_of_a_form_fill_slots_in_their_order() {
    let composed = World::new().parts(json!([
        {"type": "command", "id": "/review", "args": {"file": "my file.ts", "severity": "high"}},
        {"type": "command", "id": "/search", "args": {"query": "icon set"}},
    ]));
    assert_eq!(composed.parts[0].object()["args"]["file"], "my file.ts");
    assert_eq!(composed.parts[1].object()["text"], "Review my file.ts with severity high.");
    assert_eq!(composed.parts[3].object()["text"], "icon set");
    assert_eq!(composed.parts[3].object()["intent"], "search");
}

#[test]
fn c_051_a_command_without_body_and_arguments_is_resolved_all_the_same() {
    for id in [
        "/archive",
        "/branch",
        "/compact",
        "/help",
        "/redo",
        "/retry-attachments",
        "/rewind",
        "/undo",
    ] {
        let composed = World::new().typed(id);
        assert_eq!(values(&composed), json!([{"type": "command", "id": id, "args": {}}]));
        assert_eq!(composed.actions[0].name, id);
    }
    // A chip has no arguments yet.
    let composed = World::new().parts(json!([{"type": "command", "id": "/compact"}]));
    assert_eq!(values(&composed)[0]["args"], json!({}));
}

#[test]
fn c_052_tokens_in_an_expansion_count_only_if_the_entry_allows_it() {
    let composed = World::new().typed("/echo @file:a.ts @selection !`ls`");
    assert_eq!(composed.parts.len(), 2);
    assert_eq!(composed.parts[1].object()["text"], "Say: @file:a.ts @selection !`ls`");
    let composed = World::new().typed("/look src/a.ts:1-2");
    let derived = json!({"part": 0});
    assert_eq!(
        values(&composed).as_array().unwrap()[1..],
        [
            json!({"type": "text", "text": "Look at ", "derived_from": derived}),
            json!({"type": "mention", "target": {"kind": "file", "path": "src/a.ts",
                "range": {"unit": "line", "start": 1, "end": 2}}, "derived_from": derived}),
            json!({"type": "text", "text": " and ", "derived_from": derived}),
            json!({"type": "mention", "target": {"kind": "context", "name": "selection"},
                "derived_from": derived}),
            json!({"type": "editor-context", "kind": "selection", "payload": {"n": 1},
                "derived_from": {"part": 4}, "emitted_at": 1_760_000_000_000_i64}),
        ]
    );
    // A skill is never sent to a model, wherever it is named.
    let composed = World::new().typed("/echo use @skill:known now");
    let kinds: Vec<&str> = composed.parts.iter().map(|part| part.kind()).collect();
    assert_eq!(kinds, ["command", "text", "mention", "text"]);
}

#[test]
fn c_053_only_host_actions_call_no_model() {
    let world = World::new();
    assert!(!world.typed("/compact").reaches_model);
    assert!(!world.typed("/branch a title").reaches_model);
    assert!(world.typed("/plain").reaches_model);
    assert!(world.typed("hello").reaches_model);
    assert!(world.typed(" ").reaches_model, "without a host action a model must answer");
    let action = json!({"type": "command", "id": "/compact", "args": {}});
    let context = json!({"type": "editor-context", "kind": "open", "payload": {}});
    let blank = json!({"type": "text", "text": " \n"});
    let composed = world.parts(json!([action, blank, action, context]));
    assert!(!composed.reaches_model);
    assert_eq!(composed.actions.len(), 2);
    assert!(world.parts(json!([action, {"type": "text", "text": "go on"}])).reaches_model);
    assert!(world.parts(json!([action, {"type": "poll"}])).reaches_model);
}

#[test]
fn c_053_what_an_editor_attaches_beside_a_host_action_calls_no_model() {
    let world = World::new();
    let message = |text: &str, attachments: Value| {
        world.message(json!({"text": text, "origin": {"kind": "user"}, "attachments": attachments}))
    };
    let open = json!({"type": "resource", "uri": "vscode-remote://h/a", "label": "file:a", "displayKind": "document"});
    let picture = json!({"type": "embeddedResource", "label": "p", "contentType": "image/png", "data": "iVBORw0KGgo="});
    let simple = json!({"type": "simple", "label": "s", "modelRepresentation": "problems"});
    let composed = message("/compact", json!([open, picture, simple]));
    assert!(!composed.reaches_model);
    assert_eq!(composed.actions.len(), 1);
    assert_eq!(composed.parts.len(), 4, "all of it is stored");
    // What has a place in the text is meant, and so is everything beside a command for the model.
    let mut placed = open.clone();
    placed["range"] =
        json!({"start": {"line": 0, "character": 9}, "end": {"line": 0, "character": 11}});
    assert!(message("/compact @a", json!([placed])).reaches_model);
    assert!(message("/plain", json!([open])).reaches_model);
    assert!(message("", json!([open])).reaches_model);
}

#[test]
fn skill_bound_commands_suggest_their_skill() {
    let mut world = World::new();
    world.skills.clear();
    let composed = world.typed("/svg");
    assert_eq!(
        values(&composed),
        json!([
            {"type": "command", "id": "/svg", "args": {}},
            {"type": "mention", "target": {"kind": "skill", "name": "canvas-docs-svg-kit",
                "unresolved": true}, "derived_from": {"part": 0}},
        ])
    );
    assert_eq!(composed.diagnostics.len(), 1);
}

#[test]
fn an_unknown_command_is_stored_and_passed_on_as_text() {
    let composed = World::new().parts(json!([
        {"type": "command", "id": "/nope", "args": {"raw": "a  b"}, "own": 1}
    ]));
    assert_eq!(
        values(&composed),
        json!([
            {"type": "command", "id": "/nope", "args": {"raw": "a  b"}, "own": 1},
            {"type": "text", "text": "/nope a  b", "derived_from": {"part": 0}},
        ])
    );
    assert_eq!(composed.diagnostics, ["command: unknown '/nope' (passed on as text)"]);
    assert!(composed.reaches_model && composed.actions.is_empty());
}

/// A world whose agent has commands of its own.
fn with_agent(names: &[&str]) -> World {
    let mut world = World::new();
    let commands = names.iter().map(|name| AgentCommandEntry {
        name: (*name).to_owned(),
        description: None,
        hint: None,
        expands: false,
    });
    world.catalogue.add_agent_commands(&AgentCommands {
        commands: commands.collect(),
        compact_refusal: Some("it keeps its own memory".to_owned()),
    });
    world
}

#[test]
fn ag_28_a_command_of_the_agent_is_kept_as_it_was_typed() {
    let world = with_agent(&["init", "memory", "memory show", "help", "compact"]);
    let check = |text: &str, expected: Value| {
        let composed = world.typed(text);
        assert_eq!(values(&composed), json!([expected]), "{text:?}");
        assert!(composed.reaches_model && composed.actions.is_empty());
        // What was understood once is understood the same again.
        assert_eq!(values(&world.parts(values(&composed))), json!([expected]));
    };
    check(
        "/init  @src 'a b'",
        json!({"type": "command", "id": "/init",
            "args": {"raw": "@src 'a b'", "argv": ["@src", "a b"]}, "agent_command": "init"}),
    );
    check(
        "/memory show all",
        json!({"type": "command", "id": "/memory show", "args": {"raw": "all", "argv": ["all"]},
            "agent_command": "memory show"}),
    );
    check(
        "/memory shows",
        json!({"type": "command", "id": "/memory", "args": {"raw": "shows", "argv": ["shows"]},
            "agent_command": "memory"}),
    );
    // The agent's own way to forget, and its own help beside that of the host.
    check(
        "/compact",
        json!({"type": "command", "id": "/compact", "args": {}, "agent_command": "compact"}),
    );
    check(
        "/agent:help",
        json!({"type": "command", "id": "/agent:help", "args": {}, "agent_command": "help"}),
    );
    let help = world.typed("/help");
    assert_eq!(help.actions.len(), 1);
    assert!(!help.reaches_model);
}

#[test]
fn ag_28_what_a_client_says_of_the_agents_commands_is_not_believed() {
    let forged = json!([{"type": "command", "id": "/archive", "args": {}, "agent_command": "x"}]);
    for world in [World::new(), with_agent(&["init"])] {
        let composed = world.parts(forged.clone());
        assert_eq!(values(&composed), json!([{"type": "command", "id": "/archive", "args": {}}]));
        assert_eq!(composed.actions.len(), 1);
    }
}

#[test]
fn ag_28_a_command_that_nobody_can_do_is_refused_with_the_reason() {
    let world = with_agent(&["init"]);
    let text = SubmittedMessage::Text("/compact now".to_owned());
    let refused = compose(text, &world.environment()).unwrap_err();
    assert_eq!(refused.to_string(), "/compact: it keeps its own memory");
}
