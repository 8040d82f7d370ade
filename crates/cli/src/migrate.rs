//! `greenroom migrate`: carries sessions from a data directory into a space of a database, or back.
//!
//! Promises: what is interrupted can be run again; how far it is, is shown where somebody looks.
//! Must not know: how sessions are stored.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use host::journal::PostgresSettings;
use host::migrate::{MigrateRequest, MigrateStep, Migrated, to_directory, to_postgres};
use parking_lot::Mutex;
use serde_json::json;

use crate::exit::Exit;
use crate::format::format_count;
use crate::output::{print, print_json};
use crate::space::database::{check_argument, find_address, find_blobs};
use crate::terminal::escape_line;

/// For how long a database that is away is waited for.
const PATIENCE_MS: u64 = 10_000;
/// How often a line says how far it is.
const PRINT_INTERVAL: Duration = Duration::from_millis(200);

/// Move all sessions from a data directory into a database, or back
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom migrate --from ~/.local/share/greenroom --to 'host=/run/postgresql dbname=greenroom' --space team-a
  greenroom migrate --from postgres://localhost/greenroom --to /srv/team-a --space team-a

Stop the host first. Sessions, their order, clients and attachments go along, so that clients reconnect as if nothing had happened. Both sides are \
compared before the source is marked as moved; then it is not served any more, and kept until you delete it. If it is interrupted, run it \
again. Settings, tokens, devices and rules stay in the data directory.

An address with a password is not taken from the command line, where others could read it: put it into a file and name the database by the \
word `database`: greenroom migrate --from /srv/team-a --to database --database-file ~/address --space team-a")]
pub(crate) struct MigrateOptions {
    /// Where the sessions are: a data directory, or a database: its address, or `database`
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Where they go: a database, or a data directory
    #[arg(long, value_name = "URL|DIR")]
    to: String,
    /// A file with the address of what is called `database` [default: $GREENROOM_POSTGRES]
    #[arg(long, value_name = "FILE")]
    database_file: Option<PathBuf>,
    /// The space in the database
    #[arg(long, value_name = "NAME")]
    space: String,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Which way.
enum MigrateDirection {
    IntoDatabase,
    IntoDirectory,
}

/// What a database is called whose address is elsewhere.
const DATABASE: &str = "database";

/// `postgres://..`, or a list of settings as PostgreSQL's own programs take it, or the word for one whose address is elsewhere.
fn is_database(text: &str) -> bool {
    if text == DATABASE {
        return true;
    }
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let keys = ["host=", "dbname=", "user=", "port="];
    is_url || keys.iter().any(|key| text.starts_with(key))
}

/// The address of the database that an option names.
fn address_of(option: &str, text: &str, file: Option<&Path>) -> anyhow::Result<String> {
    match (text == DATABASE, file) {
        (true, file) => find_address(file, None),
        (false, Some(_)) => bail!("--database-file is for `{option} {DATABASE}`"),
        (false, None) => {
            check_argument(option, text)?;
            Ok(text.to_owned())
        }
    }
}

pub(crate) async fn run(options: MigrateOptions) -> anyhow::Result<Exit> {
    let (direction, directory, option, url) = match (
        is_database(&options.from),
        is_database(&options.to),
    ) {
        (false, true) => (MigrateDirection::IntoDatabase, &options.from, "--to", &options.to),
        (true, false) => (MigrateDirection::IntoDirectory, &options.to, "--from", &options.from),
        (true, true) => bail!("both are databases: one of --from and --to is a data directory"),
        (false, false) => bail!(
            "neither is a database: one of --from and --to is postgres://.. or `host=/run/postgresql dbname=..`"
        ),
    };
    let url = address_of(option, url, options.database_file.as_deref())?;
    let wish = MigrateRequest {
        directory: PathBuf::from(directory),
        database: PostgresSettings {
            journal_patience_ms: PATIENCE_MS,
            ..PostgresSettings::new(url)
        },
        blobs: find_blobs(None)?,
        space: options.space.clone(),
    };
    let progress = MigrateLine::for_command(options.json);
    let tell = |step: MigrateStep| progress.tell(&step);
    let migrated = match direction {
        MigrateDirection::IntoDatabase => to_postgres(&wish, &tell).await,
        MigrateDirection::IntoDirectory => to_directory(&wish, &tell).await,
    };
    progress.clear();
    report(&options, &direction, &migrated?)?;
    Ok(Exit::Complete)
}

fn report(
    options: &MigrateOptions,
    direction: &MigrateDirection,
    migrated: &Migrated,
) -> anyhow::Result<()> {
    if options.json {
        print_json(&json!({
            "space": options.space,
            "rows": migrated.rows,
            "bodies": migrated.bodies,
            "seq": migrated.seq,
            "finishedEarlierRun": migrated.was_carried_before,
        }))?;
        return Ok(());
    }
    let space = escape_line(&options.space);
    let place = match direction {
        MigrateDirection::IntoDatabase => format!("The sessions are in the space {space} now."),
        MigrateDirection::IntoDirectory => {
            format!("The sessions are in {} now.", escape_line(&options.to))
        }
    };
    let what = if migrated.was_carried_before {
        "An earlier run had carried everything.".to_owned()
    } else {
        format!(
            "{} and {} are equal on both sides.",
            format_count(migrated.rows, "row"),
            format_count(migrated.bodies as u64, "attachment")
        )
    };
    let next = match direction {
        MigrateDirection::IntoDatabase => {
            format!("Give people tokens: greenroom space token {space} --for WHO --role member")
        }
        MigrateDirection::IntoDirectory => format!(
            "Serve them: greenroom serve --data {}. What is left in the database goes with: greenroom space remove {space}",
            escape_line(&options.to)
        ),
    };
    print(&format!("{place} {what}\n{next}\n"))?;
    Ok(())
}

/// One line on a terminal that is written over.
pub(crate) struct MigrateLine {
    is_shown: bool,
    printed_at: Mutex<Option<Instant>>,
}

impl MigrateLine {
    fn new(is_shown: bool) -> Self {
        Self { is_shown, printed_at: Mutex::new(None) }
    }

    /// For a command on a terminal that prints no JSON.
    pub(crate) fn for_command(json: bool) -> Self {
        Self::new(!json && std::io::stderr().is_terminal())
    }

    pub(crate) fn tell(&self, step: &MigrateStep) {
        let mut printed_at = self.printed_at.lock();
        if !self.is_shown
            || printed_at.is_some_and(|printed_at| printed_at.elapsed() < PRINT_INTERVAL)
        {
            return; // nobody looks, or not so soon
        }
        *printed_at = Some(Instant::now());
        let line = match step {
            MigrateStep::Rows { table, rows } => format!("{table}: {}", format_count(*rows, "row")),
            MigrateStep::Bodies { done, of } => format!("attachments: {done} of {of}"),
            MigrateStep::Comparing => "comparing both sides".to_owned(),
        };
        self.write(&line);
    }

    pub(crate) fn clear(&self) {
        if self.is_shown {
            self.write("");
        }
    }

    fn write(&self, line: &str) {
        let mut out = std::io::stderr();
        // A terminal that is gone is no reason to stop.
        let _ = write!(out, "\r\u{1b}[K{line}").and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_told_from_a_directory() {
        for url in [
            "postgres://localhost/greenroom",
            "postgresql://localhost/greenroom",
            "host=/run/postgresql dbname=greenroom",
            "dbname=greenroom",
            "database",
        ] {
            assert!(is_database(url), "{url}");
        }
        for path in ["/srv/team", "team", "./host", "~/postgres", "./database"] {
            assert!(!is_database(path), "{path}");
        }
    }
}
