//! The journal in PostgreSQL as the contract opens it: a server, a database, and a space for each promise.

use std::cell::Cell;
use std::sync::Arc;

use kernel::{Answer, Batch, Boot, Query};
use tokio::runtime::Runtime;
use wire::Digest;

use super::JournalUnderTest;
use super::twin::{Twin, record_additions};
use crate::journal::postgres::test_server::{TestServer, query_sql};
use crate::journal::{
    Journal, JournalError, JournalHandle, JournalReader, PostgresJournal, PostgresNode,
};

pub(super) struct ServerBooks {
    pub(super) node: Arc<PostgresNode>,
    pub(super) runtime: Arc<Runtime>,
    spaces: Cell<u32>,
    database: String,
    server: TestServer,
}

impl ServerBooks {
    pub(super) fn start() -> Option<Self> {
        let server = TestServer::start()?;
        let runtime = Arc::new(Runtime::new().unwrap());
        let settings = server.make_database();
        let node = runtime.block_on(PostgresNode::connect(&settings));
        Some(Self {
            node: node.unwrap(),
            runtime,
            spaces: Cell::new(0),
            database: settings.url.rsplit_once("dbname=").unwrap().1.to_owned(),
            server,
        })
    }

    pub(super) fn ask(&self, sql: &str) -> String {
        query_sql(self.server.socket(), &self.database, sql)
    }

    /// A name that no space has yet.
    pub(super) fn new_name(&self) -> String {
        self.spaces.set(self.spaces.get() + 1);
        format!("space-{}", self.spaces.get())
    }

    pub(super) fn postgres(&self, promise: &dyn Fn(&mut JournalUnderTest)) {
        promise(&mut self.open_book());
    }

    pub(super) fn faulty_postgres(&self, promise: &dyn Fn(&mut JournalUnderTest)) {
        promise(&mut self.open_book().made_faulty());
    }

    /// Beside a space that has the same, and must have it afterwards.
    pub(super) fn postgres_beside_a_twin(&self, promise: &dyn Fn(&mut JournalUnderTest)) {
        let twin = Twin::fill(self, record_additions(promise));
        let before = twin.rows(self);
        promise(&mut self.open_book());
        assert_eq!(twin.rows(self), before, "another space was changed");
    }

    fn open_book(&self) -> JournalUnderTest {
        let name = self.new_name();
        let (node, runtime) = (Arc::clone(&self.node), Arc::clone(&self.runtime));
        let open = move || {
            let opened = runtime.block_on(node.open_space(&name));
            let runtime = Arc::clone(&runtime);
            let (journal, _) = opened.unwrap();
            Box::new(BlockingPostgres { journal, runtime }) as Box<dyn Journal>
        };
        JournalUnderTest::opened_by(Box::new(open), None)
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
        self.runtime.block_on(self.handle().commit(batch.clone())).map_err(|refused| refused.error)
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
