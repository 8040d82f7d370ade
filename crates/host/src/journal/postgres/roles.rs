//! Who may do what in the database: `greenroom_admin` makes and changes tables, `greenroom_node` reads and writes their rows.
//!
//! Both are optional: where one role does everything, nothing is granted to anybody.
//!
//! Promises: whoever makes tables gives their rows to `greenroom_node`, if there is such a role, and those of tables that it makes
//! later; a role that may not make what is missing is told who may.
//! Must not know: what the tables are for.

use super::connection::{PooledConnection, StatementError};
use crate::journal::JournalError;

/// What PostgreSQL calls it when a role may not do something.
const NOT_ALLOWED: &str = "42501";

/// Rows, and the numbers that a leap moves. Nothing else: no table, no function, no other role.
const GRANT: &str = "DO $$ BEGIN IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'greenroom_node') THEN
         GRANT USAGE ON SCHEMA greenroom TO greenroom_node;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA greenroom TO greenroom_node;
         GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA greenroom TO greenroom_node;
         ALTER DEFAULT PRIVILEGES IN SCHEMA greenroom GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO greenroom_node;
         ALTER DEFAULT PRIVILEGES IN SCHEMA greenroom GRANT SELECT, USAGE, UPDATE ON SEQUENCES TO greenroom_node;
     END IF; END $$";

/// Gives rows to the role of nodes, if there is one.
pub(super) async fn grant_rows(connection: &mut PooledConnection) -> Result<(), StatementError> {
    connection.run(GRANT).await
}

/// Why tables could not be made or added to.
pub(super) fn explain_refusal(error: &StatementError) -> JournalError {
    match error.code() {
        NOT_ALLOWED => JournalError::Unwritable(format!(
            "this role may not make the tables that are missing ({}); run `greenroom database prepare` as one that may, such as \
             greenroom_admin",
            error.words()
        )),
        _ => JournalError::Unwritable(error.words()),
    }
}
