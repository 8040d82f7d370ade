//! Calls that were at work when the host died: what can be known of them afterwards.
//!
//! Promises: a command's processes that are still there are ended; what is found is recorded before the model is told, so that
//! it is told the same in every later turn.
//! Must not know: how calls are carried out.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::{AgentEvent, EventSink, ModelOutput, RecordedEdit, TurnInput, edits_of_call};
use bytes::Bytes;
use serde_json::Value;
use wire::meta;
use workspace::Workspace;

use super::answer::MARK;
use super::stop::TurnStop;
use crate::task;
use crate::tool;

/// Findings are recorded beside the answers of a turn's rounds, under a number that no round has.
const FINDINGS_ROUND: u64 = u32::MAX as u64;

/// Calls in one notice to the user, at most.
const TOLD_MAX: usize = 10;

/// What is known of calls, by their ids.
pub(super) type Findings = Arc<BTreeMap<String, String>>;

/// How a turn ends whose model's server failed: no call was at work then.
const ENDED_BY_MODEL: [&str; 5] = [
    "modelUnauthorized",
    "modelRejected",
    "modelUnavailable",
    "modelInterrupted",
    "modelUnreadable",
];

/// What was recorded in this turn and those before it.
fn read_findings<'a>(outputs: impl Iterator<Item = &'a ModelOutput>) -> BTreeMap<String, String> {
    let recorded = outputs.filter(|output| output.round == FINDINGS_ROUND);
    let read = recorded.filter_map(|output| {
        // What is damaged is not known.
        serde_json::from_slice::<BTreeMap<String, String>>(&output.json).ok()
    });
    read.flatten().collect()
}

/// Looks for calls that the last turn left behind and reports them to the user. Returns what is known of these and of others.
pub(super) async fn inspect_orphans(
    input: &TurnInput,
    workspace: &Workspace,
    events: &dyn EventSink,
) -> Result<Findings, TurnStop> {
    let past = input.history.iter().flat_map(|past| past.outputs.iter());
    let mut findings = read_findings(past.chain(&input.outputs));
    let orphans: Vec<Value> = orphans_of(input)
        .into_iter()
        .filter(|call| !findings.contains_key(id_of(call)))
        .cloned()
        .collect();
    if orphans.is_empty() {
        return Ok(Arc::new(findings));
    }
    let workspace = workspace.clone();
    let looking = task::run_blocking(move || {
        let found = orphans.into_iter().map(|call| {
            let text = inspect(&call, &workspace);
            (call, text)
        });
        found.collect::<Vec<_>>()
    });
    let found = looking.await;
    let new: BTreeMap<String, String> =
        found.iter().map(|(call, text)| (id_of(call).to_owned(), text.clone())).collect();
    events.record_output(record_of(&input.outputs, &new)).await;
    let lines: String = found
        .iter()
        .take(TOLD_MAX)
        .map(|(call, text)| {
            let title = call["invocationMessage"].as_str();
            let title = title
                .filter(|title| !title.is_empty())
                .or(call["displayName"].as_str())
                .unwrap_or("A call");
            format!("\n- {title}: {text}")
        })
        .collect();
    let more = match found.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!("\n- and {more} more, of which the model is told"),
    };
    let text = format!("The host was stopped while these were at work:\n{lines}{more}");
    events.send(AgentEvent::Notice { text }).await?;
    findings.extend(new);
    Ok(Arc::new(findings))
}

/// The calls without an end in the turn that is resumed, or in the one before this if that was cut off.
fn orphans_of(input: &TurnInput) -> Vec<&Value> {
    let parts = match input.resume {
        Some(_) => Some(&input.response_parts),
        None => {
            let last =
                input.history.last().map(|past| &past.turn).filter(|turn| turn["state"] == "error");
            last.and_then(|turn| turn["responseParts"].as_array())
        }
    };
    parts.map_or(Vec::new(), |parts| orphans_in(parts))
}

