//! What a session publishes of what its chats wait for: `inputNeeded` holds exactly the blocks of all its chats (H-220).

use serde_json::{Value, json};

use crate::world::World;

/// The parts of the active turn of a chat.
fn active_parts(chat: &Value) -> impl Iterator<Item = &Value> {
    let parts = chat["activeTurn"]["responseParts"].as_array();
    parts.into_iter().flatten()
}

/// The entry that must stand for a part, without its opaque id; none if the part waits for nothing.
fn entry_of(uri: &str, turn: &Value, part: &Value) -> Option<Value> {
    if part["kind"] == "inputRequest" {
        let open = part.get("response").is_none();
        return open.then(|| json!({"kind": "chatInput", "chat": uri, "request": part["request"]}));
    }
    if part["kind"] != "toolCall" {
        return None;
    }
    let call = &part["toolCall"];
    let entry = |kind: &str| json!({"kind": kind, "chat": uri, "turnId": turn, "toolCall": call});
    match call["status"].as_str()? {
        "pending-confirmation" | "pending-result-confirmation" => Some(entry("toolConfirmation")),
        "auth-required" => Some(entry("toolAuthentication")),
        "running" if call["contributor"]["kind"] == "client" => {
            let mut entry = entry("toolClientExecution");
            entry["clientId"] = call["contributor"]["clientId"].clone();
            Some(entry)
        }
        _ => None,
    }
}

/// What makes an entry comparable: its id is the host's own, and output so far is not compared.
fn comparable(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(fields) = entry.as_object_mut() {
        fields.shift_remove("id");
    }
    if entry["kind"] == "toolClientExecution"
        && let Some(call) = entry["toolCall"].as_object_mut()
    {
        call.shift_remove("content");
    }
    entry
}

fn sorted(mut entries: Vec<Value>) -> Vec<String> {
    let mut texts: Vec<String> = entries.drain(..).map(|entry| sort_keys(&entry)).collect();
    texts.sort();
    texts
}

/// The same object is the same text, whatever the order of its keys.
fn sort_keys(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            let field = |key: &&String| format!("{key}:{}", sort_keys(&fields[key.as_str()]));
            let fields: Vec<String> = keys.iter().map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sort_keys).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// What is wrong with a session's `inputNeeded`, if anything is.
pub fn mirrored<'a>(
    session: &Value,
    chats: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Option<String> {
    let mut expected = Vec::new();
    let mut known = Vec::new();
    for (uri, chat) in chats {
        known.push(uri);
        let turn = &chat["activeTurn"]["id"];
        let entries = active_parts(chat).filter_map(|part| entry_of(uri, turn, part));
        expected.extend(entries.map(|entry| comparable(&entry)));
    }
    let published: Vec<&Value> = session["inputNeeded"].as_array().into_iter().flatten().collect();
    let mut ids: Vec<&str> = published.iter().filter_map(|entry| entry["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != published.len() {
        return Some(format!("inputNeeded has ids twice or none: {published:?}"));
    }
    let asks = published.iter().any(|entry| entry["kind"] != "toolClientExecution");
    let raised = session["status"].as_u64().unwrap_or(0) & 24 == 24;
    if asks != raised {
        let status = &session["status"];
        return Some(format!("status {status} with {published:?}")); // H-221
    }
    // Of a chat at rest nothing is known here; it is loaded when it is looked at.
    let published =
        published.into_iter().filter(|entry| known.iter().any(|chat| entry["chat"] == *chat));
    let published = sorted(published.map(comparable).collect());
    let expected = sorted(expected);
    (published != expected).then(|| {
        format!("inputNeeded is not what the chats wait for:\n  session {published:?}\n  chats   {expected:?}")
    })
}

/// Whether a chat waits for what an agent asked: a run must not wait for something that was never asked.
pub fn waits_for(chat: &Value, question: crate::script::Question) -> bool {
    use crate::script::Question;
    if matches!(question, Question::SteeringMessage(_)) {
        return true; // whoever waits for steering may wait for as long as its turn runs
    }
    let status = |part: &Value| part["toolCall"]["status"].as_str().unwrap_or("").to_owned();
    active_parts(chat).any(|part| match question {
        Question::Decision(_) => status(part) == "pending-confirmation",
        Question::Review(_) => status(part) == "pending-result-confirmation",
        // A client may want its result reviewed before the agent gets it.
        Question::End(_) => ["running", "pending-result-confirmation"].contains(&&*status(part)),
        Question::Answer(_) => part["kind"] == "inputRequest" && part.get("response").is_none(),
        // The deadline is the kernel's own: a client is asked, or the run has ended.
        Question::Render(_) => true,
        Question::Steering(_)
        | Question::SteeringMessage(_)
        | Question::ChatNotes
        | Question::Settings(_)
        | Question::ClientTools(_) => false,
    })
}

impl World {
    /// After a batch: the sessions it touched mirror their chats, as far as these are in memory.
    pub(crate) fn look_at_blocks(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        let mut wrong = Vec::new();
        for uri in self.ledger.touched_sessions() {
            let state = |uri: &str| kernel.state_of(&wire::ChannelUri::parse(uri).ok()?);
            let Some(session) = state(&uri) else { continue };
            let chats = session["chats"].as_array().into_iter().flatten();
            let uris = chats.filter_map(|chat| chat["resource"].as_str());
            let chats: Vec<(&str, Value)> =
                uris.filter_map(|uri| Some((uri, state(uri)?))).collect();
            let chats = chats.iter().map(|(uri, chat)| (*uri, chat));
            wrong.extend(mirrored(&session, chats).map(|wrong| format!("{uri}: {wrong}")));
        }
        self.ledger.violations.extend(wrong);
    }
}
