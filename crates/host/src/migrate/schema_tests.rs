//! The tables of a database are what is documented, and all of what they hold of a space is carried.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use tokio_postgres::Client;

use super::row::ColumnKind;
use super::tables::TABLES;
use super::*;
use crate::accounts::AccountAdmin;
use crate::journal::postgres::test_server::TestServer;

/// What is about a space and stays with it: who may use it, who serves it, how far a migration came, which days its log
/// begins with. Bodies are carried one by one.
const NOT_CARRIED: [&str; 10] = [
    "blob",
    "blob_chunk",
    "blob_grave",
    "lease",
    "log_day",
    "member",
    "move_order",
    "moved_space",
    "space_limit",
    "token",
];

/// A database as the program makes it.
async fn make(settings: &PostgresSettings) -> Client {
    AccountAdmin::connect(settings).await.unwrap();
    postgres_side::connect(&settings.url).await.unwrap()
}

const COLUMNS: &str =
    "SELECT c.table_name::text, c.column_name::text, c.data_type::text, c.is_nullable = 'YES',
         c.is_identity = 'YES' FROM information_schema.columns c WHERE c.table_schema = 'greenroom'
     ORDER BY c.table_name::text COLLATE \"C\", c.ordinal_position";
const INDEXES: &str =
    "SELECT tablename::text, indexdef FROM pg_indexes WHERE schemaname = 'greenroom'
     ORDER BY tablename::text COLLATE \"C\", indexname::text COLLATE \"C\"";

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_are_what_is_documented() {
    let Some(server) = TestServer::start() else { return };
    let client = make(&server.make_database()).await;
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    for row in client.query(COLUMNS, &[]).await.unwrap() {
        let (name, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let (may_be_null, is_identity): (bool, bool) = (row.get(3), row.get(4));
        let table = tables.entry(name).or_default();
        write!(table, "    {column} {kind}").unwrap();
        table.push_str(if may_be_null { "" } else { " not null" });
        table.push_str(if is_identity { " identity\n" } else { "\n" });
    }
    for row in client.query(INDEXES, &[]).await.unwrap() {
        let (name, index): (String, String) = (row.get(0), row.get(1));
        let index = index.split_once(" ON ").unwrap();
        let unique = if index.0.contains("UNIQUE") { "unique " } else { "" };
        writeln!(tables.get_mut(&name).unwrap(), "    {unique}index on {}", index.1).unwrap();
    }
    let text = tables.iter().fold(String::new(), |mut text, (name, body)| {
        writeln!(text, "{name}\n{body}").unwrap();
        text
    });
    // After a change that is meant: UPDATE_EXPECT=1 with this test, and a thought for databases that exist.
    expect_file!["../../../../docs/postgres-tables.txt"].assert_eq(&text);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_column_of_a_space_is_carried_or_stays_for_a_reason() {
    let Some(server) = TestServer::start() else { return };
    let client = make(&server.make_database()).await;
    let mut there: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in client.query(COLUMNS, &[]).await.unwrap() {
        let is_identity: bool = row.get(4);
        let column: String = row.get(1);
        if !is_identity {
            there.entry(row.get(0)).or_default().push((column, row.get(2)));
        }
    }
    there.retain(|name, columns| {
        let of_space = columns.first().is_some_and(|(column, _)| column == "space");
        of_space && !NOT_CARRIED.contains(&name.as_str())
    });
    let carried: BTreeMap<String, Vec<(String, String)>> = TABLES
        .iter()
        .map(|table| {
            let columns = table.columns.iter().map(|(name, kind)| {
                let kind = match kind {
                    ColumnKind::Small => "smallint",
                    ColumnKind::Big => "bigint",
                    ColumnKind::Flag => "boolean",
                    ColumnKind::Text => "text",
                    ColumnKind::Bytes => "bytea",
                };
                ((*name).to_owned(), kind.to_owned())
            });
            let space = ("space".to_owned(), "bigint".to_owned());
            let columns = std::iter::once(space).chain(columns).collect();
            (table.name.to_owned(), columns)
        })
        .collect();
    let sorted = |tables: BTreeMap<String, Vec<(String, String)>>| {
        let sorted = tables.into_iter().map(|(name, mut columns)| {
            columns.sort();
            (name, columns)
        });
        sorted.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(sorted(there), sorted(carried));
}
