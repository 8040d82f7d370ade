//! Rendering the system prompt: its owner may rewrite what it opted in to, once, within a deadline, and never what is
//! restricted. Whatever goes wrong, the agent gets its sections back as they were (G-33 to G-36).

use std::collections::BTreeMap;

use agent_api::{AgentReply, Section};
use serde_json::{Value, json};
use wire::ext::system_message_transform::{
    self as ext, Carrier, OptIn, SystemMessageTransformParams, SystemMessageTransformResult,
    SystemMessageTransformSection,
};
use wire::state::SessionState;
use wire::{Action, ActionKind, ChannelUri};

use crate::ask_client::ask_client;
use crate::io::{Effect, PeerId, RunId};
use crate::refusal::Refusal;
use crate::rendered::{
    PendingTransform, Rendered, Renderer, Rendering, RequestEnd, Transform, TransformAttempt,
    TransformFailure, TransformSkipped,
};
use crate::requests::Purpose;
use crate::state::{Kernel, Sender, Step};

/// The one client that a render may go through.
struct TransformClient {
    peer: PeerId,
    client_id: String,
    opt_in: OptIn,
}

/// May this client opt in by an action? Only for itself, and only while it is active (G-34).
pub(crate) fn check_opt_in(
    session: &SessionState,
    client_id: &str,
    action: &Action,
) -> Result<(), Refusal> {
    if entry_of(session, client_id).is_none() {
        return Err(Refusal::because("only an active client may opt in to rewriting sections"));
    }
    let listed = action.get("sections").and_then(Value::as_array);
    match listed {
        Some(listed) if listed.iter().all(Value::is_string) => Ok(()),
        _ => Err(Refusal::because("`sections` must be a list of section ids")),
    }
}

fn entry_of<'a>(session: &'a SessionState, client_id: &str) -> Option<&'a Value> {
    let mut entries = session.active_clients.iter();
    entries.find(|entry| entry["clientId"] == client_id)
}

/// A client opts in by the action: the entry that follows says it to every mirror (G-34).
pub(crate) fn opt_in(step: &mut Step, uri: &ChannelUri, action: &Action, sender: &Sender) {
    let session = step.session(uri).state();
    let Some(entry) = entry_of(session, &sender.origin.client_id).cloned() else {
        unreachable!("only an active client may opt in");
    };
    let listed = action
        .get("sections")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let sections: Vec<String> = listed.map(str::to_owned).collect();
    let merged = ext::merge_opt_in(&entry, &sections);
    if merged == entry {
        return step.answer_unchanged(uri, action, Some(sender));
    }
    step.record_extension_action(uri, action, sender);
    let fields = json!({"activeClient": merged});
    step.act_as_host(uri, ActionKind::SessionActiveClientSet, fields);
}

/// An agent put its sections together for the turn it works on.
pub(crate) fn render_for_turn(
    step: &mut Step,
    chat: &ChannelUri,
    run: RunId,
    render: u64,
    before: Vec<Section>,
) {
    let author = step.chat(chat).private().author.clone();
    let author = author.map(|author| author.client_id);
    let rendering = Rendering {
        to: Renderer::Run { run, render },
        chat: step.id_of(chat),
        turn_id: step.active_turn_id(chat),
        before,
    };
    transform(step, chat, author.as_deref(), rendering);
}

/// An agent put its sections together when a session began: no turn runs, so the first client that opted in is asked.
pub(crate) fn render_opening(step: &mut Step, session: &ChannelUri, before: Vec<Section>) {
    let state = step.find_session(session).map(|session| session.state());
    let chat = state.and_then(|state| state.default_chat.as_deref());
    let chat = chat.and_then(|chat| ChannelUri::parse(chat).ok());
    // A session that left memory, or is gone, has nobody to show a prompt to.
    if let Some(chat) = chat.filter(|chat| step.find_chat(chat).is_some()) {
        let rendering = Rendering {
            to: Renderer::Session(session.clone()),
            chat: step.id_of(&chat),
            turn_id: None,
            before,
        };
        transform(step, &chat, None, rendering);
    }
}

/// Lets the owner of a render rewrite it, if there is one that may.
fn transform(step: &mut Step, chat: &ChannelUri, author: Option<&str>, mut rendering: Rendering) {
    mark_restricted(step, chat, &mut rendering.before);
    let Some(owner) = owner_of(step, chat, author) else {
        let outcome = Transform::NotAsked(TransformSkipped::NobodyOptedIn);
        return finish(step, rendering, BTreeMap::new(), outcome);
    };
    let wanted = rewritable(step, &owner.opt_in, &rendering.before);
    if wanted.is_empty() {
        let outcome = Transform::NotAsked(TransformSkipped::NothingToRewrite);
        return finish(step, rendering, BTreeMap::new(), outcome);
    }
    let attempt = TransformAttempt {
        client_id: owner.client_id,
        method: owner.opt_in.carrier.method(),
        sections: wanted.iter().map(|section| section.id.to_string()).collect(),
        ms: 0,
    };
    let params = SystemMessageTransformParams {
        channel: step.chat(chat).session().to_string(),
        sections: wanted.into_iter().map(to_params).collect(),
    };
    let (deadline_ms, method) = (step.limits().transform_deadline_ms, attempt.method);
    let purpose = Purpose::Render(Box::new(PendingTransform { rendering, attempt }));
    let sent = ask_client(step, owner.peer, method, &params, deadline_ms, purpose);
    if let Err(Purpose::Render(unsent)) = sent {
        let PendingTransform { rendering, attempt } = *unsent;
        let outcome = Transform::PassedThrough(attempt, TransformFailure::Busy);
        finish(step, rendering, BTreeMap::new(), outcome);
    }
}

