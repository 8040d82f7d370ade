//! MCP servers of a session as the kernel sees them: published by the agent, asked for by clients, switched on and off, signed in
//! to (MC-4, MC-5, MC-14, CU-6).

use agent_api::McpRequest;
use kernel::{Input, SessionChange, SessionNews, TokenText};
use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};
use wire::ChannelUri;

fn server(name: &str, state: Value) -> Value {
    json!({"type": "mcpServer", "id": name, "uri": "file:///w/.mcp.json", "name": name, "state": state})
}

/// The agent says how the servers of a session are.
fn says(s: &mut Scenario, session: &str, servers: Vec<Value>) {
    let news = SessionNews {
        provider: "scripted".to_owned(),
        session: ChannelUri::parse(session).unwrap(),
        change: SessionChange::McpServers(servers),
    };
    s.world().input(Input::News(news));
    s.settles();
}

fn state_of(client: &ScenarioClient, session: &str, name: &str) -> Value {
    let entries =
        client.sees(session)["customizations"].clone().as_array().cloned().unwrap_or_default();
    let entry = entries.into_iter().find(|entry| entry["id"] == name);
    entry.map_or(Value::Null, |entry| entry["state"]["kind"].clone())
}

/// What the agent was asked since the last time.
fn wishes(s: &mut Scenario) -> Vec<(String, String, McpRequest)> {
    let wishes = std::mem::take(&mut s.world().agents_heard.mcp_requests).into_iter();
    wishes.map(|wish| (wish.session.to_string(), wish.id, wish.request)).collect()
}

fn toggle(id: &str, enablement: Value) -> Value {
    json!({"type": "session/customizationToggled", "id": id, "enablement": enablement})
}

// MC-4
#[test]
fn states_are_published_one_by_one_and_servers_that_are_gone_are_removed() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let session = ann.session();
    let starting = json!({"kind": "starting", "blocking": true});
    let both = vec![server("a", starting.clone()), server("b", json!({"kind": "stopped"}))];
    says(&mut s, &session, both);
    assert_eq!(state_of(&bob, &session, "a"), "starting");
    bob.received_actions();
    let ready =
        vec![server("a", json!({"kind": "ready"})), server("b", json!({"kind": "stopped"}))];
    says(&mut s, &session, ready.clone());
    assert_eq!(bob.received_actions(), ["session/mcpServerStateChanged"]);
    says(&mut s, &session, ready);
    assert_eq!(bob.received_actions(), [""; 0], "it is no news");
    says(&mut s, &session, vec![server("a", json!({"kind": "ready"}))]);
    assert_eq!(bob.received_actions(), ["session/customizationRemoved"]);
    s.host_restarts_for([&ann]);
    assert_eq!(state_of(&ann, &session, "a"), "ready");
}

// MC-5, H-305
#[test]
fn a_request_reaches_the_agent_and_one_for_no_server_is_refused() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    says(&mut s, &session, vec![server("a", json!({"kind": "ready"}))]);
    let request = |verb: &str, id: &str| {
        let action = json!({"type": format!("session/mcpServer{verb}Requested"), "id": id});
        ann.tries(&session, action)
    };
    request("Stop", "a").unwrap();
    request("Start", "a").unwrap();
    let expected = [McpRequest::Stop, McpRequest::Start];
    let asked = wishes(&mut s);
    let requests: Vec<McpRequest> = asked.iter().map(|(.., request)| *request).collect();
    assert_eq!(requests, expected);
    let refused = request("Start", "b").unwrap_err();
    assert!(refused.contains("no MCP server has this id"), "{refused}");
    assert_eq!(wishes(&mut s), []);
}

// CU-6
#[test]
fn a_switch_ends_and_starts_a_server_in_every_session_where_it_counts() {
    let (mut s, ann) = Scenario::with_chat();
    let two = "ahp-session:/two";
    let bob = s.client("bob").arrives().creates(two);
    bob.watches(two);
    let first = ann.session();
    for session in [first.as_str(), two] {
        says(&mut s, session, vec![server("a", json!({"kind": "ready"}))]);
    }
    let off = json!([{"kind": "global", "enabled": false}]);
    ann.tries(&first, toggle("a", off.clone())).unwrap();
    let mut asked = wishes(&mut s);
    asked.sort_by(|one, other| one.0.cmp(&other.0));
    let of = |session: &str, request: McpRequest| (session.to_owned(), "a".to_owned(), request);
    let mut expected = vec![of(&first, McpRequest::SwitchOff), of(two, McpRequest::SwitchOff)];
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(asked, expected);
    // The same again changes nothing; a decision of the session's own counts there alone.
    ann.tries(&first, toggle("a", off)).unwrap();
    assert_eq!(wishes(&mut s), []);
    let on_here =
        json!([{"kind": "session", "enabled": true}, {"kind": "global", "enabled": false}]);
    ann.tries(&first, toggle("a", on_here)).unwrap();
    assert_eq!(wishes(&mut s), [of(&first, McpRequest::SwitchOn)]);
}

