//! A server that can be asked for prompts, resources and what an argument may be (MC-12, MC-13).
//!
//! Promises: what is asked goes over the connection that the server had when it was looked at. One that is opened later, perhaps with
//! somebody else's token, is not used: then the answer is an error (H-318).
//! Must not know: who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{ArgumentInfo, JsonObject, Reference};

use crate::mcp::connection::McpConnection;
use crate::mcp::content::McpContent;
use crate::mcp::error::McpError;
use crate::mcp::offers::{McpTemplate, ServerOffers};

/// A server with the connection that it has at this moment.
pub struct ReadyServer {
    name: String,
    connection: Arc<McpConnection>,
    offers: Arc<ServerOffers>,
}

impl ReadyServer {
    pub(super) fn new(
        name: String,
        connection: Arc<McpConnection>,
        offers: Arc<ServerOffers>,
    ) -> Self {
        Self { name, connection, offers }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The prompts and resources that it has.
    pub fn offers(&self) -> &ServerOffers {
        &self.offers
    }

    /// The text of a prompt.
    pub async fn get_prompt(&self, name: &str, arguments: JsonObject) -> Result<String, McpError> {
        self.connection.get_prompt(name, arguments).await
    }

    /// What can be read at an address of the server.
    pub async fn read(&self, uri: &str) -> Result<Vec<McpContent>, McpError> {
        self.connection.read(uri).await
    }

    /// Completes what is typed of a prompt's argument; the arguments before it are known.
    pub async fn complete_argument(
        &self,
        prompt: &str,
        argument: &str,
        typed: &str,
        before: BTreeMap<String, String>,
    ) -> Result<Vec<String>, McpError> {
        let reference = Reference::for_prompt(prompt);
        let typed = ArgumentInfo::new(argument, typed);
        self.connection.complete(reference, typed, before).await
    }

    /// What the variable of a template may be.
    pub async fn complete_template(
        &self,
        template: &McpTemplate,
        value: &str,
    ) -> Result<Vec<String>, McpError> {
        let reference = Reference::for_resource(&template.template);
        let typed = ArgumentInfo::new(&template.variable, value);
        let before = BTreeMap::new();
        self.connection.complete(reference, typed, before).await
    }
}