fn orphans_in(parts: &[Value]) -> Vec<&Value> {
    let mut orphans = Vec::new();
    // Backwards: a turn may have been cut off several times, and each time what came before had no end.
    let mut ended_by = "";
    for part in parts.iter().rev() {
        let call = &part["toolCall"];
        let is_orphan = part["kind"] == "toolCall"
            && call["status"] == "cancelled"
            && call["reason"] == "skipped"
            // Its input never came whole: it was never made.
            && call["toolInput"].is_string();
        if part["kind"] == "error" {
            ended_by = part["error"]["errorType"].as_str().unwrap_or("");
        } else if is_orphan && !ENDED_BY_MODEL.contains(&ended_by) {
            orphans.push(call);
        }
    }
    orphans.reverse();
    orphans
}

/// A turn has one record of what was found: what was recorded in it before stays in it.
fn record_of(outputs: &[ModelOutput], new: &BTreeMap<String, String>) -> ModelOutput {
    let mut findings = read_findings(outputs.iter());
    findings.extend(new.clone());
    ModelOutput { round: FINDINGS_ROUND, json: Bytes::from(wire::rpc::to_json(&findings)) }
}

fn id_of(call: &Value) -> &str {
    call["toolCallId"].as_str().unwrap_or("")
}

/// What can be known of a call.
fn inspect(call: &Value, workspace: &Workspace) -> String {
    if call["contributor"]["kind"] == "client" {
        return "A client was to carry it out; what it did until then is not known.".to_owned();
    }
    if is_of_server(call) {
        return "An MCP server was to carry it out; what it did until then is not known."
            .to_owned();
    }
    match call["toolName"].as_str() {
        Some(tool::TASK) => {
            return "A worker may have begun with it; what it did stands in its own chat, and is not undone.".to_owned();
        }
        Some(tool::CLIENT_FILES) => {
            return "The user's program was to carry it out; what it did until then is not known."
                .to_owned();
        }
        Some(_) | None => {}
    }
    if !call["_meta"][meta::EDITS].is_array() {
        return "It had changed nothing yet.".to_owned();
    }
    let edits = edits_of_call(call);
    if edits.is_empty() {
        return inspect_command(call);
    }
    let found = edits.iter().map(|edit| inspect_edit(edit, workspace));
    found.collect::<Vec<_>>().join(" ")
}

/// Whether an MCP server had begun to carry a call out.
fn is_of_server(call: &Value) -> bool {
    let name = call["toolName"].as_str().unwrap_or("");
    name.starts_with("mcp__") && call["_meta"][meta::EDITS].is_array()
}

fn inspect_command(call: &Value) -> String {
    let before = "The command's end was not seen; what it had done until then is not undone.";
    let mark = call["_meta"][MARK].as_str();
    let Some(mark) = mark.filter(|mark| !mark.is_empty()) else {
        return format!("{before} Whether something of it still runs is not known.");
    };
    match tool::end_processes(mark) {
        0 => format!("{before} Nothing of it runs any more."),
        1 => format!("{before} One process of it still ran, and was ended now."),
        ended => format!("{before} {ended} processes of it still ran, and were ended now."),
    }
}

fn inspect_edit(edit: &RecordedEdit, workspace: &Workspace) -> String {
    let path = workspace.path_of_uri(&edit.uri);
    let path = match path {
        Ok(path) => path,
        Err(error) => return format!("Whether a file was changed is not known: {error}."),
    };
    let name = workspace.display_path(&path);
    let now = match workspace.look_at(&path) {
        Ok(now) => now.map(|now| now.digest),
        Err(error) => return format!("Whether {name} was changed is not known: {error}."),
    };
    let before = edit.before.map(|content| content.digest);
    let after = edit.after.map(|content| content.digest);
    match now {
        now if now == after => format!("{name} was changed as planned."),
        None if before.is_none() => format!("{name} was not created."),
        now if now == before => format!("{name} was not changed."),
        None => format!("{name} is not there any more."),
        Some(_) => format!("{name} is neither what it was nor what it was to be: read it."),
    }
}

