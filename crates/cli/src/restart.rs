//! `greenroom restart`: stops the local host and starts it again with the options it ran with.
//!
//! Promises: clients find the new host by themselves. A host that somebody runs in a terminal, or that another program started,
//! is not taken from them unless that was asked for.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use anyhow::bail;
use client::{Endpoint, endpoint};
use host::{Model, check_certificate};

use crate::exit::Exit;
use crate::host_record::{HostRecord, RunMode};
use crate::local_host::LocalHost;
use crate::output::print;
use crate::serve::settings;
use crate::service::Service;
use crate::start_host::{StartOptions, start_in_background, wait_until_ready};
use crate::stop::{StopLimits, command_for, stop_host};
use crate::target::HostOptions;
use crate::terminal::escape;

/// Stop the host of this machine and start it again with the same options
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom restart                    after an update, or a change of greenroom.toml
  greenroom restart --force            kill the host if it does not stop in time

Clients that are connected reconnect by themselves. Where no host runs, one is started with the options of the last one. The \
new host has the environment of this command: keys of models that it reads from variables must be set here.

Exit codes: 0 the host runs, 1 it could not be stopped or started.")]
pub(crate) struct RestartOptions {
    /// Kill the host if it does not stop in time
    #[arg(long)]
    force: bool,
    /// Restart in the background, even if the host runs in a terminal
    #[arg(long)]
    background: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: RestartOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let limits = StopLimits { force: options.force, ..StopLimits::default() };
    let running = LocalHost::find(&data)?;
    let start = match &running {
        Some(host) => {
            let record = check_restartable(&data, host, &options)?;
            StartOptions { port: host.port(), ..start_options(&record) }
        }
        // Only what was started in the background says how the next one is started.
        None => HostRecord::read(&data)
            .filter(|record| record.mode == RunMode::Background)
            .map_or_else(StartOptions::default, |record| start_options(&record)),
    };
    let settings = match settings(data.clone(), config_of(&start).as_deref()) {
        Ok(settings) => settings,
        Err(error) => bail!("{error:#}\nNothing was stopped: correct the file first"),
    };
    if let Err(error) = check_certificate(&settings) {
        bail!("{error}\nNothing was stopped: put that right first");
    }
    warn_of_missing_keys(&settings.models);
    if let Some(host) = &running {
        stop_host(&data, host, limits).await?;
    }
    let started = match Service::installed_for(&data) {
        Some(service) => {
            service.start()?;
            let ready = wait_until_ready(&data).await?;
            format!("The service {} runs (pid {}).", service.name(), ready.pid)
        }
        None => start_in_background(&data, &start).await?,
    };
    print(&format!("{started}\n"))?;
    Ok(Exit::Complete)
}

/// How the running host was started; an error if it is not ours to start again.
fn check_restartable(
    data: &Path,
    host: &LocalHost,
    options: &RestartOptions,
) -> anyhow::Result<HostRecord> {
    let Some(record) = host.record.clone() else {
        bail!(
            "it is not known how the host that runs was started: it is starting, or of an earlier version. Stop it with \
             `{}` and start it again",
            command_for("stop", data)
        );
    };
    if record.arguments.iter().any(|argument| argument == "--stdio") {
        bail!(
            "the host (pid {}) serves the program that started it over standard input and output: only that program can \
             start it again",
            record.pid
        );
    }
    if record.mode == RunMode::Foreground && !options.background {
        bail!(
            "the host (pid {}) runs in a terminal, or was started by another program: stop it there and start it again, or \
             run `{} --background` to go on in the background",
            record.pid,
            command_for("restart", data)
        );
    }
    Ok(record)
}

fn start_options(record: &HostRecord) -> StartOptions {
    StartOptions {
        arguments: record.arguments.clone(),
        directory: Some(record.directory.clone()),
        port: None,
    }
}

/// The settings file that the arguments name.
fn config_of(start: &StartOptions) -> Option<PathBuf> {
    let mut arguments = start.arguments.iter();
    let mut named = None;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--config") => named = arguments.next().map(PathBuf::from),
            Some(text) => {
                if let Some(file) = text.strip_prefix("--config=") {
                    named = Some(PathBuf::from(file));
                }
            }
            None => {} // a path that is no option
        }
    }
    // It was named from where the host was started.
    named.map(|file| match &start.directory {
        Some(directory) => directory.join(file),
        None => file,
    })
}

/// The new host reads keys from the variables of this command; the old one may have had them from another shell.
fn warn_of_missing_keys(models: &[Model]) {
    for model in models {
        if let Some(variable) = &model.key_env
            && std::env::var_os(variable).is_none()
        {
            eprintln!(
                "greenroom: {} is not set here: the model {} will have no key",
                escape(variable),
                escape(&model.id)
            );
        }
    }
}

/// A sentence about a running host of another version than this program.
pub(crate) fn note_other_version(host: &HostOptions) -> Option<String> {
    if host.named_host().is_some() {
        return None; // another machine's host is not ours to restart
    }
    let data = host.data_directory().ok()?;
    let running = Endpoint::find(&data).ok()?.version;
    compare_versions(&running, host::VERSION, &command_for("restart", &data))
}

pub(crate) fn compare_versions(running: &str, ours: &str, restart: &str) -> Option<String> {
    let difference = format!("The running host is {running}, this is {ours}");
    match numbers(running).cmp(&numbers(ours)) {
        Ordering::Less => Some(format!("{difference}: `{restart}` starts it with this version.")),
        Ordering::Greater => Some(format!("{difference}: update this program.")),
        Ordering::Equal if running != ours => Some(format!("{difference}.")),
        Ordering::Equal => None,
    }
}

/// The numbers of a version, as far as it has any.
fn numbers(version: &str) -> Vec<u64> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    core.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_host_is_to_be_restarted_and_a_newer_one_is_not() {
        let note = |running| compare_versions(running, "0.10.0", "greenroom restart");
        assert_eq!(note("0.10.0"), None);
        assert_eq!(
            note("0.9.3").unwrap(),
            "The running host is 0.9.3, this is 0.10.0: `greenroom restart` starts it with this version."
        );
        assert!(note("0.11.0").unwrap().contains("update this program"));
        assert!(note("unknown").unwrap().contains("restart"));
    }

    #[test]
    fn the_settings_file_is_found_from_where_the_host_was_started() {
        let start = |arguments: &[&str]| StartOptions {
            arguments: arguments.iter().map(Into::into).collect(),
            directory: Some("/srv".into()),
            port: None,
        };
        assert_eq!(config_of(&start(&["--no-scripted"])), None);
        let expected = Some(PathBuf::from("/srv/a.toml"));
        assert_eq!(config_of(&start(&["--config", "a.toml"])), expected);
        assert_eq!(config_of(&start(&["--config=a.toml"])), expected);
        let absolute = config_of(&start(&["--config=/etc/a.toml"]));
        assert_eq!(absolute, Some(PathBuf::from("/etc/a.toml")));
    }
}
