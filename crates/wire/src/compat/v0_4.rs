//! Between 0.4 and 0.5: a session's entry in the list is part of its state, with times in milliseconds; one client is active in
//! it; a model and a custom agent are chosen for the session, not for each message; choices of settings are texts.
//!
//! The choice is held in the session's `_meta`, where clients of every version may see it, and is copied into the messages of
//! clients that cannot say it themselves.

use serde_json::{Value, json};

use super::shape::{action, kind_of, object_mut, objects_mut, text};
use super::{AfterAction, Receiving, SnapshotOf, VersionStep};
use crate::methods::Method;
use crate::{ActionKind, Generation, Object, Timestamp};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_4,
    touches,
    down_action,
    down_state,
    down_summary,
    up_action,
    up_params,
};

/// The field of `_meta`, and of the params of `createSession` and `createChat`, with `model` and `agent` in it.
pub const SELECTION_META: &str = "x-selection";

/// Marks an active client that wants to be the only one, as it was the only one there could be.
pub const ONLY_CLIENT: &str = "x-onlyClient";

/// Whether a choice is one: what is wrong with it if not.
pub fn check_selection(chosen: &Object) -> Result<(), &'static str> {
    let names = |field: &str, by: &str| match chosen.get(field) {
        None | Some(Value::Null) => true,
        Some(chosen) => chosen.get(by).is_some_and(Value::is_string),
    };
    match (names("model", "id"), names("agent", "uri")) {
        (false, _) => Err("`model` must be an object with an `id`"),
        (_, false) => Err("`agent` must be an object with a `uri`"),
        (true, true) => Ok(()),
    }
}

/// The choice that a session's or chat's `_meta` holds.
pub fn selection_of(extra: &Object) -> Option<&Object> {
    extra.get("_meta")?.get(SELECTION_META)?.as_object()
}

fn touches(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::RootAgentsChanged
            | ActionKind::SessionChatAdded
            | ActionKind::SessionActiveClientSet
            | ActionKind::SessionActiveClientRemoved
            | ActionKind::SessionSelectionSet
    )
}

fn down_action(mut sent: Object, after: AfterAction, out: &mut Vec<Object>) {
    match kind_of(&sent) {
        ActionKind::SessionActiveClientSet | ActionKind::SessionActiveClientRemoved => {
            change_active_client(&sent, after, out);
        }
        ActionKind::SessionSelectionSet => {
            if let Some(model) = sent.get("model") {
                let model = [("model", texts_only(model.clone()))];
                out.push(action("session/modelChanged", &model));
            }
            if let Some(agent) = sent.get("agent") {
                let agent = (!agent.is_null()).then(|| ("agent", agent.clone()));
                out.push(action("session/agentChanged", agent.as_slice()));
            }
        }
        ActionKind::RootAgentsChanged => {
            down_agents(&mut sent);
            out.push(sent);
        }
        ActionKind::SessionChatAdded => {
            if let Some(summary) = object_mut(&mut sent, "summary") {
                put_selection(summary);
            }
            out.push(sent);
        }
        _ => out.push(sent),
    }
}

/// The first of the active clients is the one that 0.4 shows.
fn change_active_client(sent: &Object, after: AfterAction, out: &mut Vec<Object>) {
    let AfterAction::Session(session) = after else {
        return; // only sessions have active clients
    };
    let shown = session.active_clients.first();
    let changed = match text(sent, "clientId") {
        // One that left was shown only if it was the first: whoever is first now is shown again, which changes nothing else.
        Some(_) => true,
        None => shown.is_some_and(|shown| {
            Some(&shown["clientId"]) == sent.get("activeClient").map(|set| &set["clientId"])
        }),
    };
    if changed {
        let shown = shown.cloned().map(down_client);
        let fields = shown.map(|shown| ("activeClient", shown));
        out.push(action("session/activeClientChanged", fields.as_slice()));
    }
}

/// The steps above changed the action, not the state it led to: its customizations get their flag here.
fn down_client(client: Value) -> Value {
    let mut holder = Object::from_iter([("activeClients".to_owned(), Value::Array(vec![client]))]);
    let of = SnapshotOf::Root;
    for step in super::STEPS.iter().filter(|step| step.to > Generation::V0_4) {
        (step.down_state)(of, &mut holder);
    }
    let shown = holder.get_mut("activeClients").and_then(|clients| clients.get_mut(0));
    shown.map(Value::take).unwrap_or_default()
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root => {
            down_agents(state);
            down_config(state);
        }
        SnapshotOf::Session { resource, summary } => {
            nest_summary(resource, summary, state);
            if let Some(Value::Array(clients)) = state.shift_remove("activeClients")
                && let Some(first) = clients.into_iter().next()
            {
                state.insert("activeClient".to_owned(), first);
            }
            for chat in objects_mut(state, "chats") {
                put_selection(chat);
            }
            down_config(state);
        }
        SnapshotOf::Chat => put_selection(state),
        SnapshotOf::Plain(_) => {}
    }
}

