//! The messages of a chat and what models were sent of them: stored parts with the tokens no model saw, the blocks of
//! each call, and its diagnostics (C-088, C-089).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::bail;
use host::journal::{Archive, ArchivedLowering, ArchivedSession, JournalError};
use serde_json::{Value, json};
use wire::Timestamp;

use crate::terminal::{escape, escape_line, json_line};

/// A turn of a chat.
pub(crate) struct InspectedTurn {
    chat: String,
    turn_id: String,
    /// What users sent in it: rows as they are stored.
    messages: Vec<Value>,
    calls: Vec<ArchivedLowering>,
}

/// The turns of the chats, or the one that was named.
pub(crate) fn turns_of(
    archive: &Archive,
    session: &ArchivedSession,
    only: Option<&str>,
) -> anyhow::Result<Vec<InspectedTurn>> {
    let mut turns = Vec::new();
    for chat in &session.chats {
        let mut calls: BTreeMap<String, Vec<ArchivedLowering>> = BTreeMap::new();
        for call in archive.lowered(chat)? {
            calls.entry(call.turn_id.clone()).or_default().push(call);
        }
        let mut ids = Vec::new();
        archive.turns::<JournalError>(chat, |turn| {
            ids.push(turn["id"].as_str().unwrap_or("").to_owned());
            Ok(())
        })?;
        ids.extend(chat.state.active_turn.as_ref().map(|turn| turn.id.clone()));
        for turn_id in ids {
            if only.is_some_and(|only| only != turn_id) {
                continue;
            }
            turns.push(InspectedTurn {
                chat: chat.state.resource.clone(),
                messages: archive.messages(chat, &turn_id)?,
                calls: calls.remove(&turn_id).unwrap_or_default(),
                turn_id,
            });
        }
    }
    if let Some(only) = only.filter(|_| turns.is_empty()) {
        bail!("No turn `{}` in this chat", escape_line(only));
    }
    Ok(turns)
}

pub(crate) fn to_json(turns: &[InspectedTurn]) -> Value {
    let call = |call: &ArchivedLowering| {
        json!({
            "at": Timestamp(call.at).to_rfc3339(),
            "target": call.target,
            "model": call.model,
            "blocks": call.blocks,
            "diagnostics": call.diagnostics,
        })
    };
    let turn = |turn: &InspectedTurn| {
        json!({
            "chat": turn.chat,
            "turnId": turn.turn_id,
            "messages": turn.messages,
            "lowered": turn.calls.iter().map(call).collect::<Value>(),
        })
    };
    turns.iter().map(turn).collect()
}

pub(crate) fn to_text(turns: &[InspectedTurn]) -> String {
    if turns.is_empty() {
        return "No messages yet.\n".to_owned();
    }
    let mut text = String::new();
    for turn in turns {
        let _ = writeln!(text, "{} turn {}", escape_line(&turn.chat), escape_line(&turn.turn_id));
        for message in &turn.messages {
            let parts = message["parts"].as_array().into_iter().flatten();
            for part in parts {
                let _ = writeln!(text, "  stored  {}", json_line(part));
            }
        }
        for call in &turn.calls {
            let at = Timestamp(call.at).to_rfc3339();
            let (target, model) = (escape_line(&call.target), escape_line(&call.model));
            let _ = writeln!(text, "  sent to {target} {model} at {at}");
            for block in call.blocks.as_array().into_iter().flatten() {
                let _ = writeln!(text, "    {}", json_line(block));
            }
            for diagnostic in call.diagnostics.as_array().into_iter().flatten() {
                let _ = writeln!(text, "    ! {}", escape(diagnostic.as_str().unwrap_or("")));
            }
        }
        text.push('\n');
    }
    text
}