fn to_params(section: &Section) -> (String, SystemMessageTransformSection) {
    let content = section.content.to_string();
    (section.id.to_string(), SystemMessageTransformSection { content })
}

/// The active client that started the turn if it opted in, else the first that did; who is not connected, or is older than the
/// gate, is passed over (G-35).
fn owner_of(kernel: &Kernel, chat: &ChannelUri, author: Option<&str>) -> Option<TransformClient> {
    let session = kernel.session_of(chat).state();
    let author = author.and_then(|author| entry_of(session, author));
    let own = author.and_then(|entry| as_owner(kernel, entry));
    let mut entries = session.active_clients.iter();
    own.or_else(|| entries.find_map(|entry| as_owner(kernel, entry)))
}

fn as_owner(kernel: &Kernel, entry: &Value) -> Option<TransformClient> {
    let client_id = entry["clientId"].as_str()?;
    let peer = kernel.peers().peer_of(client_id)?;
    let ready = kernel.ready(peer)?;
    if kernel.peers().is_gone(peer) || !ext::may_be_asked(ready.version) {
        return None;
    }
    let default = || {
        let sections = ready.transform.clone()?;
        let carrier = Carrier::Extension;
        Some(OptIn { carrier, sections })
    };
    let opt_in = ext::of_entry(entry).or_else(default)?;
    let client_id = client_id.to_owned();
    (!opt_in.sections.is_empty()).then_some(TransformClient { peer, client_id, opt_in })
}

/// Sections of a render that were opted in to and are not restricted.
fn rewritable<'a>(kernel: &Kernel, opt_in: &OptIn, before: &'a [Section]) -> Vec<&'a Section> {
    let wanted = before.iter().filter(|section| {
        opt_in.sections.iter().any(|id| *id == section.id) && !section.restricted
    });
    wanted.take(kernel.limits().transform_sections_max).collect()
}

/// Marks what clients may not read: what is restricted, or not in the agent's catalogue.
fn mark_restricted(kernel: &Kernel, chat: &ChannelUri, sections: &mut [Section]) {
    let agent = kernel.find_agent(&kernel.session_of(chat).state().provider);
    let catalogue = agent.map_or(&[][..], |agent| &agent.sections);
    for section in sections {
        let mut entries = catalogue.iter().filter(|entry| entry.id == section.id);
        section.restricted = !entries.any(|entry| entry.restricted != Some(true));
    }
}

/// The client that was asked to rewrite a render answered, or did not.
pub(crate) fn finish_transform(
    step: &mut Step,
    pending: PendingTransform,
    reply: RequestEnd,
    ms: u64,
) {
    let rendering = pending.rendering;
    let attempt = TransformAttempt { ms, ..pending.attempt };
    match rewritten_sections(step, &attempt, reply) {
        Ok(rewritten) => {
            let outcome = Transform::Rewritten(attempt);
            finish(step, rendering, rewritten, outcome);
        }
        Err(failure) => {
            let outcome = Transform::PassedThrough(attempt, failure);
            finish(step, rendering, BTreeMap::new(), outcome);
        }
    }
}

/// What a client made of the sections it was asked for; what nobody asked for does not count.
fn rewritten_sections(
    kernel: &Kernel,
    asked: &TransformAttempt,
    reply: RequestEnd,
) -> Result<BTreeMap<String, String>, TransformFailure> {
    let value = match reply {
        RequestEnd::Timeout => return Err(TransformFailure::Timeout),
        RequestEnd::PeerGone => return Err(TransformFailure::PeerGone),
        RequestEnd::Error(error) => return Err(TransformFailure::Error(error.code)),
        RequestEnd::Result { bytes, .. } if bytes > kernel.limits().transform_reply_bytes_max => {
            return Err(TransformFailure::TooLarge);
        }
        RequestEnd::Result { value, .. } => value,
    };
    let result: SystemMessageTransformResult =
        serde_json::from_value(value).map_err(|_| TransformFailure::Malformed)?;
    let sections = result.sections.into_iter();
    let sections = sections.filter(|(id, _)| asked.sections.contains(id));
    Ok(sections.map(|(id, section)| (id, section.content)).collect())
}

/// A render is done.
fn finish(
    step: &mut Step,
    rendering: Rendering,
    rewritten: BTreeMap<String, String>,
    outcome: Transform,
) {
    step.upkeep_mut().count_render(outcome.outcome_name());
    let rendered = Rendered {
        chat: rendering.chat,
        turn_id: rendering.turn_id,
        at: step.now(),
        before: rendering.before,
        rewritten,
        transform: outcome,
    };
    let (session, reply) = match rendering.to {
        Renderer::Session(session) => (session, None),
        Renderer::Run { run, render } => {
            let chat = step.runs().chat_of(run);
            let Some(chat) = chat.and_then(|chat| step.find_chat(chat)) else {
                return; // the run was stopped while a client was asked
            };
            let sections = rendered.after();
            let reply = AgentReply::Rendered { render, sections };
            (chat.session().clone(), Some(Effect::Reply { run, reply }))
        }
    };
    // What was rendered is recorded before the agent goes on with it.
    let rendered = Box::new(rendered);
    step.effect(Effect::RecordRender { session, rendered });
    if let Some(reply) = reply {
        step.effect(reply);
    }
}