/// The fields that were those of the summary; its times come from the list of sessions.
fn nest_summary(resource: &str, listed: &Object, state: &mut Object) {
    let mut summary = Object::new();
    summary.insert("resource".to_owned(), json!(resource));
    let moved =
        ["provider", "title", "status", "activity", "project", "workingDirectory", "annotations"];
    for field in moved {
        if let Some(value) = state.shift_remove(field) {
            summary.insert(field.to_owned(), value);
        }
    }
    for field in ["createdAt", "modifiedAt"] {
        if let Some(time) = listed.get(field) {
            summary.insert(field.to_owned(), time.clone());
        }
    }
    if let Some(selection) = selection_of(state) {
        put_chosen(&selection.clone(), &mut summary);
    }
    down_summary(&mut summary);
    state.insert("summary".to_owned(), Value::Object(summary));
}

/// Times as milliseconds; the choice of a model beside them.
fn down_summary(summary: &mut Object) {
    for field in ["createdAt", "modifiedAt"] {
        let time = text(summary, field).and_then(Timestamp::parse_rfc3339);
        if let Some(time) = time {
            summary.insert(field.to_owned(), json!(time.0));
        }
    }
    put_selection(summary);
}

fn put_selection(holder: &mut Object) {
    if let Some(selection) = selection_of(holder).cloned() {
        put_chosen(&selection, holder);
    }
}

fn put_chosen(selection: &Object, holder: &mut Object) {
    if let Some(model) = selection.get("model") {
        holder.insert("model".to_owned(), texts_only(model.clone()));
    }
    if let Some(agent) = selection.get("agent").filter(|agent| !agent.is_null()) {
        holder.insert("agent".to_owned(), agent.clone());
    }
}

/// A selected model with settings that are texts, as they all were.
fn texts_only(mut model: Value) -> Value {
    if let Some(Value::Object(config)) = model.get_mut("config") {
        for value in config.values_mut() {
            *value = json!(as_text(value));
        }
    }
    model
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn down_agents(holder: &mut Object) {
    for agent in objects_mut(holder, "agents") {
        for model in objects_mut(agent, "models") {
            if let Some(schema) = model.get_mut("configSchema") {
                down_schema(schema);
            }
        }
    }
}

fn down_config(state: &mut Object) {
    if let Some(schema) = object_mut(state, "config").and_then(|config| config.get_mut("schema")) {
        down_schema(schema);
    }
}

/// Choices that are no text are told as one.
pub(super) fn down_schema(schema: &mut Value) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return; // a schema without properties has no choices
    };
    for property in properties.values_mut() {
        if let Some(Value::Array(choices)) = property.get_mut("enum") {
            for choice in choices {
                *choice = json!(as_text(choice));
            }
        }
    }
}

fn up_action(sent: &mut Object, receiving: &Receiving) {
    match text(sent, "type") {
        Some("session/activeClientChanged") => {
            let client = sent.shift_remove("activeClient").filter(|client| !client.is_null());
            *sent = match client {
                Some(client) => action(
                    ActionKind::SessionActiveClientSet.name(),
                    &[("activeClient", client), (ONLY_CLIENT, json!(true))],
                ),
                None => {
                    let own = [("clientId", json!(receiving.client_id))];
                    action(ActionKind::SessionActiveClientRemoved.name(), &own)
                }
            };
        }
        Some("session/activeClientToolsChanged") => {
            let clients = receiving.session.map(|session| session.active_clients.iter());
            let own = clients
                .into_iter()
                .flatten()
                .find(|client| client["clientId"] == receiving.client_id);
            let mut client =
                own.cloned().unwrap_or_else(|| json!({"clientId": receiving.client_id}));
            client["tools"] = sent.shift_remove("tools").unwrap_or_default();
            *sent = action(ActionKind::SessionActiveClientSet.name(), &[("activeClient", client)]);
        }
        Some("session/modelChanged") => {
            let model = sent.shift_remove("model").unwrap_or_default();
            *sent = action(ActionKind::SessionSelectionSet.name(), &[("model", model)]);
        }
        Some("session/agentChanged") => {
            let agent = sent.shift_remove("agent").unwrap_or_default();
            *sent = action(ActionKind::SessionSelectionSet.name(), &[("agent", agent)]);
        }
        _ => {}
    }
}

fn up_params(method: Method, params: &mut Object) {
    if !matches!(method, Method::CreateSession | Method::CreateChat) {
        return; // nothing else was created with a model
    }
    let mut selection = Object::new();
    for field in ["model", "agent"] {
        if let Some(chosen) = params.shift_remove(field) {
            selection.insert(field.to_owned(), chosen);
        }
    }
    if let Some(message) = object_mut(params, "initialMessage") {
        for (field, chosen) in &selection {
            message.entry(field).or_insert_with(|| chosen.clone());
        }
    }
    if !selection.is_empty() {
        params.insert(SELECTION_META.to_owned(), Value::Object(selection));
    }
}
