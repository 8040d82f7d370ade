//! Reads the text of a settings file. Settings that cannot work are refused, each with words that begin with its key.

use std::path::PathBuf;

use agents::SettingsEntryError;
use agents::acp::AgentEntry;
use agents::mcp::McpEntry;

use crate::blobs::ObjectBodies;
use crate::config::{ClusterSettings, JournalChoice, Model};
use crate::config_settings::Settings;
use crate::journal::postgres::check_database_address;
use crate::mounts::MountEntry;
use crate::settings_problem::SettingsProblem;
use crate::space_entry::{SpaceEntry, is_space_name};
use crate::telemetry::check_endpoint;

pub(super) fn parse_settings(text: &str) -> Result<Settings, SettingsProblem> {
    let problem = |message: String| SettingsProblem::of_value(text, message);
    let file: Settings =
        toml::from_str(text).map_err(|error| SettingsProblem::of_file(text, &error))?;
    check_values(&file).map_err(problem)?;
    let of_entry = |table: &'static str| {
        move |error: SettingsEntryError| {
            SettingsProblem::of_entry(text, table, error.index, error.key, error.message)
        }
    };
    AgentEntry::resolve_all(&file.agents).map_err(of_entry("agents"))?;
    SpaceEntry::check_all(&file.spaces).map_err(of_entry("spaces"))?;
    MountEntry::check_all(&file.mounts).map_err(of_entry("mounts"))?;
    McpEntry::check_all(&file.mcp).map_err(of_entry("mcp"))?;
    Ok(file)
}

fn check_values(file: &Settings) -> Result<(), String> {
    file.limits.check()?;
    file.budget.check()?;
    Model::check_all(&file.models).map_err(|error| error.to_string())?;
    check_default(file)?;
    check_variables(&file.tool_env)?;
    file.compaction().check()?;
    check_timeouts(file)?;
    check_tls(file)?;
    check_postgres(file)?;
    if let Some(endpoint) = &file.otlp_endpoint {
        check_endpoint(endpoint)?;
    }
    check_fetched_hosts(&file.web_fetch_allow)?;
    check_worktree_dir(file)?;
    check_absolute("trusted", &file.trusted)?;
    check_absolute("plugins", &file.plugins)?;
    let granted = file.resource_grants.iter().map(|grant| grant.path.clone());
    check_absolute("resource_grants", &granted.collect::<Vec<_>>())
}

fn check_default(file: &Settings) -> Result<(), String> {
    let is_missing = |id: &&String| file.models.iter().all(|model| model.id != **id);
    if let Some(id) = file.default_model.as_ref().filter(is_missing) {
        return Err(format!(
            "default_model: there is no model `{id}`; `greenroom models default ID` sets it"
        ));
    }
    match file.title_model.as_ref().filter(is_missing) {
        Some(id) => Err(format!(
            "title_model: there is no model `{id}` in this file; `greenroom models` lists what there is"
        )),
        None => Ok(()),
    }
}

/// One without the other would leave a host without encryption that was meant to have it.
fn check_tls(file: &Settings) -> Result<(), String> {
    match (&file.tls_cert, &file.tls_key) {
        (Some(_), None) => {
            Err("tls_cert: it needs tls_key, the file with its private key".to_owned())
        }
        (None, Some(_)) => {
            Err("tls_key: it needs tls_cert, the file with the certificate".to_owned())
        }
        (None, None) => Ok(()),
        (Some(cert), Some(key)) => {
            check_absolute("tls_cert", std::slice::from_ref(cert))?;
            check_absolute("tls_key", std::slice::from_ref(key))
        }
    }
}

fn check_timeouts(file: &Settings) -> Result<(), String> {
    let (default, most) = (file.bash_timeout_s, file.bash_timeout_max_s);
    match default {
        0 => Err("bash_timeout_s: a command needs at least 1 second".to_owned()),
        _ if default > most => {
            Err(format!("bash_timeout_s: {default} is more than bash_timeout_max_s allows, {most}"))
        }
        _ => Ok(()),
    }
}

/// Whole names with ports: a pattern would open more of a private network than was meant.
fn check_fetched_hosts(hosts: &[String]) -> Result<(), String> {
    let is_host = |entry: &String| {
        let Some((host, port)) = entry.rsplit_once(':') else { return false };
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        !host.is_empty() && host.chars().all(is_known) && port.parse::<u16>().is_ok()
    };
    match hosts.iter().find(|host| !is_host(host)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "web_fetch_allow: {other:?} is not a host with its port, such as \"wiki.local:443\""
        )),
    }
}

