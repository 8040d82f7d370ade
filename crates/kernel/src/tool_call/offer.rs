//! The tools that active clients offer, and who of them is to carry one out (H-127).

use std::collections::BTreeMap;

use agent_api::ClientToolOffer;
use serde_json::Value;
use wire::ChannelUri;
use wire::published::state::{ToolCallClientContributor, ToolCallContributor};

use crate::state::Kernel;

/// A client that offers a tool, and its definition of it.
pub(crate) struct ToolOffer<'a> {
    client_id: &'a str,
    tool: &'a Value,
}

impl ToolOffer<'_> {
    /// What a call says about who carries it out.
    pub(super) fn contributor(&self) -> ToolCallContributor {
        ToolCallContributor::Client(ToolCallClientContributor {
            client_id: self.client_id.to_owned(),
        })
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.tool["title"].as_str()
    }
}

/// The active client that is to carry out a tool: whoever started the turn if it has it, else the first that is connected,
/// else the first that may come back.
pub(super) fn find_offer<'a>(
    kernel: &'a Kernel,
    uri: &ChannelUri,
    name: &str,
) -> Option<ToolOffer<'a>> {
    let offers = all_offers(kernel, uri).filter(|offer| offer.tool["name"] == name);
    offers.min_by_key(|offer| precedence(kernel, uri, offer))
}

/// Every tool that can be called now: each name once, as the client defines it that would be called.
pub(crate) fn list_offers(kernel: &Kernel, uri: &ChannelUri) -> Vec<ClientToolOffer> {
    let mut by_name: BTreeMap<&str, ToolOffer> = BTreeMap::new();
    for offer in all_offers(kernel, uri) {
        let Some(name) = offer.tool["name"].as_str() else {
            continue; // a tool without a name cannot be called
        };
        let other = by_name.get(name);
        let order = |offer: &ToolOffer| precedence(kernel, uri, offer);
        if other.is_none_or(|other| order(&offer) < order(other)) {
            by_name.insert(name, offer);
        }
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let offers = by_name.into_iter().map(|(name, offer)| ClientToolOffer {
        name: name.to_owned(),
        title: text(&offer.tool["title"]),
        description: text(&offer.tool["description"]),
        input_schema: offer.tool.get("inputSchema").cloned(),
    });
    offers.collect()
}

fn all_offers<'a>(
    kernel: &'a Kernel,
    uri: &ChannelUri,
) -> impl Iterator<Item = ToolOffer<'a>> + use<'a> {
    let clients = kernel.session_of(uri).state().active_clients.iter();
    clients.flat_map(|client| {
        let client_id = client["clientId"].as_str();
        let tools = client["tools"].as_array().into_iter().flatten();
        tools.filter_map(move |tool| {
            let client_id = client_id?;
            Some(ToolOffer { client_id, tool })
        })
    })
}

/// The smallest goes first; of equal ones the first.
fn precedence(kernel: &Kernel, uri: &ChannelUri, offer: &ToolOffer) -> (bool, bool) {
    let author = kernel.chat(uri).private().author.as_ref();
    let started_turn = author.is_some_and(|author| author.client_id == offer.client_id);
    (!started_turn, !kernel.peers().is_connected(offer.client_id))
}
