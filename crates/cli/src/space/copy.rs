//! `greenroom space copy`: a second space with the same sessions.

use std::path::{Path, PathBuf};

use anyhow::bail;
use host::migrate::{
    MigrateRequest, MigrateStep, Migrated, copy_from_directory, copy_space, copy_to_directory,
};
use serde_json::json;

use super::DatabaseOptions;
use crate::exit::Exit;
use crate::format::format_count;
use crate::migrate::MigrateLine;
use crate::output::{print, print_json};
use crate::terminal::escape_line;

/// Copy a space with all its sessions: to another space, or to or from a data directory
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom space copy team-a team-b
  greenroom space copy team-a /srv/backup/team-a
  greenroom space copy ./team-a team-c

What has a `/` in it is a data directory, everything else is a space of the database. The source is left as it is and may be \
served meanwhile, if it is a space: the copy is one moment of it. A host that serves a directory must be stopped. What is copied to \
must not be there yet. Both are compared before the copy counts. Members and tokens are not copied: give people tokens for the copy. \
To move sessions instead, so that clients reconnect to them: greenroom migrate.")]
pub(super) struct SpaceCopyOptions {
    /// The space to copy, or a data directory
    from: String,
    /// The name of the copy, or a data directory
    to: String,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// A directory is told from a name by its slash, which no name has.
fn is_directory(text: &str) -> bool {
    text.contains('/')
}

pub(super) async fn run(options: &SpaceCopyOptions) -> anyhow::Result<Exit> {
    let SpaceCopyOptions { from, to, .. } = options;
    let database = options.database.settings()?;
    let blobs = options.database.blobs()?;
    let of = |directory: &str, space: &str| MigrateRequest {
        directory: PathBuf::from(directory),
        database: database.clone(),
        blobs: blobs.clone(),
        space: space.to_owned(),
    };
    let progress = MigrateLine::for_command(options.database.json);
    let tell = |step: MigrateStep| progress.tell(&step);
    let copied = match (is_directory(from), is_directory(to)) {
        (false, false) => copy_space(&database, blobs.as_ref(), from, to, &tell).await,
        (false, true) => copy_to_directory(&of(to, from), &tell).await,
        (true, false) => copy_from_directory(&of(from, to), &tell).await,
        (true, true) => bail!(
            "both are directories: stop the host of {} and copy the directory itself",
            Path::new(from).display()
        ),
    };
    progress.clear();
    report(options, &copied?)?;
    Ok(Exit::Complete)
}

fn report(options: &SpaceCopyOptions, copied: &Migrated) -> anyhow::Result<()> {
    let SpaceCopyOptions { from, to, database } = options;
    if database.json {
        print_json(&json!({
            "from": from,
            "to": to,
            "rows": copied.rows,
            "bodies": copied.bodies,
            "seq": copied.seq,
        }))?;
        return Ok(());
    }
    let next = if is_directory(to) {
        format!("Serve it: greenroom serve --data {}", escape_line(to))
    } else {
        format!(
            "Give people tokens: greenroom space token {} --for WHO --role member",
            escape_line(to)
        )
    };
    print(&format!(
        "{} is a copy of {}: {} and {} are equal.\n{next}\n",
        escape_line(to),
        escape_line(from),
        format_count(copied.rows, "row"),
        format_count(copied.bodies as u64, "attachment"),
    ))?;
    Ok(())
}