/// Other nodes need a port of their own.
fn check_peer_address(file: &Settings, cluster: &ClusterSettings) -> Result<(), String> {
    for (name, address) in [("address", &cluster.address), ("listen", &cluster.listen)] {
        let Some(address) = address else { continue };
        let parts = address.rsplit_once(':');
        if parts.is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
            return Err(format!(
                "cluster.{name}: {address:?} is not an address with its port, such as \"10.0.0.11:4791\""
            ));
        }
    }
    let taken = cluster.listen.as_ref().or(cluster.address.as_ref());
    let clients = file.listen.to_string();
    match taken.filter(|taken| **taken == clients && !clients.ends_with(":0")) {
        Some(taken) => Err(format!(
            "cluster: {taken:?} is where clients connect (`listen`); other nodes need another port"
        )),
        None => Ok(()),
    }
}

/// A database without a use, or a use without a database, is a mistake.
fn check_postgres(file: &Settings) -> Result<(), String> {
    let name = file.cluster.as_ref().map(|cluster| cluster.name.as_deref());
    match (file.journal, name) {
        (_, None) => {}
        (JournalChoice::Sqlite | JournalChoice::Memory, Some(_)) => {
            return Err("cluster: only valid with journal = \"postgres\"".to_owned());
        }
        // It becomes part of the name of a space.
        (JournalChoice::Postgres, Some(name)) => {
            if let Some(name) = name.filter(|name| !is_space_name(name)) {
                return Err(format!(
                    "cluster: {name:?} is not a name for a node: small letters, digits and `-`"
                ));
            }
        }
    }
    if let Some(cluster) = &file.cluster {
        check_peer_address(file, cluster)?;
    }
    if !file.mounts.is_empty() && file.journal != JournalChoice::Postgres {
        return Err("mounts: only valid with journal = \"postgres\"".to_owned());
    }
    if let Some(blobs) = &file.blobs {
        if file.journal != JournalChoice::Postgres {
            return Err("blobs: only valid with journal = \"postgres\"".to_owned());
        }
        ObjectBodies::open(blobs).map_err(|error| error.to_string())?;
    }
    match (file.journal, &file.postgres) {
        (JournalChoice::Postgres, None) => Err(
            "journal: \"postgres\" needs `postgres`, such as \"host=/run/postgresql dbname=greenroom\"".to_owned(),
        ),
        (JournalChoice::Sqlite | JournalChoice::Memory, Some(_)) => {
            Err("postgres: only valid with journal = \"postgres\"".to_owned())
        }
        (JournalChoice::Postgres, Some(url)) => {
            check_database_address(url).map_err(|why| format!("postgres: {why}"))
        }
        (JournalChoice::Sqlite | JournalChoice::Memory, None) => Ok(()),
    }
}

/// A path that is not absolute means another directory wherever the host is started.
fn check_absolute(key: &str, directories: &[PathBuf]) -> Result<(), String> {
    match directories.iter().find(|path| !path.is_absolute()) {
        None => Ok(()),
        Some(other) => {
            Err(format!("{key}: {other:?} is not an absolute path; `~` is not expanded here"))
        }
    }
}

/// Patterns would pass on what nobody thought of.
fn check_variables(names: &[String]) -> Result<(), String> {
    let is_name = |name: &String| {
        let mut chars = name.chars();
        !name.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "tool_env: {other:?} is not the name of an environment variable; it takes whole names, no patterns"
        )),
    }
}

/// Worktrees of all sessions lie in one directory, where sessions may work: those of one space would reach those of another.
fn check_worktree_dir(file: &Settings) -> Result<(), String> {
    check_absolute("worktree_dir", file.worktree_dir.as_slice())?;
    if file.worktree_dir.is_none() {
        return Ok(());
    }
    let shared_by = match file.journal {
        _ if !file.spaces.is_empty() => "[[spaces]]",
        // Whatever space of the database is wanted is served, beside those that are named here.
        JournalChoice::Postgres => "journal = \"postgres\"",
        JournalChoice::Sqlite | JournalChoice::Memory => return Ok(()),
    };
    Err(format!(
        "worktree_dir: it cannot be used with {shared_by}, since sessions of one space could reach the worktrees of another; \
         without it worktrees lie in their repositories"
    ))
}
