//! The tables of accounts, made where they are missing.

use super::AccountError;
use crate::journal::JournalError;
use crate::journal::postgres::connection::PooledConnection;

const SCHEMA: &str = include_str!("schema.sql");

/// Makes them where a database is prepared.
pub(crate) async fn make_account_tables(
    connection: &mut PooledConnection,
) -> Result<(), JournalError> {
    make_tables(connection).await.map_err(|error| JournalError::Unwritable(error.to_string()))
}

/// Makes the tables if there are none. Another process may do so at the same time.
pub(super) async fn make_tables(connection: &mut PooledConnection) -> Result<(), AccountError> {
    if have_tables(connection).await? {
        return Ok(());
    }
    let made = connection.run(&format!("BEGIN;\n{SCHEMA}\nCOMMIT")).await;
    if let Err(error) = made {
        connection.run("ROLLBACK").await?;
        if !have_tables(connection).await? {
            return Err(error.into());
        }
    }
    Ok(())
}

async fn have_tables(connection: &mut PooledConnection) -> Result<bool, AccountError> {
    let sql = "SELECT to_regclass('greenroom.account_change') IS NOT NULL";
    let rows = connection.query(sql, &[]).await?;
    let found = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(found.unwrap_or(false))
}
