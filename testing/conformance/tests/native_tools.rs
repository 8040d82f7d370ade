//! The tools of the native agent in a conversation: what the model gets of each, and what the chat shows.

use conformance::native::{NativeHarness, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};

#[tokio::test]
async fn files_are_found_read_and_edited_in_several_places() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "accept-edits"})).await;
    harness.write("a.txt", "one\ntwo\nthree\n");
    let edits = json!({"path": "a.txt", "edits": [{"old": "one", "new": "1"}, {"old": "three", "new": "3"}]});
    let wrong = json!({"path": "a.txt", "edits": [{"old": "two", "new": "2"}, {"old": "four", "new": "4"}]});
    let turn = harness
        .talk(
            "edit it",
            [
                Answer::calls([
                    Call::new("a", "glob", &json!({"pattern": "*.txt"})),
                    Call::new("b", "read", &json!({"path": "a.txt", "offset": 2, "limit": 1})),
                    Call::new("c", "read", &json!({"path": 7})),
                ]),
                Answer::calls([Call::new("d", "edit", &edits)]),
                Answer::calls([Call::new("e", "edit", &wrong)]),
                Answer::streams(["done"]),
            ],
        )
        .await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(
        harness.last_results(),
        [
            "a.txt\n",
            "     2\ttwo\n[more lines follow; go on with offset 3]\n",
            "the input does not fit: `path` must be a text, and is another number. For example: {\"path\": \
             \"src/main.rs\", \"offset\": 1, \"limit\": 200}",
            "Edited a.txt (+2 -2). 2 replacements.",
            "edit 2 of 2: `old_text` is not in the file. `read` or `grep` the file for what is there now. Nothing was \
             changed in a.txt.",
        ]
    );
    assert_eq!(harness.read("a.txt"), "1\ntwo\n3\n");
    let calls = calls_of(&turn);
    assert_eq!(calls[0]["pastTenseMessage"], "Found 1 file for *.txt");
    assert_eq!(calls[3]["content"][1]["diff"], json!({"added": 2, "removed": 2}));
}

/// The system prompt of the last request.
fn system(harness: &NativeHarness) -> String {
    let requests = harness.model.requests();
    let body = requests.last().expect("the model was asked").json();
    let text = body["messages"][0]["content"].as_str();
    text.expect("a text").to_owned()
}

#[tokio::test]
async fn a_list_of_what_is_to_be_done_is_shown_and_survives_compaction() {
    const OPEN: &str = "Your list of what is to be done, as it stood when this turn began:\n- [x] read it\n- [ ] mend it (in progress)";
    let mut harness = NativeHarness::start().await;
    let todo = |items: Value| Answer::calls([Call::new("t", "todo", &json!({"items": items}))]);
    let items = json!([
        {"text": "read it", "status": "completed"},
        {"text": "mend it", "status": "in_progress"},
    ]);
    let turn = harness.talk("mend it", [todo(items.clone()), ends()]).await;
    let checklist = "- [x] read it\n- [ ] mend it (in progress)\n";
    assert_eq!(harness.last_results(), [checklist]);
    assert!(!system(&harness).contains("Your list"));
    let call = &calls_of(&turn)[0];
    assert_eq!(call["displayName"], "Plan");
    assert_eq!(call["_meta"]["toolKind"], "plan");
    assert_eq!(call["pastTenseMessage"], "Plan: 1 of 2 done");
    assert_eq!(call["content"], json!([{"type": "text", "text": checklist}]));
    assert_eq!(call["structuredContent"], json!({"items": items}));

    harness.talk("go on", [ends()]).await;
    assert!(system(&harness).contains(OPEN), "{}", system(&harness));
    harness.talk("/compact", [Answer::streams(["We mend it."])]).await;
    harness.restart().await;
    harness.talk("go on", [ends()]).await;
    assert!(system(&harness).contains(OPEN), "{}", system(&harness));
    let first = harness.last_messages()[0]["content"].to_string();
    assert!(first.contains("We mend it."), "{first}");

    let done = json!([{"text": "mend it", "status": "completed"}]);
    harness.talk("finish", [todo(done), ends()]).await;
    harness.talk("and?", [ends()]).await;
    assert!(!system(&harness).contains("Your list"));
}

#[tokio::test]
async fn the_user_is_asked_and_the_model_hears_the_answer() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "plan"})).await;
    let questions = json!({"questions": [{"question": "Which database?", "options": ["SQLite", "PostgreSQL"]}]});
    let ask = || Answer::calls([Call::new("q", "ask_user", &questions)]);
    harness.model.answers([ask(), ends()]);
    harness.ann.sends_message("choose").await;
    let request = harness.ann.chooses("option-2").await;
    let question = &request["questions"][0];
    assert_eq!(question["message"], "Which database?");
    assert_eq!(question["options"][1]["label"], "PostgreSQL");
    harness.ann.completed_turn().await;
    assert_eq!(harness.last_results(), ["Which database?\nThe user: PostgreSQL\n"]);

    harness.model.answers([ask(), ends()]);
    harness.ann.sends_message("again").await;
    let request = harness.ann.questioned().await;
    let id = request["id"].clone();
    harness
        .ann
        .does(json!({"type": "chat/inputCompleted", "requestId": id, "response": "cancel"}))
        .await;
    let turn = harness.ann.completed_turn().await;
    let heard = harness.last_results().pop().expect("a result");
    assert!(heard.contains("closed the question without an answer"), "{heard}");
    assert_eq!(calls_of(&turn)[0]["success"], false);
}
