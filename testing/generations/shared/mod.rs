//! What a published client of one version does and sees, the same for every version. Whoever includes this names the version's
//! crates `ahp`, `ahp_types` and `ahp_ws`, and its `VERSION`; `host` and `driver` are modules of the test itself.

mod beside;
mod commands;
mod coverage;
mod customizations;
mod directories;
mod files;
mod follower;
mod judge;
mod law;
mod ledger;
mod mirror;
mod outside;
mod turns;
pub mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use follower::{Follower, about};

use super::VERSION;

const SESSION: &str = "scripted:/generations";

fn script() -> Value {
    json!({"scenes": [
        {"when": "^tools", "steps": [
            {"think": ["hm", "..."]},
            {"tool": {"name": "rm", "input_chunks": ["r", "m"], "confirm": "ask", "editable": true,
                "updates": [[{"type": "text", "text": "a"}]], "reconfirm": "really?"}},
            {"tool": {"name": "cat", "confirm_result": true}},
            {"ask": {"message": "who?", "questions": [{"kind": "text", "id": "name", "message": "name?", "required": true}]}},
            {"client_tool": {"name": "open", "input": {}}},
            {"steer": true}, {"notify": "noted"}, {"usage": {"inputTokens": 1}}, {"activity": "busy"},
            {"spawn": {"title": "W", "agent": "w", "steps": [{"think": ["hm"]}, {"tool": {"name": "ls"}}, {"say": ["done"]}]}},
            {"say": ["end"]}]},
        {"when": "^fail", "steps": [{"say": ["begun"]}, {"usage": {"inputTokens": 2}},
            {"fail": {"type": "oops", "message": "it broke", "resumable": true}}, {"say": ["and done"]}]},
        {"when": "^hang", "steps": [{"say": ["start"]}, {"hang": true}]},
        {"when": "^ask", "steps": [{"ask": {"message": "who?", "questions": [{"kind": "text", "id": "name", "message": "name?"}]}}]},
        {"steps": [{"say": ["ok"]}]},
    ]})
}

/// A plugin as a client of this version says it: no type up to 0.9, one flag up to 0.7.
fn plugin() -> Value {
    let mut plugin = json!({"id": "c", "uri": "file:///c", "name": "C"});
    if VERSION < "0.8" {
        plugin["enabled"] = json!(true);
    }
    if VERSION >= "1.0" {
        plugin["type"] = json!("plugin");
    }
    plugin
}

/// Which runs were played in this process.
static PLAYED: Mutex<BTreeMap<&str, Arc<OnceCell<()>>>> = Mutex::new(BTreeMap::new());

/// Plays a run unless somebody did, or does: then it waits for that.
async fn play<Playing>(name: &'static str, run: impl FnOnce() -> Playing)
where
    Playing: Future<Output = ()>,
{
    let played = {
        let mut played = PLAYED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(played.entry(name).or_default())
    };
    played.get_or_init(run).await;
}

/// Every run is a test, and all of them together are what `coverage` judges.
macro_rules! runs {
    ($($module:ident: $($run:ident),+;)+) => {
        $($(
            #[tokio::test]
            async fn $run() {
                play(stringify!($run), $module::$run).await;
            }
        )+)+

        async fn play_all() {
            $($(play(stringify!($run), $module::$run).await;)+)+
        }
    };
}

runs! {
    turns:
        every_step_of_a_turn_is_followed,
        queues_cuts_and_forks_are_followed,
        errors_resumes_and_cancels_of_others_are_followed,
        a_client_that_comes_back_sees_what_it_missed,
        lists_pages_and_older_words_are_answered;
    beside:
        annotations_are_followed,
        terminals_are_followed,
        changesets_are_followed,
        what_a_session_has_beside_its_chats_is_followed,
        the_root_and_watches_are_followed_and_results_are_read;
    customizations:
        customizations_are_followed,
        mcp_servers_and_sign_ins_are_followed;
    directories:
        working_directories_are_followed,
        chats_beside_others_are_followed;
    files:
        files_are_used,
        files_of_the_client_are_used;
}