#[cfg(test)]
mod tests {
    use agent_api::FileContent;
    use serde_json::json;
    use wire::Digest;
    use workspace::Confinement;

    use super::*;

    fn call(edits: &[RecordedEdit]) -> Value {
        let edits: Vec<Value> = edits.iter().map(RecordedEdit::to_value).collect();
        json!({"status": "cancelled", "reason": "skipped", "toolCallId": "c1", "toolInput": "{}",
            "_meta": {meta::EDITS: edits}})
    }

    #[test]
    fn whether_a_file_was_changed_is_seen_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(&directory).unwrap();
        let uri = format!("file://{}", directory.display());
        let workspace = Workspace::open(std::slice::from_ref(&uri), &Confinement::none()).unwrap();
        let content = |text: &str| {
            let digest = Digest::of(text.as_bytes());
            Some(FileContent { digest, mode: None })
        };
        let edit = |before: Option<FileContent>| RecordedEdit {
            uri: format!("{uri}/a.txt"),
            before,
            after: content("new"),
            new_directories: 0,
            is_made: false,
        };
        let found = |before| inspect(&call(&[edit(before)]), &workspace);
        assert_eq!(found(None), "a.txt was not created.");
        assert_eq!(found(content("old")), "a.txt is not there any more.");
        for (now, expected) in [
            ("old", "a.txt was not changed."),
            ("new", "a.txt was changed as planned."),
            ("else", "a.txt is neither what it was nor what it was to be: read it."),
        ] {
            std::fs::write(directory.join("a.txt"), now).unwrap();
            assert_eq!(found(content("old")), expected);
        }
        let mut outside = edit(None);
        outside.uri = "file:///etc/passwd".to_owned();
        let found = inspect(&call(&[outside]), &workspace);
        assert!(found.starts_with("Whether a file was changed is not known"), "{found}");
    }

    fn parts_of_turn(error_types: [&str; 2]) -> Vec<Value> {
        let part = |id: &str, input: Value| {
            let mut call = call(&[]);
            call["toolCallId"] = json!(id);
            call["toolInput"] = input;
            json!({"kind": "toolCall", "toolCall": call})
        };
        let error = |kind: &str| json!({"kind": "error", "error": {"errorType": kind}});
        vec![
            part("a", json!("{}")),
            part("never whole", Value::Null),
            error(error_types[0]),
            part("b", json!("{}")),
            error(error_types[1]),
        ]
    }

    fn found_in(error_types: [&str; 2]) -> Vec<String> {
        let parts = parts_of_turn(error_types);
        orphans_in(&parts).iter().map(|call| id_of(call).to_owned()).collect()
    }

    #[test]
    fn only_calls_that_were_at_work_when_the_host_stopped_are_told() {
        assert_eq!(found_in(["hostStopped", "interrupted"]), ["a", "b"]);
        assert_eq!(found_in(["modelInterrupted", "interrupted"]), ["b"]);
        assert_eq!(found_in(["interrupted", "modelUnavailable"]), ["a"]);
    }

    #[test]
    fn what_was_found_before_in_a_turn_stays_recorded() {
        let new = |id: &str| BTreeMap::from([(id.to_owned(), format!("{id} was found."))]);
        let first = record_of(&[], &new("a"));
        let second = record_of(&[first], &new("b"));
        let recorded = read_findings([&second].into_iter());
        assert_eq!(recorded.into_keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn what_had_not_begun_changed_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        let mut waiting = call(&[]);
        waiting["_meta"] = json!({});
        assert_eq!(inspect(&waiting, &workspace), "It had changed nothing yet.");
        // A worker edits and runs in a chat of its own.
        waiting["toolName"] = json!("task");
        assert!(inspect(&waiting, &workspace).contains("its own chat"));
        waiting["toolName"] = json!("client_files");
        assert!(inspect(&waiting, &workspace).contains("not known"));
        waiting["contributor"] = json!({"kind": "client"});
        assert!(inspect(&waiting, &workspace).contains("not known"));
    }
}
