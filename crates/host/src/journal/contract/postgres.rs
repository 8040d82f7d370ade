//! The journal in PostgreSQL as the contract opens it: a server, a database, and a space for each promise.

use std::cell::Cell;
use std::sync::Arc;

use kernel::{Answer, Batch, Boot, Query};
use tokio::runtime::Runtime;
use wire::Digest;

use super::JournalUnderTest;
use crate::journal::postgres::test_server::TestServer;
use crate::journal::{
    Journal, JournalError, JournalHandle, JournalReader, PostgresJournal, PostgresNode,
};

pub(super) struct ServerBooks {
    node: Arc<PostgresNode>,
    runtime: Arc<Runtime>,
    spaces: Cell<u32>,
    _server: TestServer,
}

impl ServerBooks {
    pub(super) fn start() -> Option<Self> {
        let server = TestServer::start()?;
        let runtime = Arc::new(Runtime::new().unwrap());
        let node = runtime.block_on(PostgresNode::connect(&server.make_database()));
        Some(Self {
            node: node.unwrap(),
            runtime,
            spaces: Cell::new(0),
            _server: server,
        })
    }

    pub(super) fn postgres(&self) -> JournalUnderTest {
        self.spaces.set(self.spaces.get() + 1);
        let name = format!("space {}", self.spaces.get());
        let (node, runtime) = (Arc::clone(&self.node), Arc::clone(&self.runtime));
        let open = move || {
            let opened = runtime.block_on(node.open_space(&name));
            let runtime = Arc::clone(&runtime);
            let (journal, _) = opened.unwrap();
            Box::new(BlockingPostgres { journal, runtime }) as Box<dyn Journal>
        };
        JournalUnderTest::opened_by(Box::new(open), None)
    }

    pub(super) fn faulty_postgres(&self) -> JournalUnderTest {
        self.postgres().made_faulty()
    }
}

/// The same journal for callers that block.
#[derive(Clone)]
struct BlockingPostgres {
    journal: PostgresJournal,
    runtime: Arc<Runtime>,
}

impl BlockingPostgres {
    fn handle(&self) -> JournalHandle {
        JournalHandle::over(Arc::new(self.journal.clone()))
    }
}

impl Journal for BlockingPostgres {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        self.runtime.block_on(self.journal.boot())
    }

    fn append(&mut self, batch: &Batch) -> Result<(), JournalError> {
        let written = self.runtime.block_on(self.handle().commit(batch.clone()));
        written.map_err(|refused| refused.error)
    }

    fn probe(&mut self) -> Result<(), JournalError> {
        self.runtime.block_on(self.handle().probe())
    }

    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        let found = self.journal.find_unreferenced(digests.to_vec());
        self.runtime.block_on(found)
    }

    fn release_space(&mut self) -> Result<bool, JournalError> {
        Ok(false)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        Ok(Box::new(self.clone()))
    }
}

impl JournalReader for BlockingPostgres {
    fn read(&mut self, query: &Query) -> Result<Answer, JournalError> {
        self.runtime.block_on(self.handle().read(query.clone()))
    }
}
