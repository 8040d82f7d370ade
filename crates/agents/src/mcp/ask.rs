//! What a server is asked beside calls of tools: prompts, resources, what an argument may be.
//!
//! Promises: every wait has a limit; what comes back is bounded.
//! Must not know: who asks.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompletionContext, GetPromptRequestParams, JsonObject,
    ReadResourceRequestParams, Reference,
};
use rmcp::service::ServiceError;
use tokio::time::timeout;

use super::connection::{LIST_MAX, McpConnection};
use super::content::McpContent;
use super::error::McpError;
use super::offers::ServerOffers;
use super::{offers, prompt};

/// How long a prompt, and something that is read, may take (MC-12).
const PROMPT_MAX: Duration = Duration::from_secs(10);
const READ_MAX: Duration = Duration::from_secs(30);

/// How long somebody who types waits for what a server suggests.
const COMPLETE_MAX: Duration = Duration::from_secs(1);

/// What is taken of that.
const COMPLETED_MAX: usize = 50;
const COMPLETED_BYTES_MAX: usize = 1_024;

impl McpConnection {
    /// What the server offers beside tools. What it cannot say, it does not have.
    pub(super) async fn list_offers(&self) -> ServerOffers {
        let Some(info) = self.peer.peer_info() else {
            return ServerOffers::default(); // it never said what it has
        };
        let mut offers = ServerOffers::default();
        if info.capabilities.prompts.is_some() {
            let prompts = timeout(LIST_MAX, offers::list_prompts(&self.peer)).await;
            offers.prompts = self.note_failure("prompts", prompts);
        }
        if info.capabilities.resources.is_some() {
            let resources = timeout(LIST_MAX, offers::list_resources(&self.peer)).await;
            offers.resources = self.note_failure("resources", resources);
            // Many servers have resources and no templates, and say so by an error.
            let templates = timeout(LIST_MAX, offers::list_templates(&self.peer)).await;
            offers.templates = templates.ok().and_then(Result::ok).unwrap_or_default();
        }
        offers
    }

    /// A list that did not come is said in the server's own log: the tools are there without it.
    fn note_failure<T>(
        &self,
        what: &str,
        listed: Result<Result<Vec<T>, McpError>, tokio::time::error::Elapsed>,
    ) -> Vec<T> {
        match listed {
            Ok(Ok(listed)) => return listed,
            Ok(Err(error)) => {
                let line = format!("(its {what} could not be listed: {error})");
                self.shared.log.push_line(&line);
            }
            Err(_) => {
                let line = format!("(its {what} were not listed in time)");
                self.shared.log.push_line(&line);
            }
        }
        Vec::new()
    }

    /// The text of a prompt.
    pub(super) async fn get_prompt(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Result<String, McpError> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let got = self.request(PROMPT_MAX, self.peer.get_prompt(params)).await?;
        prompt::to_text(got.messages)
    }

    /// What can be read at an address of the server.
    pub(super) async fn read(&self, uri: &str) -> Result<Vec<McpContent>, McpError> {
        let params = ReadResourceRequestParams::new(uri);
        let read = self.request(READ_MAX, self.peer.read_resource(params));
        let contents = read.await?.contents.into_iter();
        Ok(contents.map(McpContent::read_resource).collect())
    }

    /// What an argument of a prompt, or the variable of a template, may be.
    pub(super) async fn complete(
        &self,
        reference: Reference,
        argument: ArgumentInfo,
        before: BTreeMap<String, String>,
    ) -> Result<Vec<String>, McpError> {
        let info = self.peer.peer_info();
        if info.is_none_or(|info| info.capabilities.completions.is_none()) {
            return Ok(Vec::new());
        }
        let mut params = CompleteRequestParams::new(reference, argument);
        if !before.is_empty() {
            let context = CompletionContext::with_arguments(before.into_iter().collect());
            params = params.with_context(context);
        }
        let completed = self.request(COMPLETE_MAX, self.peer.complete(params)).await?;
        let values = completed
            .completion
            .values
            .into_iter()
            .filter(|value| value.len() <= COMPLETED_BYTES_MAX);
        Ok(values.take(COMPLETED_MAX).collect())
    }

    /// Waits for the answer to a request, for so long.
    async fn request<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, McpError> {
        match timeout(limit, request).await {
            Ok(answered) => match answered.map_err(McpError::of_request) {
                Err(McpError::Ended(_)) => Err(self.end_error().await),
                answered => answered.map_err(|error| error.without(&self.shared.secrets)),
            },
            Err(_) => Err(McpError::Silent(limit, String::new())),
        }
    }
}
