//! What a session has for its agent: customizations that a client switches, writes and removes, and MCP servers that it starts, stops
//! and signs in to. Those who have no word for something see a client of 1.0 do it.

use serde_json::{Value, json};

use super::super::VERSION;
use super::mirror::ROOT;
use super::{Follower, ledger, outside, script};
use crate::driver::Driver;
use crate::host::Host;

const NATIVE: &str = "native:/one";

/// Sessions that are made to hear how one begins: the host may be ready before it is asked for the session.
const TRIES_MAX: usize = 20;

/// Makes sessions until this was heard of one; the last of them.
pub async fn makes_until_heard(
    ann: &mut Follower,
    name: &str,
    params: Value,
    lifecycle: &str,
    heard: &[&str],
) -> String {
    let mut session = String::new();
    for number in 0..TRIES_MAX {
        session = format!("{name}-{number}");
        let mut params = params.clone();
        params["channel"] = json!(session);
        ann.makes("createSession", params, &session).await;
        ann.until(lifecycle, |ann| ann.at(&session)["lifecycle"] == lifecycle).await;
        let has_customizations = |ann: &Follower| ann.at(&session)["customizations"].is_array();
        if heard.contains(&"session/customizationsChanged") {
            ann.until("it has customizations", has_customizations).await;
        }
        ann.agrees(lifecycle).await;
        let ledger = ledger::open();
        if heard.iter().all(|name| ledger.followed.contains(*name)) {
            break;
        }
    }
    session
}

/// A customization that a session lists, by its type.
fn listed(session: &Value, kind: &str) -> Option<Value> {
    let mut all = session["customizations"].as_array().into_iter().flatten();
    all.find(|each| each["type"] == kind).cloned()
}

/// Whether a plugin or a server is on, by the flag of versions up to 0.7 or by the decisions since.
fn is_on(entry: &Value) -> bool {
    if VERSION < "0.8" { entry["enabled"] == true } else { entry["enablement"].get(0).is_none_or(|first| first["enabled"] == true) }
}

/// Switched in the words of this version.
fn switched(id: &Value, is_enabled: bool) -> Value {
    let mut action = json!({"type": "session/customizationToggled", "id": id});
    if VERSION < "0.8" { action["enabled"] = json!(is_enabled) } else { action["enablement"] = json!([{"kind": "session", "enabled": is_enabled}]) }
    action
}

pub async fn customizations_are_followed() {
    let host = Host::start_with_agent(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let begins = ["session/ready", "session/customizationsChanged"];
    let params = json!({"provider": "native"});
    let session = makes_until_heard(&mut ann, "native:/plugged", params, "ready", &begins).await;
    let plugged = |ann: &Follower| listed(&ann.at(&session), "plugin");
    ann.until("the plugin is listed", |ann| plugged(ann).is_some_and(|plugin| is_on(&plugin)))
        .await;
    let id = plugged(&ann).expect("a plugin")["id"].clone();
    ann.does(&session, switched(&id, false)).await;
    ann.until("the plugin is off", |ann| plugged(ann).is_some_and(|plugin| !is_on(&plugin))).await;
    ann.agrees("the plugin").await;
    // A skill that a client writes is listed, and a plugin that it removes is not any more.
    let skill = format!("{}/.agents/skills/maps/SKILL.md", host.work_uri());
    let text = "---\nname: maps\ndescription: Draws maps\n---\nDraw.\n";
    let write = json!({"channel": ROOT, "uri": skill, "data": text, "encoding": "utf-8"});
    ann.asks("resourceWrite", write).await;
    ann.until("the skill is listed", |ann| {
        let all = ann.at(&session)["customizations"].to_string();
        all.contains("Draws maps")
    })
    .await;
    ann.agrees("the skill").await;
    let plugin = format!("{}/.agents/plugins/helper", host.work_uri());
    let delete = json!({"channel": ROOT, "uri": plugin, "recursive": true});
    ann.asks("resourceDelete", delete).await;
    ann.until("the plugin is gone", |ann| plugged(ann).is_none()).await;
    ann.agrees("its end").await;
}

/// Whoever has a word for it: ann where her version knows the action, else a client of 1.0.
async fn somebody_does(ann: &Follower, bea: &mut Driver, since: &str, action: Value) {
    if VERSION >= since { ann.does(NATIVE, action).await } else { bea.does(NATIVE, action).await }
}

pub async fn mcp_servers_and_sign_ins_are_followed() {
    let origin = outside::serve();
    let host = Host::start_with_settings(&script(), &outside::settings(&origin));
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    let made =
        json!({"channel": NATIVE, "provider": "native", "config": {"approvals": "full-access"}});
    ann.makes("createSession", made, NATIVE).await;
    let chat = ann.at(NATIVE)["chats"][0]["resource"].clone();
    let chat = chat.as_str().expect("a chat").to_owned();
    ann.follows(&chat).await;
    let started = json!({"type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}}});
    ann.does(&chat, started).await;
    let server = |ann: &Follower| listed(&ann.at(NATIVE), "mcpServer").unwrap_or_default();
    // The call meets a server that wants a token: it waits for one, or runs on where nobody could sign in for a call.
    ann.until("a token is wanted", |ann| server(ann)["state"]["kind"] == "authRequired").await;
    let status = if VERSION < "0.6" { "running" } else { "auth-required" };
    ann.until("the call waits", |ann| {
        let parts = ann.at(&chat)["activeTurn"]["responseParts"].clone();
        let mut parts = parts.as_array().into_iter().flatten();
        parts.any(|part| part["toolCall"]["status"] == status)
    })
    .await;
    ann.agrees("the wish for a token").await;
    let token =
        json!({"channel": ROOT, "resource": format!("{origin}/mcp"), "token": outside::TOKEN});
    ann.asks("authenticate", token).await;
    ann.until("the turn is over", |ann| ann.at(&chat)["turns"].as_array().map(Vec::len) == Some(1))
        .await;
    let is = |kind: &'static str| move |ann: &Follower| server(ann)["state"]["kind"] == kind;
    ann.until("the server is ready", is("ready")).await;
    ann.agrees("the sign-in").await;
    let id = server(&ann)["id"].clone();
    let stop = json!({"type": "session/mcpServerStopRequested", "id": id});
    somebody_does(&ann, &mut bea, "0.5.2", stop).await;
    ann.until("the server has stopped", is("stopped")).await;
    ann.agrees("the stop").await;
    let start = json!({"type": "session/mcpServerStartRequested", "id": id});
    somebody_does(&ann, &mut bea, "0.5.2", start).await;
    ann.until("the server is ready again", is("ready")).await;
    ann.agrees("the start").await;
    let background = json!({"type": "session/mcpServerBackgroundRequested", "id": id});
    somebody_does(&ann, &mut bea, "1.0", background).await;
    ann.does(NATIVE, switched(&id, false)).await;
    ann.until("the server is off", |ann| !is_on(&server(ann)) && is("stopped")(ann)).await;
    ann.agrees("the switch").await;
}
