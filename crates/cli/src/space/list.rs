//! What spaces there are, who has tokens for one, and what each takes.

use host::accounts::{ListedSpace, ListedToken, SpaceLoad};
use serde_json::{Value, json};

use super::DatabaseOptions;
use super::token::date_of;
use crate::clock::now;
use crate::exit::Exit;
use crate::format::{format_age, format_bytes, format_table};
use crate::output::{print, print_json};
use crate::terminal::escape_line;

/// List the spaces; of one that is named, its tokens
#[derive(Debug, clap::Args)]
#[command(
    after_help = "States: `served` by a node, `idle` until somebody comes, or `closed`: moved to a directory, being filled from one, or being removed."
)]
pub(super) struct SpaceListOptions {
    /// A space, to list its tokens
    name: Option<String>,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Show the load and the size of the spaces, the busiest first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is recorded a second, clients and turns are as their nodes wrote them down in the last seconds; a space in which nothing is done has none."
)]
pub(super) struct TopOptions {
    /// The largest first
    #[arg(long)]
    largest: bool,
    /// How many spaces are shown
    #[arg(short = 'n', long, default_value_t = 20)]
    count: usize,
    #[command(flatten)]
    database: DatabaseOptions,
}

pub(super) async fn list(options: &SpaceListOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect().await?;
    let json = options.database.json;
    match &options.name {
        None => {
            let spaces = admin.list_spaces().await?;
            if json {
                print_json(&spaces.iter().map(space_json).collect::<Value>())?
            } else if spaces.is_empty() {
                print("There is no space. `greenroom space create NAME` makes one.\n")?;
            } else {
                print(&space_table(&spaces))?
            }
        }
        Some(name) => {
            let tokens = admin.list_tokens(name).await?;
            if json {
                print_json(&tokens.iter().map(token_json).collect::<Value>())?
            } else if tokens.is_empty() {
                print(&format!(
                    "Nobody has a token for {name}. `greenroom space token {name} --for WHO --role member` makes one.\n",
                    name = escape_line(name)
                ))?
            } else {
                print(&token_table(&tokens))?
            }
        }
    }
    Ok(Exit::Complete)
}

fn space_json(space: &ListedSpace) -> Value {
    json!({
        "name": space.name,
        "seq": space.seq,
        "members": space.members,
        "tokens": space.tokens,
        "state": state_of(space),
    })
}

fn state_of(space: &ListedSpace) -> &'static str {
    match (space.is_removed, space.is_held) {
        (true, _) => "closed",
        (false, true) => "served",
        (false, false) => "idle",
    }
}

fn space_table(spaces: &[ListedSpace]) -> String {
    let titles = ["NAME", "MEMBERS", "TOKENS", "SEQ", "STATE"].map(str::to_owned);
    let row = |space: &ListedSpace| {
        [
            escape_line(&space.name),
            space.members.to_string(),
            space.tokens.to_string(),
            space.seq.to_string(),
            state_of(space).to_owned(),
        ]
    };
    let rows: Vec<_> = std::iter::once(titles).chain(spaces.iter().map(row)).collect();
    format_table(&rows)
}

fn token_json(token: &ListedToken) -> Value {
    json!({
        "id": token.id,
        "principal": token.principal,
        "role": token.role.name(),
        "createdAt": date_of(token.made),
        "expiresAt": token.expires.map(date_of),
        "counts": !token.is_revoked && !token.has_expired,
    })
}

fn token_table(tokens: &[ListedToken]) -> String {
    let now = now();
    let titles = ["ID", "FOR", "ROLE", "MADE", "ENDS"].map(str::to_owned);
    let row = |token: &ListedToken| {
        let until = match (token.is_revoked, token.has_expired, token.expires) {
            (true, _, _) => "revoked".to_owned(),
            (false, true, _) => "expired".to_owned(),
            (false, false, Some(expires)) => date_of(expires),
            (false, false, None) => "never".to_owned(),
        };
        [
            token.id.clone(),
            escape_line(&token.principal),
            token.role.name().to_owned(),
            format_age(&date_of(token.made), now),
            until,
        ]
    };
    let rows: Vec<_> = std::iter::once(titles).chain(tokens.iter().map(row)).collect();
    format_table(&rows)
}

pub(super) async fn top(options: &TopOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect().await?;
    let mut loads = admin.loads().await?;
    if !options.largest {
        // Those that do the same stay in the order of their sizes.
        loads.sort_by(|a, b| {
            let does = |load: &SpaceLoad| {
                load.activity
                    .as_ref()
                    .map_or((0.0, 0, 0), |(_, it)| (it.bytes_per_s, it.turns, it.connections))
            };
            let (a, b) = (does(a), does(b));
            b.0.total_cmp(&a.0).then_with(|| (b.1, b.2).cmp(&(a.1, a.2)))
        });
    }
    loads.truncate(options.count);
    if options.database.json {
        print_json(&loads.iter().map(load_json).collect::<Value>())?
    } else {
        print(&load_table(&loads))?
    }
    Ok(Exit::Complete)
}

fn load_json(load: &SpaceLoad) -> Value {
    let (node, rate) = load.activity.clone().unzip();
    let rate = rate.unwrap_or_default();
    json!({
        "name": load.name,
        "node": node,
        "recordsPerSecond": rate.records_per_s,
        "bytesPerSecond": rate.bytes_per_s,
        "connections": rate.connections,
        "turns": rate.turns,
        "seq": load.seq,
        "sessions": load.sessions,
        "actions": load.actions,
        "journalBytes": load.journal_bytes,
        "contentBytes": load.content_bytes,
    })
}

fn load_table(loads: &[SpaceLoad]) -> String {
    let titles = [
        "NAME",
        "NODE",
        "RECORDS/S",
        "BYTES/S",
        "CLIENTS",
        "TURNS",
        "SESSIONS",
        "ACTIONS",
        "JOURNAL",
        "CONTENT",
        "SEQ",
    ]
    .map(str::to_owned);
    let bytes = |count: i64| format_bytes(u64::try_from(count).unwrap_or(0));
    let row = |load: &SpaceLoad| {
        let (node, rate) = load.activity.clone().unzip();
        let rate = rate.unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what is written a second is neither negative nor beyond what a number holds"
        )]
        let bytes_per_s = rate.bytes_per_s as u64;
        [
            escape_line(&load.name),
            escape_line(node.as_deref().unwrap_or("-")),
            format!("{:.1}", rate.records_per_s),
            format_bytes(bytes_per_s),
            rate.connections.to_string(),
            rate.turns.to_string(),
            load.sessions.to_string(),
            load.actions.to_string(),
            bytes(load.journal_bytes),
            bytes(load.content_bytes),
            load.seq.to_string(),
        ]
    };
    let rows: Vec<_> = std::iter::once(titles).chain(loads.iter().map(row)).collect();
    format_table(&rows)
}
