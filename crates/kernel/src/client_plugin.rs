//! Plugins that active clients bring along (H-303, CU-7): which there are, by what the clients say. Their files are read by
//! the host, which asks the client for them.

use serde_json::Value;
use wire::state::SessionState;

/// A plugin that an active client of a session has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginOffer {
    pub client_id: String,
    /// The client's own URI of its directory.
    pub uri: String,
    /// As the client calls it.
    pub name: String,
    /// Another one when its files changed.
    pub nonce: Option<String>,
}

/// The plugins of a session's active clients, in the order of the clients. One that says nothing of where it is, is none.
pub(crate) fn offers_of(session: &SessionState) -> Vec<PluginOffer> {
    entries(session)
        .filter_map(|(client_id, entry)| {
            let uri = entry["uri"].as_str()?;
            Some(PluginOffer {
                client_id: client_id.to_owned(),
                uri: uri.to_owned(),
                name: entry["name"].as_str().unwrap_or(uri).to_owned(),
                nonce: entry["nonce"].as_str().map(str::to_owned),
            })
        })
        .collect()
}

/// Whether plugins of clients are offered, or published.
pub(crate) fn has_any(session: &SessionState) -> bool {
    let published = session.customizations.iter().flatten();
    entries(session).next().is_some() || published.into_iter().any(is_of_client)
}

fn is_of_client(entry: &Value) -> bool {
    entry.get("clientId").is_some()
}

/// What a client decided for all sessions of a plugin of its own and of what is in it, by the ids of what is published.
pub(crate) fn decisions_of_client(
    session: &SessionState,
    published: &Value,
) -> Vec<(String, bool)> {
    let mut own = entries(session);
    let own = own.find(|(client_id, entry)| {
        published["clientId"] == **client_id && published["uri"] == entry["uri"]
    });
    let Some((_, own)) = own else {
        return Vec::new(); // no client's, or that client is gone
    };
    let children = published["children"].as_array().into_iter().flatten().filter_map(|child| {
        let decided = global(own["childEnablement"].get(child["name"].as_str()?)?)?;
        Some((child["id"].as_str()?.to_owned(), decided))
    });
    let whole = global(&own["enablement"])
        .and_then(|decided| Some((published["id"].as_str()?.to_owned(), decided)));
    whole.into_iter().chain(children).collect()
}

/// The decision for all sessions in a list of decisions.
fn global(decisions: &Value) -> Option<bool> {
    let mut decisions = decisions.as_array()?.iter();
    decisions.find(|decision| decision["kind"] == "global")?["enabled"].as_bool()
}

fn entries(session: &SessionState) -> impl Iterator<Item = (&str, &Value)> {
    session.active_clients.iter().flat_map(|client| {
        let client_id = client["clientId"].as_str().unwrap_or_default();
        let plugins = client["customizations"].as_array().into_iter().flatten();
        plugins.map(move |plugin| (client_id, plugin))
    })
}