// H-316, H-318, MC-14
#[test]
fn a_token_for_a_server_that_wants_one_reaches_its_agent() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    let resource = "https://mcp.example/mcp";
    let bring =
        |resource: &str| ann.asks("authenticate", json!({"resource": resource, "token": "t0ken"}));
    assert_eq!(bring(resource).unwrap_err()["code"], -32602, "nobody wants it");
    let wants = json!({
        "kind": "authRequired", "reason": "required",
        "resource": {"resource": resource, "authorization_servers": ["https://auth.example"]},
    });
    says(&mut s, &session, vec![server("a", wants)]);
    assert_eq!(state_of(&ann, &session, "a"), "authRequired");
    assert_eq!(bring(resource), Ok(json!({})));
    let tokens = s.look().agents_heard.tokens.clone();
    assert_eq!(tokens.len(), 1);
    assert_eq!(tokens[0].token, TokenText("t0ken".to_owned()));
    assert_eq!(bring("https://other.example").unwrap_err()["code"], -32602);
    // A newer one can be brought while the server runs.
    let mut ready = server("a", json!({"kind": "ready"}));
    ready["_meta"] = json!({"tokenFor": resource});
    says(&mut s, &session, vec![ready]);
    assert_eq!(bring(resource), Ok(json!({})));
    assert!(!ann.sees(&session).to_string().contains("t0ken"));
}

fn plugin_with(servers: &[&str]) -> Value {
    let children: Vec<Value> =
        servers.iter().map(|name| server(name, json!({"kind": "stopped"}))).collect();
    json!({
        "type": "plugin", "id": "plugin-1", "uri": "file:///p", "name": "p", "load": {"kind": "loaded"}, "children": children,
    })
}

/// A server of a plugin, as its agent says it.
fn of_plugin(name: &str, state: Value) -> Value {
    let mut server = server(name, state);
    server["container"] = json!("plugin-1");
    server
}

fn child_state(client: &ScenarioClient, session: &str, name: &str) -> Value {
    let entries = client.sees(session)["customizations"].clone();
    let mut children = entries[0]["children"].as_array().cloned().unwrap_or_default().into_iter();
    let child = children.find(|child| child["id"] == name);
    child.map_or(Value::Null, |child| child["state"]["kind"].clone())
}

// MC-4, CU-4
#[test]
fn servers_of_plugins_are_parts_of_them_and_end_with_them() {
    let mut s = Scenario::new();
    s.world().customizations = vec![plugin_with(&["a", "b"])];
    let ann = s.client("ann").opens_chat();
    let session = ann.session();
    s.settles();
    let told = wishes(&mut s);
    assert_eq!(told.len(), 1, "the agent is to say how they are: {told:?}");
    assert_eq!(told[0].2, McpRequest::Report);
    says(
        &mut s,
        &session,
        vec![
            of_plugin("a", json!({"kind": "ready"})),
            of_plugin("not-there", json!({"kind": "ready"})),
        ],
    );
    assert_eq!(child_state(&ann, &session, "a"), "ready");
    assert_eq!(child_state(&ann, &session, "b"), "stopped");
    let entries = ann.sees(&session)["customizations"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 1, "none is at the top");
    assert!(entries[0]["children"][0].get("container").is_none());
    let stop = json!({"type": "session/mcpServerStopRequested", "id": "a"});
    ann.tries(&session, stop).unwrap();
    assert_eq!(wishes(&mut s)[0].2, McpRequest::Stop);

    // A look that finds the same leaves them as they are; one that finds one less ends it.
    ann.sends_message("one");
    s.settles();
    assert_eq!(child_state(&ann, &session, "a"), "stopped");
    assert_eq!(wishes(&mut s), []);
    s.world().customizations = vec![plugin_with(&["b"])];
    ann.sends_message("two");
    s.settles();
    assert_eq!(child_state(&ann, &session, "a"), Value::Null);
    let ended = (session.clone(), "a".to_owned(), McpRequest::SwitchOff);
    assert_eq!(wishes(&mut s), [ended]);
}
