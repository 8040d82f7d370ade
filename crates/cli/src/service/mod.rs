//! `greenroom service`: has the system start the host, as a user unit of systemd or an agent of launchd.
//!
//! Promises: what is written is shown first and nothing is written without consent. A host that runs in the background makes room
//! for the service; the service makes room for one that was there first. Clients find either by its data directory.

mod launchd;
mod systemd;
mod unit;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use client::endpoint;

use crate::ask::confirm;
use crate::exit::Exit;
use crate::host_record::RunMode;
use crate::local_host::LocalHost;
use crate::output::print;
use crate::start_host::wait_until_ready;
use crate::stop::{StopLimits, command_for, stop_host};

pub(crate) use unit::{Manager, Service};

/// Have the system start the host when you log in
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom service install
  greenroom service install --print    show the unit, write nothing
  greenroom service status
  greenroom service uninstall

On Linux this is a user unit of systemd, on macOS an agent of launchd. It runs this very executable; install it again if you \
move it. All settings come from greenroom.toml in the data directory. A service does not have the variables of your shell: give \
models their keys by `key_file`, or put the variables into an environment file of the unit.

Exit codes: 0 done, or the service is active; 1 failed; 3 not installed, or not active.")]
pub(crate) struct ServiceOptions {
    #[command(subcommand)]
    action: ServiceAction,
}

#[derive(Debug, clap::Subcommand)]
enum ServiceAction {
    /// Write the unit, enable it and start it
    Install(InstallOptions),
    /// Stop the service and remove its unit
    Uninstall(UninstallOptions),
    /// Show whether the service is installed and active
    Status(ServiceStatusOptions),
}

#[derive(Debug, clap::Args)]
struct InstallOptions {
    /// Print the unit and do nothing else
    #[arg(long)]
    print: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// With --print: the service manager to print for
    #[arg(long, hide = true, requires = "print")]
    manager: Option<Manager>,
}

#[derive(Debug, clap::Args)]
struct UninstallOptions {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ServiceStatusOptions {
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: ServiceOptions) -> anyhow::Result<Exit> {
    match options.action {
        ServiceAction::Install(options) => install(options).await,
        ServiceAction::Uninstall(options) => uninstall(options).await,
        ServiceAction::Status(options) => {
            let service = find(options.data.as_deref())?;
            print(&format!("{}: {}\n", service.name(), service.state()))?;
            Ok(if service.is_active() { Exit::Complete } else { Exit::NotRunning })
        }
    }
}

fn find(data: Option<&Path>) -> anyhow::Result<Service> {
    let data = endpoint::data_directory(data)?;
    Service::for_data(&data).context("there is no home directory to install a service in")
}

async fn install(options: InstallOptions) -> anyhow::Result<Exit> {
    let data = std::path::absolute(endpoint::data_directory(options.data.as_deref())?)?;
    let program = std::env::current_exe().context("this executable cannot be found")?;
    let mut service = find(Some(&data))?;
    if let Some(manager) = options.manager {
        service = service.with_manager(manager);
    }
    let unit = service.describe(&program)?;
    if options.print {
        print(&unit)?;
        return Ok(Exit::Complete);
    }
    let running = LocalHost::find(&data)?;
    let mode = running.as_ref().map(|host| host.record.as_ref().map(|record| record.mode));
    if let Some(None | Some(RunMode::Foreground)) = mode {
        bail!(
            "a host already serves {} (pid {}), and it was not started in the background. Stop it with `{}`, then install \
             the service",
            data.display(),
            running.and_then(|host| host.pid).unwrap_or_default(),
            command_for("stop", &data)
        );
    }
    eprintln!("{} will be:\n", service.file().display());
    print(&unit)?;
    eprintln!();
    if mode == Some(Some(RunMode::Background)) {
        eprintln!(
            "The host that runs in the background is stopped first; clients reconnect to the service."
        );
    }
    if !confirm("Write it, enable it and start it?", options.yes)? {
        eprintln!("Nothing was changed.");
        return Ok(Exit::Cancelled);
    }
    service.write(&unit)?;
    if let Some(host) = &running {
        stop_host(&data, host, StopLimits::default()).await?;
    }
    service.enable().with_context(|| {
        format!("{} is written, but the service could not be started", service.file().display())
    })?;
    let ready = wait_until_ready(&data).await?;
    print(&format!(
        "The service {} runs (pid {}). `{}` shows more.\n{}",
        service.name(),
        ready.pid,
        command_for("status", &data),
        service.hint()
    ))?;
    Ok(Exit::Complete)
}

async fn uninstall(options: UninstallOptions) -> anyhow::Result<Exit> {
    let service = find(options.data.as_deref())?;
    if !service.is_installed() {
        print(&format!("The service {} is not installed.\n", service.name()))?;
        return Ok(Exit::NotRunning);
    }
    let question = format!("Stop the service and remove {}?", service.file().display());
    if !confirm(&question, options.yes)? {
        eprintln!("Nothing was changed.");
        return Ok(Exit::Cancelled);
    }
    // A unit that the manager does not know, or cannot stop, is removed all the same.
    if let Err(error) = service.disable() {
        eprintln!("greenroom: {}", crate::terminal::escape(&format!("{error:#}")));
    }
    service.remove()?;
    print("The service is removed. The sessions stay where they are.\n")?;
    Ok(Exit::Complete)
}
