//! Changesets as channels: what is told whole and what file by file, reviews, many at once, and what becomes of them (H-285 to H-289).
//! What published reducers make of it: `conformance::changeset_actions`.

use kernel::{ChangesInput, ChannelId, ComputedChangeset, Input, LookId, TurnChangesReport};
use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};
use wire::ChannelUri;

fn file(name: &str, text: &str) -> Value {
    let uri = format!("file:///home/space/{name}");
    let content = format!("ahp-content:/sha256/{:064x}/{name}", text.len());
    json!({"id": uri, "edit": {"diff": {"added": 1, "removed": 0},
        "after": {"uri": uri, "content": {"uri": content}}}})
}

fn operation(id: &str) -> Value {
    json!({"id": id, "label": id, "scopes": ["changeset"], "status": "idle"})
}

fn computed(s: &mut Scenario, changeset: &str, files: Vec<Value>, operations: &[&str]) {
    let computed = ComputedChangeset {
        files,
        operations: operations.iter().map(|id| operation(id)).collect(),
        problem: None,
    };
    s.world().input(Input::Changes(ChangesInput::Computed {
        changeset: ChannelUri::parse(changeset).unwrap(),
        computed: Ok(computed),
    }));
    s.settles();
}

/// A session whose catalogue is known, and a client that watches one of its changesets.
fn opens(s: &mut Scenario) -> (ScenarioClient, String) {
    let ann = s.client("ann").opens_chat();
    let session = ann.session();
    s.world().input(Input::Changes(ChangesInput::GitFound {
        session: ChannelUri::parse(&session).unwrap(),
        git: Some(json!({"branchName": "main"})),
    }));
    s.settles();
    let changeset = format!("{session}/changeset/uncommitted");
    ann.watches(&changeset);
    ann.received_actions();
    (ann, changeset)
}

fn many(count: usize) -> Vec<Value> {
    (0..count).map(|n| file(&format!("f{n:03}"), "x")).collect()
}

