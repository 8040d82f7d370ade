//! Bringing a token for an agent or an MCP server that wants one.
//!
//! Promises: the token is in no error and no `Debug`.
//! Must not know: where it comes from.

use serde_json::json;
use wire::{ChannelUri, Object};

use crate::{ClientError, Live};

/// Brings a token for a resource, for as long as it is good; an empty one takes back what was brought before.
pub async fn bring_token(
    live: &Live,
    resource: &str,
    token: &str,
    expires_in_s: Option<u64>,
) -> Result<(), ClientError> {
    let mut params = json!({
        "channel": ChannelUri::root().as_str(), "resource": resource, "token": token,
    });
    if let Some(seconds) = expires_in_s {
        params["expiresIn"] = json!(seconds);
    }
    live.request("authenticate", params).await.map(drop)
}

/// What a token is wanted for by a tool call that waits for one.
pub fn wanted_resource(call: &Object) -> Option<&str> {
    call.get("auth")?["resource"]["resource"].as_str()
}
