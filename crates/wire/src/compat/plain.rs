//! How changesets, annotations and terminals looked to older clients: what the steps of several versions say of them.

use serde_json::{Value, json};

use super::shape::{action, object_mut, objects_mut, text};
use super::{AfterAction, Receiving, closed_enums};
use crate::action::ChannelKind;
use crate::{ActionKind, Object};

/// What `changeset/filesReviewChanged` was called when only hosts sent it.
const FILES_REVIEWED: &str = "changeset/filesReviewedChanged";

/// Whether the step to 0.8 changes an action.
pub(super) fn changes_in_0_8(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::RootTerminalsChanged
            | ActionKind::ChangesetStatusChanged
            | ActionKind::ChangesetContentChanged
            | ActionKind::ChangesetOperationsChanged
            | ActionKind::ChangesetOperationStatusChanged
            | ActionKind::AnnotationsSet
            | ActionKind::AnnotationsUpdated
    )
}

/// An annotation named a turn where it has an origin now, a terminal that ended an exit code where it has a lifecycle, and
/// changesets had fewer words for what they do.
pub(super) fn down_action_to_0_8(sent: &mut Object, after: AfterAction) {
    match super::shape::kind_of(sent) {
        ActionKind::RootTerminalsChanged => down_terminals(sent),
        ActionKind::ChangesetStatusChanged => closed_enums::fit_changeset_status(sent),
        ActionKind::ChangesetContentChanged => {
            closed_enums::fit_operations(sent);
            // New content took the error away, unless it said it again. Where it is replayed, nothing failed since.
            if let AfterAction::Changeset(changeset) = after
                && let Some(error) = &changeset.error
            {
                sent.insert("error".to_owned(), error.clone());
            }
        }
        ActionKind::ChangesetOperationsChanged => closed_enums::fit_operations(sent),
        ActionKind::ChangesetOperationStatusChanged => closed_enums::fit_operation_status(sent),
        ActionKind::AnnotationsSet => {
            if let Some(annotation) = object_mut(sent, "annotation") {
                down_origin(annotation, true);
            }
        }
        ActionKind::AnnotationsUpdated => {
            let has_origin = sent.get("origin").is_some_and(Value::is_object);
            down_origin(sent, has_origin);
        }
        _ => {}
    }
}

pub(super) fn down_state_to_0_8(kind: ChannelKind, state: &mut Object) {
    match kind {
        ChannelKind::Changeset => {
            closed_enums::fit_changeset_status(state);
            closed_enums::fit_operations(state);
        }
        ChannelKind::Terminal => down_lifecycle(state),
        ChannelKind::Annotations => {
            for annotation in objects_mut(state, "annotations") {
                down_origin(annotation, true);
            }
        }
        // Watches were the same, and the others are no plain channels.
        ChannelKind::ResourceWatch
        | ChannelKind::Root
        | ChannelKind::Session
        | ChannelKind::Chat
        | ChannelKind::Automations
        | ChannelKind::AutomationRun
        | ChannelKind::Canvas => {}
    }
}

/// The terminals that the root lists.
pub(super) fn down_terminals(holder: &mut Object) {
    for terminal in objects_mut(holder, "terminals") {
        down_lifecycle(terminal);
    }
}

fn down_lifecycle(terminal: &mut Object) {
    if let Some(lifecycle) = terminal.shift_remove("lifecycle")
        && let Some(code) = lifecycle.get("exitCode")
    {
        terminal.insert("exitCode".to_owned(), code.clone());
    }
}

fn down_origin(holder: &mut Object, is_required: bool) {
    let origin = holder.shift_remove("origin");
    let turn = origin
        .and_then(|mut origin| origin.get_mut("turnId").map(Value::take))
        .filter(Value::is_string);
    if let Some(turn) = turn.or_else(|| is_required.then(|| json!(""))) {
        holder.insert("turnId".to_owned(), turn);
    }
}

/// An older client's annotation belongs to the session of its channel; its claim for a session to that session's own chat.
pub(super) fn up_action_from_0_8(sent: &mut Object, receiving: &Receiving) {
    match super::shape::kind_of(sent) {
        ActionKind::AnnotationsSet => {
            if let Some(annotation) = object_mut(sent, "annotation") {
                up_origin(annotation, receiving);
            }
        }
        ActionKind::AnnotationsUpdated if sent.contains_key("turnId") => {
            up_origin(sent, receiving);
        }
        ActionKind::TerminalClaimed => {
            // Of a session that is not in memory no chat is known: the claim is refused for that.
            up_claim(sent, receiving.default_chat.unwrap_or_default());
        }
        _ => {}
    }
}

/// A claim for a session named no chat.
pub(super) fn up_claim(holder: &mut Object, default_chat: &str) {
    if let Some(claim) = object_mut(holder, "claim")
        && text(claim, "kind") == Some("session")
    {
        claim.entry("chat").or_insert(json!(default_chat));
    }
}

fn up_origin(holder: &mut Object, receiving: &Receiving) {
    let turn = holder.shift_remove("turnId");
    let turn = turn.filter(|turn| turn.as_str().is_some_and(|turn| !turn.is_empty()));
    let mut origin = json!({"session": receiving.owner});
    if let Some(turn) = turn {
        origin["turnId"] = turn;
    }
    holder.entry("origin").or_insert(origin);
}

/// Between 0.5.2 and 0.6 the review of files got another name.
pub(super) fn down_review_to_0_5_2(sent: &mut Object) {
    let fields = [
        ("fileIds", sent.shift_remove("files").unwrap_or_default()),
        ("reviewed", sent.shift_remove("reviewed").unwrap_or_default()),
    ];
    *sent = action(FILES_REVIEWED, &fields);
}

/// Before 0.5.2 there was none: the files are told whole. Whether it was one.
pub(super) fn down_review_to_0_5_1(
    sent: &Object,
    after: AfterAction,
    out: &mut Vec<Object>,
) -> bool {
    if text(sent, "type") != Some(FILES_REVIEWED) {
        return false;
    }
    let ids = sent.get("fileIds").and_then(Value::as_array);
    if let AfterAction::Changeset(changeset) = after {
        let ids = ids.into_iter().flatten().filter_map(Value::as_str);
        for file in ids.filter_map(|id| changeset.file(id)) {
            let fields = [("file", file.clone())];
            out.push(action(ActionKind::ChangesetFileSet.name(), &fields));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::needs_state;
    use super::super::tests::down;
    use super::*;
    use crate::Generation;
    use crate::state::ChangesetState;

    #[test]
    fn reviewed_files_had_another_name_and_before_that_were_told_whole() {
        let file = json!({"id": "f", "edit": {}, "reviewed": true});
        let state =
            ChangesetState::from_value(json!({"status": "ready", "files": [file]})).unwrap();
        let after = AfterAction::Changeset(&state);
        let sent =
            json!({"type": "changeset/filesReviewChanged", "files": ["f"], "reviewed": true});
        assert_eq!(down(Generation::V0_6, sent.clone(), after), vec![sent.clone()]);
        assert_eq!(
            down(Generation::V0_5_2, sent.clone(), after),
            [json!({"type": "changeset/filesReviewedChanged", "fileIds": ["f"], "reviewed": true})]
        );
        for generation in [Generation::V0_5_1, Generation::V0_4] {
            assert_eq!(
                down(generation, sent.clone(), after),
                [json!({"type": "changeset/fileSet", "file": file})]
            );
            assert!(needs_state(generation, ActionKind::ChangesetFilesReviewChanged));
        }
    }
}