fn ids(state: &Value) -> Vec<String> {
    let files = state["files"].as_array().unwrap().iter();
    let mut ids: Vec<String> = files.map(|file| file["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Whoever looks at a changeset has it computed anew, and the check of all channels looks at those that somebody watches.
fn leaves(s: &mut Scenario, ann: &ScenarioClient, changesets: &[String]) {
    for changeset in changesets {
        ann.unwatches(changeset);
    }
    s.settles();
}

// H-289
#[test]
fn the_first_look_is_told_whole_and_what_little_changes_file_by_file() {
    let mut s = Scenario::new();
    let (ann, changeset) = opens(&mut s);
    computed(&mut s, &changeset, many(100), &["stage"]);
    let first = ["changeset/contentChanged", "changeset/statusChanged"];
    assert_eq!(ann.received_actions(), first);
    // One is new, one is something else, one is gone.
    let mut files = many(100);
    files.remove(7);
    files[3] = file("f003", "longer");
    files.push(file("new", "x"));
    computed(&mut s, &changeset, files.clone(), &["stage"]);
    let small = ["changeset/fileRemoved", "changeset/fileSet", "changeset/fileSet"];
    assert_eq!(ann.received_actions(), small);
    let state = ann.sees(&changeset);
    assert_eq!(ids(&state), ids(&json!({"files": files})));
    // In another order it is the same.
    files.reverse();
    computed(&mut s, &changeset, files.clone(), &["stage"]);
    assert!(ann.received_actions().is_empty());
    computed(&mut s, &changeset, files, &["stage", "commit"]);
    assert_eq!(ann.received_actions(), ["changeset/operationsChanged"]);
    // Most of it.
    computed(&mut s, &changeset, many(10), &["stage", "commit"]);
    assert_eq!(ann.received_actions(), ["changeset/contentChanged"]);
    computed(&mut s, &changeset, Vec::new(), &["stage", "commit"]);
    let gone = vec!["changeset/fileRemoved"; 10];
    assert_eq!(ann.received_actions(), gone);
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    assert!(ids(&ann.sees(&changeset)).is_empty());
    leaves(&mut s, &ann, &[changeset]);
}

// H-288
#[test]
fn a_review_goes_with_the_content_it_was_of() {
    let mut s = Scenario::new();
    let (ann, changeset) = opens(&mut s);
    computed(&mut s, &changeset, many(8), &[]);
    let ids = ["file:///home/space/f001", "file:///home/space/f002"];
    let review = json!({"type": "changeset/filesReviewChanged", "files": ids, "reviewed": true});
    ann.dispatches(&changeset, review);
    s.settles();
    let mut files = many(8);
    files[1] = file("f001", "longer");
    computed(&mut s, &changeset, files, &[]);
    let state = ann.sees(&changeset);
    let reviewed = |id: &str| {
        let files = state["files"].as_array().unwrap();
        let file = files.iter().find(|file| file["id"] == id).unwrap();
        file["reviewed"] == true
    };
    assert_eq!(ids.map(reviewed), [false, true]);
    leaves(&mut s, &ann, &[changeset]);
}

#[test]
fn a_client_may_watch_a_thousand_changesets_of_turns() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ChannelUri::parse(&ann.session()).unwrap();
    let mut changesets = Vec::new();
    for n in 0..1_000 {
        let changeset = ChannelUri::changeset_of(&session, &format!("turn/t{n}")).unwrap();
        changesets.push(changeset.to_string());
        let changed = TurnChangesReport {
            session: session.clone(),
            chat: ChannelId(1),
            changeset,
            computed: ComputedChangeset {
                files: vec![file(&format!("f{n}"), "x")],
                operations: vec![operation("restore")],
                problem: None,
            },
            totals: None,
            look: None,
        };
        let changed = ChangesInput::FilesChanged(Box::new(changed));
        s.world().input(Input::Changes(changed));
    }
    s.settles();
    for changeset in &changesets {
        let answer = ann.watches(changeset);
        let state = &answer["snapshot"]["state"];
        assert_eq!(state["status"], "ready", "a lookup, nothing is computed");
        assert_eq!(state["files"].as_array().unwrap().len(), 1);
    }
    // None of them is in the way of a turn.
    ann.sends_message("hello");
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    assert_eq!(ids(&ann.sees(&changesets[999])).len(), 1);
    leaves(&mut s, &ann, &changesets);
}

#[test]
fn a_turn_of_which_nothing_is_known_says_why() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ChannelUri::parse(&ann.session()).unwrap();
    let uri = ChannelUri::changeset_of(&session, "turn/t").unwrap();
    let mut changed = TurnChangesReport {
        session,
        chat: ChannelId(1),
        changeset: uri.clone(),
        computed: ComputedChangeset {
            files: Vec::new(),
            operations: vec![operation("restore")],
            problem: Some("git did not finish".to_owned()),
        },
        totals: None,
        look: None,
    };
    let tell = |s: &mut Scenario, changed: &TurnChangesReport| {
        let changed = ChangesInput::FilesChanged(Box::new(changed.clone()));
        s.world().input(Input::Changes(changed));
        s.settles();
    };
    tell(&mut s, &changed);
    let answer = ann.watches(uri.as_str());
    let state = &answer["snapshot"]["state"];
    assert_eq!(state["status"], "error");
    assert_eq!(state["error"]["message"], "git did not finish");
    // It was resumed, and more is known.
    changed.computed.problem = None;
    changed.computed.files = many(1);
    tell(&mut s, &changed);
    let state = ann.sees(uri.as_str());
    assert_eq!((&state["status"], &state["error"]), (&json!("ready"), &Value::Null));
    leaves(&mut s, &ann, &[uri.to_string()]);
}

/// A command that commits changes no file.
#[test]
fn what_is_watched_is_computed_again_when_the_repository_may_be_another() {
    let mut s = Scenario::new();
    let (ann, changeset) = opens(&mut s);
    computed(&mut s, &changeset, many(2), &["stage"]);
    ann.received_actions();
    let looked = |session: &str| ChangesInput::TreeLooked {
        session: ChannelUri::parse(session).unwrap(),
        look: LookId(1),
    };
    s.world().input(Input::Changes(looked(&ann.session())));
    s.world().input(Input::Changes(looked("ahp-session:/gone")));
    s.settles();
    assert_eq!(ann.received_actions(), ["changeset/statusChanged"]);
    assert_eq!(ann.sees(&changeset)["status"], "recomputing");
    computed(&mut s, &changeset, Vec::new(), &["stage"]);
    assert_eq!(ann.sees(&changeset)["status"], "ready");
    leaves(&mut s, &ann, &[changeset]);
}

// G-54
#[test]
fn whoever_ends_a_session_is_told_that_its_worktree_is_kept() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    let session = ann.session();
    let made = ChangesInput::WorktreeMade {
        session: ChannelUri::parse(&session).unwrap(),
        directory: "file:///home/space".to_owned(),
        replacement: "file:///home/space/.greenroom/worktrees/a".to_owned(),
        facts: json!({"top": "file:///home/space/.greenroom/worktrees/a", "branch": "b", "base": "main"}),
    };
    s.world().input(Input::Changes(made));
    s.settles();
    let why = "the worktree is kept: 2 files are not committed";
    s.world().worktree_kept = Some(why.to_owned());
    let answer = ann.asks("disposeSession", json!({"channel": session}));
    let told = json!({"_meta": {"greenroom.message": why}});
    assert_eq!(answer.unwrap(), told);
    // A session without one has nothing to say.
    let answer = bob.asks("disposeSession", json!({"channel": bob.session()}));
    assert_eq!(answer.unwrap(), Value::Null);
}
