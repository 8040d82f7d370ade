//! What MCP servers of a session want somebody to sign in for (MC-14).
//!
//! Promises: what is read is what the host published; nothing of it is trusted here.
//! Must not know: how anybody signs in, tokens.

use serde_json::Value;
use wire::Object;

use super::OpenChat;

/// A token that is wanted, and what must be known to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedToken {
    /// What it is for.
    pub resource: String,
    pub authorization_servers: Vec<String>,
    pub scopes: Vec<String>,
    /// The client that the user registered, and its secret if clients may know it.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// Another token of the same kind helps: there was none, or it ended.
    pub is_renewable: bool,
    /// Why, in the server's own words.
    pub description: Option<String>,
}

impl WantedToken {
    /// What a tool call waits for.
    pub fn of_call(call: &Object) -> Option<Self> {
        Self::read(call.get("auth")?)
    }

    /// `McpAuthRequirement`, or the state of a server that is one.
    fn read(auth: &Value) -> Option<Self> {
        let texts = |list: &Value| {
            let texts = list
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Vec<String>>()
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            resource: text(&auth["resource"]["resource"])?,
            authorization_servers: texts(&auth["resource"]["authorization_servers"]),
            scopes: texts(&auth["requiredScopes"]),
            client_id: text(&auth["oauthClient"]["clientId"]),
            client_secret: text(&auth["oauthClient"]["clientSecret"]),
            is_renewable: auth["reason"] != "insufficientScope",
            description: text(&auth["description"]),
        })
    }
}

impl OpenChat {
    /// The servers of the session that want a token, by name.
    pub fn wanted_tokens(&self) -> Vec<(String, WantedToken)> {
        let Some(session) = self.session_state() else {
            return Vec::new(); // between two connections the session may not be held
        };
        let entries = session.customizations.iter().flatten().flat_map(|entry| {
            let children = entry["children"].as_array().into_iter().flatten();
            std::iter::once(entry).chain(children)
        });
        let wanting =
            entries.filter(|entry| entry["state"]["kind"] == "authRequired").filter_map(|entry| {
                let name = entry["name"].as_str().unwrap_or_default();
                Some((name.to_owned(), WantedToken::read(&entry["state"])?))
            });
        wanting.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wanted_is_read_from_a_call() {
        let call = json!({"auth": {
            "reason": "expired", "requiredScopes": ["read", 1],
            "resource": {"resource": "https://h/mcp", "authorization_servers": ["https://a"]},
            "oauthClient": {"clientId": "c"},
        }});
        let wanted = WantedToken::of_call(call.as_object().unwrap()).unwrap();
        assert_eq!(wanted.resource, "https://h/mcp");
        assert_eq!(wanted.authorization_servers, ["https://a"]);
        assert_eq!(wanted.scopes, ["read"]);
        assert_eq!(wanted.client_id.as_deref(), Some("c"));
        assert!(wanted.is_renewable);
        let more = json!({"auth": {"reason": "insufficientScope", "resource": {"resource": "r"}}});
        let more = WantedToken::of_call(more.as_object().unwrap()).unwrap();
        assert!(!more.is_renewable, "the same again has no more scopes");
        let none = json!({"auth": {"resource": "https://h"}});
        assert_eq!(WantedToken::of_call(none.as_object().unwrap()), None);
    }
}
