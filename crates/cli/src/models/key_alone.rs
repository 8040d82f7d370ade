//! Models that are there because the environment holds a key, and nobody configured any (G-70): the hints about them.
//!
//! Promises: a key is named by its variable; nothing of it is shown.

use std::path::Path;

use client::Live;
use host::Config;
use wire::meta::{KEY_VARIABLE, SERVER};

use super::on_host::{NATIVE, model_ids};
use crate::host_record::{HostRecord, RunMode};
use crate::stop::command_for;
use crate::terminal::escape_line;

/// What somebody who opens a new chat should know of the model that answers; `None` if it was configured.
pub(crate) fn note(live: &Live) -> Option<String> {
    let root = live.root()?;
    let native = root.agents.iter().find(|agent| agent["provider"] == NATIVE)?;
    let model = native["models"].as_array()?.first()?;
    let variable = model["_meta"][KEY_VARIABLE].as_str()?;
    let id = model["id"].as_str()?;
    let server = &model["_meta"][SERVER];
    let elsewhere = match (server["authority"].as_str(), server["variable"].as_str()) {
        (Some(authority), Some(variable)) => {
            format!(", which goes to {} ({})", escape_line(authority), escape_line(variable))
        }
        _ => String::new(), // to the vendor's own server
    };
    Some(format!(
        "{} answers, with the key in {}{elsewhere}. `greenroom models add` chooses others.",
        escape_line(id),
        escape_line(variable)
    ))
}

/// What somebody should know whose environment holds a key that the host of a data directory does not have.
pub(crate) fn note_missing(live: &Live, data: &Path) -> Option<String> {
    if !model_ids(live).is_empty() {
        return None;
    }
    let mut here = Config::default();
    // What is wrong with one of them is said where it is used.
    let _ = here.use_environment();
    let variable = here.environment_models.first()?.key_env.clone()?;
    Some(format!(
        "{} is set here, but the host was started without it: {}",
        escape_line(&variable),
        how_to_give_key(&variable, data)
    ))
}

/// How the host that runs gets the key in a variable.
pub(super) fn how_to_give_key(variable: &str, data: &Path) -> String {
    match HostRecord::read(data).map(|record| record.mode) {
        // It has the environment of the service manager, however often it is started again from here.
        Some(RunMode::Service) => format!(
            "it is a service and does not see variables of this shell. Give the model a `key_file`, or put {} into the \
             environment file of the unit, then `{}`.",
            escape_line(variable),
            command_for("restart", data)
        ),
        Some(RunMode::Background | RunMode::Foreground) | None => {
            format!("`{}` starts it with this variable.", command_for("restart", data))
        }
    }
}
