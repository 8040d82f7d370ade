//! That the runs of this version leave nothing out: every action that it knows was followed by its reducers, every one that its clients
//! may dispatch was dispatched by its client, every request was asked, and every one of the host answered. What cannot be is listed with the reason, and nothing else is.

use std::collections::BTreeSet;

use laws::generation_of;
use laws::wire::action::AllowedSender;
use laws::wire::compat;
use laws::wire::methods::{ClientNotification, HostRequest, Method};
use laws::wire::{ActionKind, Generation};
use serde_json::json;

use super::super::VERSION;
use super::super::ahp_types::actions::ActionType;
use super::{ledger, play_all};

/// Something that no run shows.
struct Unshown {
    name: &'static str,
    reason: &'static str,
}

const fn unshown(name: &'static str, reason: &'static str) -> Unshown {
    Unshown { name, reason }
}

const NO_AUTOMATIONS: &str = "this host has no automations";
const NO_CANVASES: &str = "this host has no canvases";
const NO_BACKGROUND_WORK: &str =
    "this host tells of work in the background by terminals and workers' chats";

/// Actions that the host never sends.
const NEVER_HEARD: [Unshown; 16] = [
    unshown("session/serverToolsChanged", "agents do not tell clients their tools"),
    unshown("session/activeClientToolsChanged", "0.4: told as `session/activeClientChanged`"),
    unshown("chat/backgroundWorkSet", NO_BACKGROUND_WORK),
    unshown("chat/backgroundWorkRemoved", NO_BACKGROUND_WORK),
    unshown("chat/changesetsChanged", "changesets are a session's, not a chat's"),
    unshown("chat/canvasesChanged", NO_CANVASES),
    unshown("canvas/stateChanged", NO_CANVASES),
    unshown("automation/createRequested", NO_AUTOMATIONS),
    unshown("automation/updateRequested", NO_AUTOMATIONS),
    unshown("automation/set", NO_AUTOMATIONS),
    unshown("automation/removed", NO_AUTOMATIONS),
    unshown("automationRun/lifecycleChanged", NO_AUTOMATIONS),
    unshown("automationRun/sessionSet", NO_AUTOMATIONS),
    unshown("automationRun/sessionRemoved", NO_AUTOMATIONS),
    unshown("automationRun/primarySessionChanged", NO_AUTOMATIONS),
    unshown("automationRun/cancelRequested", NO_AUTOMATIONS),
];

/// Actions that clients may dispatch, on channels that the host does not have.
const NEVER_SENT: [Unshown; 4] = [
    unshown("automation/createRequested", NO_AUTOMATIONS),
    unshown("automation/updateRequested", NO_AUTOMATIONS),
    unshown("automation/removed", NO_AUTOMATIONS),
    unshown("automationRun/cancelRequested", NO_AUTOMATIONS),
];

/// Requests that the host answers with -32601 (`errors.rs`).
const NEVER_ASKED: [Unshown; 3] = [
    unshown("listAutomationTriggerDefinitions", NO_AUTOMATIONS),
    unshown("runAutomation", NO_AUTOMATIONS),
    unshown("fetchAutomationRuns", NO_AUTOMATIONS),
];

/// Requests that the host does not send.
const NEVER_ANSWERED: [Unshown; 1] = [unshown(
    "createResourceWatch",
    "what a watch tells is heard by `subscribe`, which clients cannot be asked",
)];

/// Names that a version had for what is called otherwise now, and whether its clients may dispatch it.
const OLDER_NAMES: [(&str, Generation, bool); 5] = [
    ("session/activeClientChanged", Generation::V0_4, true),
    ("session/activeClientToolsChanged", Generation::V0_4, true),
    ("session/modelChanged", Generation::V0_4, true),
    ("session/agentChanged", Generation::V0_4, true),
    ("changeset/filesReviewedChanged", Generation::V0_5_2, false),
];

type Names = BTreeSet<&'static str>;

