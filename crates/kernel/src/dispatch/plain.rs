//! May a client do this to these annotations, this changeset or this terminal?

use serde_json::Value;
use wire::action::{AnnotationsAction, ChangesetAction, TerminalAction};
use wire::state::{AnnotationsState, TerminalState};
use wire::{Action, ChannelUri, bounds};

use crate::changesets::REVIEW;
use crate::channels::PlainChannel;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::state::Kernel;

/// Ids are the client's, threads are never empty, and all of it stays within bounds (H-290).
pub(super) fn annotations(
    plain: &PlainChannel,
    verb: AnnotationsAction,
    action: &Action,
    limits: &Limits,
) -> Result<(), Refusal> {
    let (Some(state), Some(session)) = (plain.state().annotations(), plain.session()) else {
        return Err(Refusal::because("this channel holds no annotations"));
    };
    match verb {
        AnnotationsAction::Set => {
            let annotation = action.get("annotation").unwrap_or(&Value::Null);
            check_annotation(annotation, session)?;
            check_room(state, annotation, limits)
        }
        AnnotationsAction::Updated => {
            if let Some(origin) = action.present("origin") {
                check_origin(origin, session)?;
            }
            let fields = ["origin", "resource", "range"].into_iter();
            let added: Vec<_> = fields.filter_map(|field| action.present(field)).collect();
            if added.is_empty() {
                // to resolve one takes no room
                Ok(())
            } else {
                check_bytes(state, added.into_iter().map(bounds::bytes_of).sum(), limits)
            }
        }
        AnnotationsAction::Removed => Ok(()),
        AnnotationsAction::EntrySet => {
            let entry = action.get("entry").unwrap_or(&Value::Null);
            if entry["id"].as_str().is_none_or(str::is_empty) {
                return Err(Refusal::because("an entry has an `id` that is not empty"));
            }
            check_bytes(state, bounds::bytes_of(entry), limits)
        }
        AnnotationsAction::EntryRemoved => {
            let annotation = action.text("annotationId");
            let annotation = annotation.and_then(|id| state.annotation(id));
            let entry = action.text("entryId");
            let is_last = annotation.is_some_and(|annotation| {
                annotation.entries.len() == 1
                    && annotation.entries.first().map(|last| last.id.as_str()) == entry
            });
            if is_last {
                Err(Refusal::because(
                    "an annotation has at least one entry; send `annotations/removed` instead",
                ))
            } else {
                Ok(())
            }
        }
    }
}

fn check_annotation(annotation: &Value, session: &ChannelUri) -> Result<(), Refusal> {
    if annotation["id"].as_str().is_none_or(str::is_empty) {
        return Err(Refusal::because("an annotation has an `id` that is not empty"));
    }
    check_origin(&annotation["origin"], session)?;
    let entries = annotation["entries"].as_array();
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
        return Err(Refusal::because("an annotation has at least one entry"));
    };
    let mut ids = std::collections::BTreeSet::new();
    for entry in entries {
        let id = entry["id"].as_str().unwrap_or("");
        if id.is_empty() || !ids.insert(id) {
            return Err(Refusal::because(
                "each entry of an annotation has an `id` of its own that is not empty",
            ));
        }
    }
    Ok(())
}

fn check_origin(origin: &Value, session: &ChannelUri) -> Result<(), Refusal> {
    if origin["session"] == session.as_str() {
        Ok(())
    } else {
        Err(Refusal(format!(
            "`origin.session` must be the session that this channel belongs to: {session}"
        )))
    }
}

/// All annotations travel in every snapshot of their channel.
fn check_room(
    state: &AnnotationsState,
    annotation: &Value,
    limits: &Limits,
) -> Result<(), Refusal> {
    let most = limits.annotations_max;
    let id = annotation["id"].as_str().unwrap_or("");
    if state.annotation(id).is_none() && state.annotations.len() >= most {
        return Err(Refusal(format!("a session has at most {most} annotations (annotations_max)")));
    }
    check_bytes(state, bounds::bytes_of(annotation), limits)
}

fn check_bytes(state: &AnnotationsState, added: usize, limits: &Limits) -> Result<(), Refusal> {
    let most = limits.annotations_bytes_max;
    if state.size_hint() + added > most {
        Err(Refusal(format!(
            "the annotations of a session have at most {most} bytes together (annotations_bytes_max)"
        )))
    } else {
        Ok(())
    }
}

/// Only a changeset that offers reviews takes them (H-288).
pub(super) fn changeset(plain: &PlainChannel, verb: ChangesetAction) -> Result<(), Refusal> {
    match verb {
        ChangesetAction::FilesReviewChanged => {
            if plain.private().get(REVIEW) == Some(&Value::Bool(true)) {
                Ok(())
            } else {
                Err(Refusal::because("the files of this changeset are not reviewed"))
            }
        }
    }
}

/// Only who holds a terminal types into it; a session's can be taken over, another client's cannot (G-56, H-273, H-274).
pub(super) fn terminal(
    kernel: &Kernel,
    state: &TerminalState,
    client_id: &str,
    verb: TerminalAction,
    action: &Action,
) -> Result<(), Refusal> {
    let is_holder = state.holder() == Some(client_id);
    match verb {
        TerminalAction::Claimed => {
            let held_by_other = state.holder().filter(|_| !is_holder);
            if held_by_other.is_some_and(|other| kernel.peers().is_connected(other)) {
                return Err(Refusal::because("another client holds this terminal"));
            }
            check_claim(kernel, client_id, action.get("claim").unwrap_or(&Value::Null))
        }
        TerminalAction::Input | TerminalAction::Resized => match (is_holder, state.is_running()) {
            (true, true) => Ok(()),
            (true, false) => Err(Refusal::because("the process of this terminal has ended")),
            (false, _) => Err(not_held()),
        },
        TerminalAction::TitleChanged | TerminalAction::Cleared => {
            if is_holder {
                Ok(())
            } else {
                Err(not_held())
            }
        }
    }
}

fn not_held() -> Refusal {
    Refusal::because("you do not hold this terminal; send `terminal/claimed` first")
}

/// A client claims for itself, or gives the terminal to a chat of a session.
fn check_claim(kernel: &Kernel, client_id: &str, claim: &Value) -> Result<(), Refusal> {
    match claim["kind"].as_str() {
        Some("client") if claim["clientId"] == client_id => Ok(()),
        Some("client") => Err(Refusal::because(
            "a client may only claim a terminal for itself: `clientId` must be its own",
        )),
        Some("session") => {
            let session = claim["session"].as_str().unwrap_or("");
            let session = ChannelUri::parse(session).ok().and_then(|uri| kernel.find_session(&uri));
            let chat = claim["chat"].as_str().unwrap_or("");
            if session.is_some_and(|session| session.state().chat(chat).is_some()) {
                Ok(())
            } else {
                Err(Refusal::because(
                    "a terminal is given to a chat of a session that is open here",
                ))
            }
        }
        _ => Err(Refusal::because("`claim.kind` is `client` or `session`")),
    }
}
