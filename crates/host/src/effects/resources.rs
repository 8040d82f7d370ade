//! Things beside files that messages refer to, and that only an agent can read (MC-13).
//!
//! Promises: what was read once is shown again; what cannot be read is an outcome, and is tried again in the next turn.
//! Must not know: where an agent has them from.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::{Agent, SessionFacts};
use compositor::resolve::{InlineLimits, Resolved, WhyUnavailable, resolve_to_body};
use compositor::{Part, View, part::Location};
use kernel::MessagePart;

/// Reads for the messages of a turn what its agent can read.
pub(crate) struct ResourceReader {
    pub agent: Arc<dyn Agent>,
    pub facts: SessionFacts,
    pub switched_off: BTreeSet<String>,
}

/// What one reference resolved to.
pub(super) struct ReadResource {
    pub part_id: String,
    pub resolved: Resolved,
    /// Whether it stays so.
    pub is_read: bool,
}

impl ResourceReader {
    /// Reads what messages refer to, of their parts that were not resolved before.
    pub(super) async fn read_all(
        &self,
        unresolved: impl Iterator<Item = &MessagePart>,
    ) -> Vec<ReadResource> {
        let mut read = Vec::new();
        for MessagePart { id, part, .. } in unresolved {
            if let Some(uri) = address_of(part) {
                if read.is_empty() {
                    // The first message of a session may come before anything runs that could be asked.
                    self.agent.prepare_commands(&self.facts, &self.switched_off).await;
                }
                let resolved = self.read(part, uri).await;
                read.push(ReadResource {
                    part_id: id.clone(),
                    is_read: resolved.is_some(),
                    resolved: resolved.unwrap_or(Resolved::Unavailable {
                        why: WhyUnavailable::NotFound,
                        lines: None,
                    }),
                });
            }
        }
        read
    }

    async fn read(&self, part: &Part, uri: &str) -> Option<Resolved> {
        match self.agent.read_resource(&self.facts, uri).await {
            Ok(body) => resolve_to_body(part, body, &InlineLimits::default()),
            Err(_) => {
                // Its message may hold what the user wrote.
                tracing::debug!(
                    "something that a message refers to cannot be read from its server"
                );
                None
            }
        }
    }
}

/// The address of something that only an agent can read.
fn address_of(part: &Part) -> Option<&str> {
    match part.view() {
        View::FileRef(file) => match file.location {
            Location::Url(url) => wire::mcp_uri::read(url).map(|_| url),
            Location::Path(_) | Location::ContentId(_) => None,
        },
        _ => None,
    }
}
