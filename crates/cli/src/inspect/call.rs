//! One request to a model: as it was sent, how each part was sent, the prompt before and after, the outcome.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::bail;
use host::sent_request::{SentCall, call_json, transform_json};
use serde_json::{Value, json};
use wire::Timestamp;

use super::pretty::pretty;
use super::prompt::{outcome_text, write_section};
use super::sent_call::{describe_end, format_cost, format_tokens, shown_request};
use crate::exit::Exit;
use crate::terminal::escape_line;

/// Prints the bytes that were sent, and nothing else.
pub(super) fn print_raw(call: &SentCall) -> anyhow::Result<Exit> {
    let Some(body) = &call.body else {
        bail!(
            "call {} cannot be shown as it was sent: {}",
            call.call.number,
            call.fault.as_deref().unwrap_or_default()
        );
    };
    let mut out = std::io::stdout().lock();
    out.write_all(body)?;
    out.flush()?;
    Ok(Exit::Complete)
}

pub(super) fn to_json(call: &SentCall, with_bodies: bool) -> anyhow::Result<Value> {
    let mut shown = call_json(&call.chat, &call.call);
    let headers = call.details["headers"].as_array().into_iter().flatten().filter_map(|header| {
        let name = header[0].as_str()?.to_owned();
        Some((name, header[1].clone()))
    });
    shown["url"] = call.details["url"].clone();
    shown["headers"] = headers.collect();
    shown["isAsSent"] = json!(call.fault.is_none());
    shown["fault"] = json!(call.fault);
    shown["transform"] = json!(call.render.as_ref().map(transform_json));
    shown["sections"] = call.details["sections"].clone();
    shown["parts"] = call.details["decisions"].clone();
    shown["request"] = shown_request(call, with_bodies)?;
    Ok(shown)
}

pub(super) fn to_text(call: &SentCall, with_bodies: bool) -> anyhow::Result<String> {
    let mut text = String::new();
    write_head(&mut text, call);
    write_prompt(&mut text, call);
    write_parts(&mut text, call);
    text.push_str("Request\n");
    text.push_str(&pretty(&shown_request(call, with_bodies)?));
    Ok(text)
}

fn write_head(text: &mut String, sent: &SentCall) {
    let call = &sent.call;
    let at = Timestamp(call.at).to_rfc3339();
    let (api, model) = (escape_line(&call.api), escape_line(&call.model));
    // Writing into a string does not fail.
    let _ = writeln!(text, "Call {}  {at}  {model} over {api}", call.number);
    let purpose = match call.purpose.as_str() {
        "answer" => format!("round {}", call.round + 1),
        other => escape_line(other),
    };
    let _ = writeln!(text, "Turn {}, {purpose}", escape_line(&call.turn_id));
    let url = sent.details["url"].as_str().unwrap_or("");
    let _ = writeln!(text, "POST {}", escape_line(url));
    for header in sent.details["headers"].as_array().into_iter().flatten() {
        let text_of = |value: &Value| escape_line(value.as_str().unwrap_or(""));
        let _ = writeln!(text, "  {}: {}", text_of(&header[0]), text_of(&header[1]));
    }
    let end = call.end.clone().unwrap_or_default();
    let took = match call.ended_at {
        Some(ended) => format!(" after {} ms", ended.saturating_sub(call.at)),
        None => String::new(),
    };
    let _ = writeln!(text, "Ended{took}: {}", describe_end(call));
    if let Some(repeats) = end["repeats"].as_u64().filter(|repeats| *repeats > 0) {
        let _ = writeln!(text, "Sent {} times: the server was busy", repeats + 1);
    }
    let _ = writeln!(
        text,
        "Tokens: {} in ({} from the cache, {} written to it), {} out; cost {}",
        format_tokens(&end["inputTokens"]),
        format_tokens(&end["cacheReadTokens"]),
        format_tokens(&end["cacheWriteTokens"]),
        format_tokens(&end["outputTokens"]),
        format_cost(&end["cost"]),
    );
    let digest = call.body_digest.to_hex();
    let _ = match &sent.fault {
        None => {
            writeln!(text, "Body: {} bytes, sha256 {digest}, as it was sent\n", call.body_bytes)
        }
        Some(fault) => writeln!(
            text,
            "Body: {} bytes, sha256 {digest}; NOT as it was sent: {fault}\n",
            call.body_bytes
        ),
    };
}

fn write_prompt(text: &mut String, sent: &SentCall) {
    text.push_str("System prompt\n");
    if let Some(render) = &sent.render {
        let _ = writeln!(text, "{}", outcome_text(render));
    }
    text.push('\n');
    for section in sent.details["sections"].as_array().into_iter().flatten() {
        let text_of = |name: &str| section[name].as_str().unwrap_or("");
        let (before, after) = (text_of("before"), text_of("after"));
        let rewritten = (before != after).then_some(after);
        write_section(text, &escape_line(text_of("id")), before, rewritten);
    }
}

fn write_parts(text: &mut String, sent: &SentCall) {
    text.push_str("Parts of the messages\n");
    let decisions = sent.details["decisions"].as_array();
    if decisions.is_none_or(Vec::is_empty) {
        text.push_str("  none\n");
    }
    for decision in decisions.into_iter().flatten() {
        let text_of = |name: &str| escape_line(decision[name].as_str().unwrap_or(""));
        let name = match decision["name"].as_str() {
            Some(name) => format!(" {}", escape_line(name)),
            None => String::new(),
        };
        let why = match decision["why"].as_str() {
            Some(why) => format!(": {}", escape_line(why)),
            None => String::new(),
        };
        let tokens = match decision["tokens"].as_u64() {
            Some(tokens) => format!("about {tokens} tokens"),
            None => "tokens not known".to_owned(),
        };
        let (treatment, became) = (text_of("treatment"), text_of("became"));
        let treatment =
            if treatment == became { treatment } else { format!("{treatment} ({became})") };
        let _ = writeln!(
            text,
            "  message {} part {}: {}{name}, {treatment}{why}, {} bytes, {tokens}",
            decision["message"],
            decision["part"],
            text_of("kind"),
            decision["bytes"],
        );
    }
    text.push('\n');
}
