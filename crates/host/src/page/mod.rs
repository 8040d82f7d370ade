//! What the page is served beside the protocol: text as trees, content by address, what models were sent.
//!
//! Promises: nothing here holds up a task's thread; what is kept in memory is bounded.
//! Must not know: HTTP, sockets, tokens.

mod addresses;
mod markup_cache;
mod prompts;
mod render_markup;
mod render_service;
mod served_content;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::Digest;

use crate::blobs::{BlobError, Blobs, Found};
use crate::clock::Clock;
use crate::effects::Bodies;
use crate::sign_in::PageSignIns;
use crate::space_agents::SpaceAgents;
use crate::task;

pub(crate) use addresses::{AddressFault, AddressParts, ContentAddresses, end_of_next_day};
pub(crate) use prompts::{PromptError, PromptReader};
pub(crate) use render_markup::MarkupItem;
pub(crate) use render_service::MarkupService;
pub(crate) use served_content::{ServedAs, served_as};

/// The largest content that is served by its address.
pub(crate) const CONTENT_BYTES_MAX: u64 = 64 << 20;
/// Content that is in memory at once on its way to browsers; who finds no room waits.
const SERVED_BYTES_MAX: u32 = 128 << 20;

/// All of it.
pub struct PageServices {
    pub(crate) bodies: Bodies,
    pub(crate) markup: MarkupService,
    pub(crate) addresses: ContentAddresses,
    /// None: the journal is in memory, and nothing is stored of what was sent.
    pub(crate) prompts: Option<PromptReader>,
    /// How many answers of what was sent are read at once.
    pub(crate) prompt_reads: Arc<Semaphore>,
    /// Sign-ins to MCP servers that devices began.
    pub(crate) sign_ins: PageSignIns,
    served: Arc<Semaphore>,
    agents: Option<SpaceAgents>,
}

impl PageServices {
    /// For a store that nobody else uses. The key of addresses follows from `token`.
    pub fn new(blobs: Arc<dyn Blobs>, token: Option<&str>) -> Result<Self, getrandom::Error> {
        let limits = kernel::Limits::default();
        Self::over(Bodies::new(blobs, Clock::start(), &limits), token)
    }

    /// Over the store of a host.
    pub(crate) fn over(bodies: Bodies, token: Option<&str>) -> Result<Self, getrandom::Error> {
        Ok(Self {
            markup: MarkupService::new(bodies.store()),
            addresses: ContentAddresses::new(token)?,
            bodies,
            prompts: None,
            prompt_reads: Arc::new(Semaphore::new(1)),
            sign_ins: PageSignIns::default(),
            served: Arc::new(Semaphore::new(SERVED_BYTES_MAX as usize)),
            agents: None,
        })
    }

    /// Shows what the processes of these agents print.
    #[must_use]
    pub(crate) fn with_agents(mut self, agents: SpaceAgents) -> Self {
        self.agents = Some(agents);
        self
    }

    /// What the process of an agent last printed; none if it has no process, or is not there.
    pub(crate) fn agent_log(&self, id: &str) -> Option<String> {
        let mut agents = self.agents.iter().flat_map(SpaceAgents::made);
        agents.find(|agent| agent.info().provider == id)?.log_tail()
    }

    /// The same, showing what models were sent, without these sections of prompts.
    pub fn with_prompts(self, data: PathBuf, restricted: &[String]) -> Self {
        let prompts = PromptReader::new(data, self.bodies.store(), restricted);
        let prompts = Some(prompts);
        Self { prompts, ..self }
    }

    /// Content whole, if it is there and not too large; it has its room until the last of it is sent.
    pub(crate) async fn read_content(&self, digest: Digest) -> Result<Option<Bytes>, BlobError> {
        let permits = Arc::clone(&self.served);
        // Until its size is known it may be as large as any.
        let most = u32::try_from(CONTENT_BYTES_MAX).unwrap_or(SERVED_BYTES_MAX);
        let room = permits
            .acquire_many_owned(most)
            .await
            .map_err(|closed| BlobError::Unreadable(closed.to_string()))?;
        let store = self.bodies.store();
        // The permit moves into the reading task: the request may be gone before it ends.
        let read = move || (store.read(&digest, CONTENT_BYTES_MAX), room);
        let read = task::spawn_blocking(read).await;
        let (read, mut room) = read.map_err(|died| BlobError::Unreadable(died.to_string()))?;
        Ok(match read? {
            Found::Body(body) => {
                let spare = room.num_permits().saturating_sub(body.len());
                drop(room.split(spare));
                Some(Bytes::from_owner(HeldContent { body, _room: room }))
            }
            Found::Missing | Found::TooLarge { .. } => None,
        })
    }
}

/// A body that gives its room back with itself.
struct HeldContent {
    body: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for HeldContent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}
