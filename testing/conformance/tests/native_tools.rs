//! The tools of the native agent in a conversation: what the model gets of each, and what the chat shows.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use conformance::native::{NativeHarness, calls_of};
use serde_json::json;
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
                    Call::new(
                        "b",
                        "read",
                        &json!({"path": "a.txt", "offset": 2, "limit": 1}),
                    ),
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
    assert_eq!(
        calls[3]["content"][1]["diff"],
        json!({"added": 2, "removed": 2})
    );
}
