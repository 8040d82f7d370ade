//! Telemetry channels and progress: advertised, without state, never repeated.

use kernel::{Input, TelemetryBatch, TelemetryLog};
use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};

const TRACES: &str = "ahp-otlp://host/traces";
const METRICS: &str = "ahp-otlp://host/metrics";

fn logs(level: &str) -> String {
    format!("ahp-otlp://host/logs/{level}")
}

fn batch() -> Input {
    let log = |severity, name: &str| TelemetryLog {
        severity,
        record: json!({"severityNumber": severity, "body": {"stringValue": name}}),
    };
    Input::Telemetry(Box::new(TelemetryBatch {
        resource: json!({"attributes": []}),
        logs: vec![log(9, "started"), log(17, "broken")],
        spans: vec![json!({"name": "turn"})],
        metrics: Vec::new(),
    }))
}

fn bodies(client: &ScenarioClient) -> Vec<Value> {
    let batches = client.notifications("otlp/exportLogs");
    let records = batches.iter().flat_map(|params| {
        let records = &params["payload"]["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        records.as_array().cloned().unwrap_or_default()
    });
    records.map(|record| record["body"]["stringValue"].clone()).collect()
}

// H-319
#[test]
fn subscribers_hear_what_is_loud_enough_and_nothing_is_repeated() {
    let (mut s, ann) = Scenario::with_client();
    let bob = s.client("bob").arrives();
    assert_eq!(ann.asks("subscribe", json!({"channel": logs("info")})), Ok(json!({})));
    assert_eq!(bob.asks("subscribe", json!({"channel": logs("ERROR")})), Ok(json!({})));
    for channel in [TRACES, METRICS] {
        ann.asks("subscribe", json!({"channel": channel})).unwrap();
    }
    for unknown in [logs("loud"), "ahp-otlp://else/traces".to_owned()] {
        assert_eq!(ann.is_denied("subscribe", json!({"channel": unknown})), -32008);
    }
    let seq = s.look().kernel().seq();
    s.world().input(batch());
    s.settles();
    assert_eq!(bodies(&ann), ["started", "broken"]);
    assert_eq!(bodies(&bob), ["broken"]);
    let traces = ann.notifications("otlp/exportTraces");
    assert_eq!(traces[0]["channel"], TRACES);
    assert_eq!(
        traces[0]["payload"]["resourceSpans"][0]["scopeSpans"][0]["spans"],
        json!([{"name": "turn"}])
    );
    assert!(ann.notifications("otlp/exportMetrics").is_empty(), "no metric changed");
    assert_eq!(s.look().kernel().seq(), seq, "nothing is recorded");
    // Whoever comes back and subscribes hears what happens from then on.
    bob.loses_connection();
    s.world().input(batch());
    assert_eq!(bob.reconnects()["type"], "replay");
    assert_eq!(bodies(&bob), ["broken"]);
    bob.asks("subscribe", json!({"channel": logs("error")})).unwrap();
    s.world().input(batch());
    s.settles();
    assert_eq!(bodies(&bob), ["broken", "broken"]);
    let reason = ann.tries(TRACES, json!({"type": "session/titleChanged", "title": "x"}));
    assert!(reason.unwrap_err().contains("does not belong"));
}

#[test]
fn whoever_creates_a_session_hears_how_it_goes_on() {
    let mut s = Scenario::new();
    s.sessions_take_ms(50);
    let ann = s.client("ann").arrives();
    let bob = s.client("bob").arrives();
    let old = s.client_of("old", "0.4.0").arrives();
    let create = |client: &ScenarioClient, name: &str| {
        let params = json!({"channel": format!("ahp-session:/{name}"), "progressToken": name});
        client.asks("createSession", params).unwrap();
    };
    create(&ann, "one");
    create(&old, "two");
    s.advances_ms(200);
    let told = ann.notifications("root/progress");
    let frames: Vec<(Value, Value)> =
        told.iter().map(|params| (params["progress"].clone(), params["total"].clone())).collect();
    assert_eq!(frames, [(json!(0), Value::Null), (json!(1), json!(1))], "{told:?}");
    assert!(
        told.iter()
            .all(|params| params["progressToken"] == "one" && params["channel"] == "ahp-root://")
    );
    assert!(bob.notifications("root/progress").is_empty());
    assert!(old.notifications("root/progress").is_empty(), "0.4 has no such notification");
}
