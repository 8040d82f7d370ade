//! Making a space and removing one.

use serde_json::json;

use super::DatabaseOptions;
use crate::ask::confirm;
use crate::exit::Exit;
use crate::format::format_count;
use crate::output::{print, print_json};
use crate::terminal::escape_line;

/// Make a space
#[derive(Debug, clap::Args)]
pub(super) struct SpaceCreateOptions {
    /// Its name: small letters, digits and `-`
    name: String,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Remove a space with all its sessions, for good; asks first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Its tokens stop counting at once and its connections close. `greenroom space copy NAME DIR` keeps a copy in a directory."
)]
pub(super) struct SpaceRemoveOptions {
    /// The space
    name: String,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    database: DatabaseOptions,
}

pub(super) async fn create(options: &SpaceCreateOptions) -> anyhow::Result<Exit> {
    options.database.connect().await?.create_space(&options.name).await?;
    if options.database.json {
        print_json(&json!({"name": options.name}))?;
    } else {
        print(&format!(
            "The space {name} is there. Give somebody a token: greenroom space token {name} --for WHO --role owner\n",
            name = options.name
        ))?;
    }
    Ok(Exit::Complete)
}

pub(super) async fn remove(options: &SpaceRemoveOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect().await?;
    let name = &options.name;
    let spaces = admin.list_spaces().await?;
    let Some(space) = spaces.iter().find(|space| space.name == *name) else {
        anyhow::bail!(host::accounts::AccountError::UnknownSpace(name.clone()));
    };
    let question = format!(
        "Remove the space {} with everything in it ({}, {})? This cannot be undone.",
        escape_line(name),
        format_count(space.members, "member"),
        format_count(space.tokens, "token"),
    );
    if !confirm(&question, options.yes)? {
        print("Nothing was removed.\n")?;
        return Ok(Exit::Cancelled);
    }
    let removed = admin.remove_space(name).await?;
    if options.database.json {
        print_json(&json!({"name": name, "rows": removed.rows}))?;
    } else {
        print(&format!("The space {} is gone.\n", escape_line(name)))?;
    }
    Ok(Exit::Complete)
}