/// Every action that this version knows, and those of them that its clients may dispatch.
fn actions() -> (Names, Names) {
    let generation = generation_of(VERSION);
    let published: Vec<ActionKind> =
        ActionKind::all().filter(|kind| kind.is_published()).filter(|kind| compat::knows(generation, *kind)).collect();
    let older = OLDER_NAMES.iter().filter(|(_, of, _)| *of == generation);
    let mut all: Names = published.iter().map(|kind| kind.name()).collect();
    all.extend(older.clone().map(|(name, ..)| *name));
    let mut sent: Names = published.iter().filter(|kind| kind.sender() != AllowedSender::Host).map(|kind| kind.name()).collect();
    sent.extend(older.filter(|(.., is_sent)| *is_sent).map(|(name, ..)| *name));
    (all, sent)
}

/// What this version's clients may ask and notify of; extensions are not theirs.
fn methods() -> Names {
    let generation = generation_of(VERSION);
    let methods = Method::ALL.iter().filter(|method| compat::has_method(generation, **method)).map(|method| method.name());
    let mut names: Names = methods.filter(|name| !name.starts_with("x-")).collect();
    names.extend(ClientNotification::ALL.iter().map(|each| each.name()));
    names
}

/// What is wrong: something that was not shown and is not listed, or the other way round.
fn compare(what: &str, known: &Names, shown: &BTreeSet<String>, listed: &[Unshown]) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in known {
        let listed = listed.iter().find(|each| each.name == *name);
        match (shown.contains(*name), listed) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(listed)) => wrong
                .push(format!("{VERSION}: {name} was {what}, and is listed: {}", listed.reason)),
            (false, None) => wrong.push(format!("{VERSION}: {name} was never {what}")),
        }
    }
    let unknown =
        shown.iter().filter(|name| !known.contains(name.as_str()) && !name.starts_with("x-"));
    wrong.extend(unknown.map(|name| format!("{VERSION}: {name} was {what}, and is not known")));
    wrong
}

/// Plays every run that was not played yet, and waits for those that are.
#[tokio::test]
async fn nothing_that_this_version_has_is_left_out() {
    play_all().await;
    let ledger = ledger::open().clone();
    let (heard, sent) = actions();
    let mut wrong = compare("followed", &heard, &ledger.followed, &NEVER_HEARD);
    wrong.extend(compare("dispatched", &sent, &ledger.sent, &NEVER_SENT));
    wrong.extend(compare("asked", &methods(), &ledger.asked, &NEVER_ASKED));
    if VERSION >= "0.5.2" {
        // Published clients before it answer nothing.
        let requests = HostRequest::ALL.iter().map(|request| request.name());
        let (requests, answered) = (requests.collect(), &ledger.answered);
        wrong.extend(compare("answered", &requests, answered, &NEVER_ANSWERED));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The host's table of actions says of each name what the published types say of it.
#[test]
fn the_table_of_actions_is_that_of_this_version() {
    let (known, _) = actions();
    let published = ActionKind::all().filter(|kind| kind.is_published());
    let names = published.map(ActionKind::name);
    for name in names.chain(OLDER_NAMES.iter().map(|(name, ..)| *name)) {
        let read: Result<ActionType, _> = serde_json::from_value(json!(name));
        // Since 0.9 what is not known is kept.
        let is_known = read.is_ok_and(|read| !format!("{read:?}").starts_with("Unknown"));
        assert_eq!(known.contains(name), is_known, "{VERSION} {name}");
    }
}

/// Names that are listed and that no version has would excuse nothing.
#[test]
fn what_is_listed_is_there() {
    let all: BTreeSet<&str> = ActionKind::all().map(ActionKind::name).collect();
    let older: BTreeSet<&str> = OLDER_NAMES.iter().map(|(name, ..)| *name).collect();
    for listed in NEVER_HEARD.iter().chain(&NEVER_SENT) {
        assert!(all.contains(listed.name) || older.contains(listed.name), "{}", listed.name);
    }
    for listed in &NEVER_ASKED {
        assert!(Method::from_name(listed.name).is_some(), "{}", listed.name);
    }
}
