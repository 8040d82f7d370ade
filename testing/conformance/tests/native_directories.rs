//! Several working directories of the native agent: its tools work in all of them, and its prompt names them (G-57).

use std::fs;

use conformance::native::{NativeHarness, SESSION, ends, error_of};
use serde_json::{Value, json};
use testkit::{Answer, Call};

fn system(harness: &NativeHarness) -> String {
    let requests = harness.model.requests();
    let body = requests.last().expect("the model was asked").json();
    let text = body["messages"][0]["content"].as_str();
    text.expect("a text").to_owned()
}

/// Sessions may work beside the first directory, too.
fn add_root_above(config: &mut host::Config) {
    let above = config.workspaces[0].parent().unwrap().to_owned();
    config.workspaces.push(above);
}

async fn changes(harness: &mut NativeHarness, kind: &str, directory: &str, most: usize) {
    let action = json!({"type": format!("session/workingDirectory{kind}"), "directory": directory});
    harness.ann.does_in(SESSION, action).await;
    let has =
        |state: &Value| state["workingDirectories"].as_array().is_some_and(|all| all.len() == most);
    harness.ann.until_session(SESSION, has).await;
}

#[tokio::test]
async fn tools_work_in_every_directory_and_the_prompt_names_them() {
    let approvals = json!({"approvals": "accept-edits"});
    let mut harness = NativeHarness::start_with_settings(approvals, |_| {}, add_root_above).await;
    let work = harness.work();
    let more = work.with_file_name("more");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("b.txt"), "one\n").unwrap();
    fs::write(more.join("AGENTS.md"), "Be brief over there.").unwrap();
    let file = more.join("b.txt").display().to_string();
    let read = || Answer::calls([Call::new("a", "read", &json!({"path": file}))]);
    harness.talk("look", [read(), ends()]).await;
    let refused = harness.last_results().remove(0);
    assert!(refused.contains("outside the working director"), "{refused}");
    assert!(!system(&harness).contains(&more.display().to_string()));

    let uri = format!("file://{}", more.display());
    changes(&mut harness, "Set", &uri, 2).await;
    let edit = json!({"path": file, "edits": [{"old": "one", "new": "two"}]});
    let edit = Answer::calls([Call::new("b", "edit", &edit)]);
    let turn = harness.talk("and now", [read(), edit, ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(fs::read_to_string(more.join("b.txt")).unwrap(), "two\n");
    let prompt = system(&harness);
    assert!(prompt.contains(&format!("Working directory: {}", work.display())), "{prompt}");
    assert!(prompt.contains(&format!("Also: {}", more.display())), "{prompt}");
    assert!(prompt.contains("Be brief over there."), "{prompt}");
    harness.restart().await;
    let turn = harness.talk("after a restart", [read(), ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");

    // One that lies outside is recorded, and turns say so until it is gone (G-23).
    changes(&mut harness, "Set", "file:///etc", 3).await;
    let turn = harness.talk("in there?", []).await;
    assert_eq!(error_of(&turn)["error"]["errorType"], "workingDirectoryNotAllowed");
    changes(&mut harness, "Removed", "file:///etc", 2).await;
    changes(&mut harness, "Removed", &uri, 1).await;
    harness.talk("and there?", [read(), ends()]).await;
    let refused = harness.last_results().pop().unwrap();
    assert!(refused.contains("outside the working director"), "{refused}");
}

#[tokio::test]
async fn the_agent_says_that_it_takes_several() {
    let harness = NativeHarness::start().await;
    let params = json!({"channel": "ahp-root://"});
    let root = harness.ann.connection.request("subscribe", params).await.unwrap();
    let root = &root["snapshot"];
    let agents = root["state"]["agents"].as_array().unwrap().clone();
    let native = agents.iter().find(|agent| agent["provider"] == "native").unwrap();
    let several = &native["capabilities"]["multipleWorkingDirectories"];
    assert_eq!(several, &json!({"immutablePrimary": true, "primaryReplacement": true}));
}
