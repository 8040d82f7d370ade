//! `greenroom agents trust`: which directories external agents may be started in, and which MCP servers of directories were allowed.
//!
//! Promises: what is trusted is what a host that runs goes by from the next start of an agent on.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use host::acp_agents::{CommandFiles, DirectoryTrust, TrustStore};
use serde_json::{Value, json};

use super::ConfigFileOptions;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::private_directory::create_parent_of;
use crate::target::is_client_id;
use crate::terminal::escape_line;

/// Who trusted a directory, in the record.
const BY: &str = "greenroom agents trust";

/// Trust a directory for external agents, or list those that are trusted
#[derive(Debug, clap::Args)]
pub(super) struct TrustOptions {
    /// The directory; what is below it is trusted with it. Without it, all are listed
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Stop trusting it
    #[arg(long, requires = "directory")]
    revoke: bool,
    /// Print the list as a JSON array
    #[arg(long, conflicts_with = "directory")]
    json: bool,
    #[command(flatten)]
    config: ConfigFileOptions,
}

pub(super) fn run(options: &TrustOptions) -> anyhow::Result<Exit> {
    let store = options.config.settings()?.trust_store();
    match &options.directory {
        None => list(&store, options.json)?,
        Some(directory) if options.revoke => revoke(&store, directory)?,
        Some(directory) => trust(&store, directory)?,
    }
    Ok(Exit::Complete)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// All that is trusted, for programs. What is said of one thing of a directory names it in `item`.
fn to_json(store: &TrustStore) -> anyhow::Result<Value> {
    let configured = store.configured().iter().map(|directory| {
        json!({"directory": text(directory), "configured": true, "session": null, "since": null, "by": null, "files": []})
    });
    let mut all: Vec<Value> = configured.collect();
    all.extend(store.entries()?.iter().map(|entry| {
        json!({
            "directory": text(&entry.directory),
            "configured": false,
            "session": entry.session,
            "since": entry.since,
            "by": entry.by,
            "files": entry.files,
        })
    }));
    all.extend(store.items()?.iter().map(|item| {
        json!({
            "directory": text(&item.directory),
            "configured": false,
            "session": item.session,
            "since": item.since,
            "by": item.by,
            "files": [],
            "item": item.item,
        })
    }));
    Ok(Value::Array(all))
}

fn list(store: &TrustStore, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        print_json(&to_json(store)?)?;
        return Ok(());
    }
    let (entries, items) = (store.entries()?, store.items()?);
    if entries.is_empty() && items.is_empty() && store.configured().is_empty() {
        print(
            "No directory is trusted: agents ask before they start. `greenroom agents trust DIR` trusts one.\n",
        )?;
        return Ok(());
    }
    for directory in store.configured() {
        let directory = escape_line(&text(directory));
        print(&format!("{directory}  by `trusted` of greenroom.toml\n"))?;
    }
    let in_session = |session: &Option<String>| match session {
        Some(session) => format!(" in {session} only"),
        None => String::new(),
    };
    for entry in &entries {
        let session = in_session(&entry.session);
        let files = match entry.files.len() {
            0 => String::new(),
            1 => ", with 1 file that can run commands".to_owned(),
            count => format!(", with {count} files that can run commands"),
        };
        let line = format!(
            "{}{session}  since {} by {}{files}",
            text(&entry.directory),
            entry.since,
            describe_client(&entry.by)
        );
        print(&format!("{}\n", escape_line(&line)))?;
    }
    for item in &items {
        let server = item.item.strip_prefix("mcp:");
        let what = server.map_or_else(|| item.item.clone(), |name| format!("MCP server {name}"));
        let line = format!(
            "{}{}: only its {what}  since {} by {}",
            text(&item.directory),
            in_session(&item.session),
            item.since,
            describe_client(&item.by)
        );
        print(&format!("{}\n", escape_line(&line)))?;
    }
    Ok(())
}

/// Who answered, for people: the id of a terminal that is long closed says nothing to them. Programs get it.
fn describe_client(by: &str) -> &str {
    if is_client_id(by) { "a terminal" } else { by }
}

fn trust(store: &TrustStore, directory: &Path) -> anyhow::Result<()> {
    let unusable = || format!("{} cannot be trusted", directory.display());
    let real = std::fs::canonicalize(directory).with_context(unusable)?;
    ensure!(
        real.is_dir(),
        "{} is not a directory: name the one that the agent is to work in",
        directory.display()
    );
    let command_files = CommandFiles::of(&real);
    let shown = escape_line(&real.to_string_lossy());
    if store.standing(&real, None, &command_files)? == DirectoryTrust::Trusted {
        print(&format!("{shown} is trusted already.\n"))?;
        return Ok(());
    }
    // No host may have run here yet.
    create_parent_of(store.path()).context("the data directory cannot be made")?;
    store.add(&real, None, BY, &command_files)?;
    let mut text = format!("Agents may be started in {shown} and below it.\n");
    if !command_files.files.is_empty() {
        text.push_str("These files can make them run commands without asking:\n");
        for file in &command_files.files {
            text.push_str(&format!("  {}\n", escape_line(file)));
        }
    }
    print(&text)?;
    Ok(())
}

fn revoke(store: &TrustStore, directory: &Path) -> anyhow::Result<()> {
    // It may be gone by now.
    let real = std::fs::canonicalize(directory).or_else(|_| std::path::absolute(directory))?;
    create_parent_of(store.path()).context("the data directory cannot be made")?;
    let revoked = store.revoke(&real)?;
    let shown = escape_line(&real.to_string_lossy());
    let covering = find_covering(store, &real)?;
    match (revoked, covering) {
        (true, None) => print(&format!(
            "{shown} is no longer trusted. Agents running there continue until they are idle.\n"
        ))?,
        (false, None) => bail!(
            "{shown} was not trusted; `greenroom agents trust` lists the directories that are"
        ),
        (_, Some(above)) => bail!("{shown} is still trusted, by {above}"),
    }
    Ok(())
}

/// What still trusts a directory of which nothing is said.
fn find_covering(store: &TrustStore, directory: &Path) -> anyhow::Result<Option<String>> {
    let covers = |above: &Path| {
        let real = std::fs::canonicalize(above);
        directory.starts_with(real.as_deref().unwrap_or(above))
    };
    let configured = store.configured().iter().find(|above| covers(above));
    if let Some(above) = configured {
        let above = escape_line(&above.to_string_lossy());
        return Ok(Some(format!("`{above}` in `trusted` of greenroom.toml; remove it there")));
    }
    let entries = store.entries()?;
    let above = entries
        .iter()
        .find(|entry| entry.session.is_none() && directory.starts_with(&entry.directory));
    Ok(above.map(|entry| {
        let above = escape_line(&entry.directory.to_string_lossy());
        format!("an entry for {above}; revoke that one")
    }))
}
