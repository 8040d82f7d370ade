//! What the host sends, against the published types of 1.0: whatever a scenario makes the host say, every client can decode.

use serde_json::Value;
use wire::published::actions::{ActionEnvelope, StateAction};
use wire::published::notifications::{
    SessionAddedParams, SessionRemovedParams, SessionSummaryChangedParams,
};
use wire::published::state::{Snapshot, SnapshotState};

use crate::client::Client;

/// What a client of 1.0 could not have decoded of what it received on this connection.
pub(crate) fn errors(client: &Client) -> Vec<String> {
    if client.is_old() {
        return Vec::new(); // the published client of 0.9 judges that, over a real socket
    }
    let frames = client.frames.iter();
    let wrong = frames.filter_map(|frame| Some((frame, error_in(frame)?)));
    let report = |(frame, why)| format!("{}: published types: {why}: {frame}", client.id);
    wrong.map(report).collect()
}

fn error_in(frame: &Value) -> Option<String> {
    let params = &frame["params"];
    match frame["method"].as_str() {
        Some("action") => envelope_error(params),
        Some("root/sessionAdded") => {
            error_of(serde_json::from_value::<SessionAddedParams>(params.clone()))
        }
        Some("root/sessionRemoved") => {
            error_of(serde_json::from_value::<SessionRemovedParams>(params.clone()))
        }
        Some("root/sessionSummaryChanged") => {
            error_of(serde_json::from_value::<SessionSummaryChangedParams>(params.clone()))
        }
        Some(_) => None,
        None => {
            let result = &frame["result"];
            let many = result["snapshots"].as_array().into_iter().flatten();
            let one = result.get("snapshot").into_iter();
            let snapshots = many.chain(one).find_map(snapshot_error);
            let actions = result["actions"].as_array().into_iter().flatten();
            snapshots.or_else(|| actions.into_iter().find_map(envelope_error))
        }
    }
}

/// A refused action is whatever its sender made it.
fn envelope_error(envelope: &Value) -> Option<String> {
    if envelope.get("rejectionReason").is_some() {
        return None;
    }
    let is_extension =
        envelope["action"]["type"].as_str().is_some_and(|kind| kind.starts_with("x-"));
    match serde_json::from_value::<ActionEnvelope>(envelope.clone()) {
        Err(error) => Some(error.to_string()),
        Ok(decoded) => (matches!(decoded.action, StateAction::Unknown(_)) && !is_extension)
            .then(|| "an unknown action".to_owned()),
    }
}

/// The published union tries one state after the other, so the kind that it must be is checked.
fn snapshot_error(snapshot: &Value) -> Option<String> {
    let state = &snapshot["state"];
    let decoded: Snapshot = match serde_json::from_value(snapshot.clone()) {
        Ok(decoded) => decoded,
        Err(error) => return Some(error.to_string()),
    };
    let is_right = match decoded.state {
        SnapshotState::Root(_) => state.get("agents").is_some(),
        SnapshotState::Session(_) => state.get("activeClients").is_some(),
        SnapshotState::Changeset(_) => state.get("files").is_some(),
        SnapshotState::Annotations(_) => state["annotations"].is_array(),
        SnapshotState::Terminal(_) => state.get("claim").is_some(),
        SnapshotState::ResourceWatch(_) => state.get("recursive").is_some(),
        SnapshotState::Chat(_) => state.get("turns").is_some(),
        _ => false,
    };
    (!is_right).then(|| "a state of another kind".to_owned())
}

fn error_of<T>(decoded: Result<T, serde_json::Error>) -> Option<String> {
    decoded.err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_decoded_is_found_wherever_it_is_sent() {
        let action =
            |action: Value| json!({"channel": "ahp-chat:/1", "serverSeq": 1, "action": action});
        let good = action(json!({"type": "session/titleChanged", "title": "t"}));
        let bad = action(json!({"type": "session/titleChanged", "title": 1}));
        let sent = |envelope: &Value| json!({"method": "action", "params": envelope});
        assert_eq!(error_in(&sent(&good)), None);
        assert!(error_in(&sent(&bad)).is_some());
        assert!(error_in(&json!({"result": {"actions": [good, bad]}})).is_some());
        let extension = action(json!({"type": "x-session/anything"}));
        assert_eq!(error_in(&sent(&extension)), None);
        let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
        let model = json!({"id": "m", "provider": "p", "name": "M", "configSchema": schema});
        let agent =
            json!({"provider": "p", "displayName": "P", "description": "", "models": [model]});
        let snapshot =
            json!({"resource": "ahp-root://", "fromSeq": 1, "state": {"agents": [agent]}});
        assert!(error_in(&json!({"result": {"snapshots": [snapshot]}})).is_some());
        let added = json!({"method": "root/sessionAdded", "params": {"channel": "ahp-root://"}});
        assert!(error_in(&added).is_some());
    }
}
