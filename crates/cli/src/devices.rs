//! `greenroom devices`: which devices may use the sessions of this machine, and signing them out.
//!
//! Promises: a device that was signed out has no open connection a second later; where no host runs, the list is that of the data
//! directory, changed under the host's own lock.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Subcommand;
use client::devices::{DeviceSummary, list_devices, revoke_device};
use client::{Destination, Endpoint, endpoint};
use host::devices::{Device, DeviceId, DeviceScope, Devices, Revocation};
use host::journal::DirectoryLock;
use serde_json::{Value, json};

use crate::clock::now;
use crate::exit::Exit;
use crate::format::{format_age, format_table};
use crate::output::{print, print_json};
use crate::start_host::is_host_missing;
use crate::terminal::escape_line;

/// List the devices that may use the sessions of this machine; sign them out
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  greenroom devices
  greenroom devices --json | jq '.[].name'
  greenroom devices revoke phone
  greenroom devices revoke --all

`greenroom open` and `greenroom pair` add devices. What is signed out is disconnected at once and has to be paired again."
)]
pub(crate) struct DevicesOptions {
    #[command(subcommand)]
    verb: Option<DevicesVerb>,
    #[command(flatten)]
    list: DeviceListOptions,
}

#[derive(Debug, Subcommand)]
enum DevicesVerb {
    Revoke(RevokeOptions),
}

#[derive(Debug, clap::Args)]
struct DeviceListOptions {
    /// Print one JSON array instead of a table
    #[arg(long)]
    json: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Sign devices out
#[derive(Debug, clap::Args)]
struct RevokeOptions {
    /// Names or ids of devices, as `greenroom devices` lists them
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: DevicesOptions) -> anyhow::Result<Exit> {
    match options.verb {
        None => list(&options.list).await,
        Some(DevicesVerb::Revoke(options)) => revoke(&options).await,
    }
}

/// Who knows the devices.
enum DeviceRegister {
    Host(Destination),
    /// The data directory, while no host runs.
    Directory(PathBuf),
}

impl DeviceRegister {
    fn find(data: &Path) -> anyhow::Result<Self> {
        match Endpoint::find(data).map_err(anyhow::Error::from) {
            Ok(host) => Ok(Self::Host(host.destination(None))),
            Err(error) if is_host_missing(&error) => Ok(Self::Directory(data.to_owned())),
            Err(error) => Err(error),
        }
    }

    async fn list(&self) -> anyhow::Result<Vec<DeviceSummary>> {
        match self {
            Self::Host(host) => Ok(list_devices(host).await?),
            Self::Directory(data) => {
                let devices = Devices::open(data)?.list();
                Ok(devices.into_iter().map(summarise).collect())
            }
        }
    }

    async fn revoke(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Self::Host(host) => Ok(revoke_device(host, id).await?),
            Self::Directory(data) => {
                // No host starts meanwhile with the list of before.
                let _lock = DirectoryLock::take(data)?;
                match Devices::open(data)?.revoke(&DeviceId::from(id)) {
                    // Somebody else may have done it meanwhile.
                    Revocation::Done | Revocation::Unknown => Ok(()),
                    Revocation::Unsaved(error) => Err(error.into()),
                }
            }
        }
    }
}

fn summarise(device: Device) -> DeviceSummary {
    let scope = |scope: &DeviceScope| scope.name().to_owned();
    DeviceSummary {
        id: device.id.as_str().to_owned(),
        name: device.name,
        scopes: device.scopes.iter().map(scope).collect(),
        created_at: device.created.to_rfc3339(),
        last_used_at: device.last_used.to_rfc3339(),
        address: device.address,
        connections: 0,
    }
}

async fn list(options: &DeviceListOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let devices = DeviceRegister::find(&data)?.list().await?;
    if options.json {
        print_json(&devices.iter().map(to_json).collect::<Value>())?;
    } else if devices.is_empty() {
        print(
            "No device is paired. `greenroom open` opens the browser here, `greenroom pair` pairs another device.\n",
        )?;
    } else {
        print(&table(&devices))?;
    }
    Ok(Exit::Complete)
}

fn to_json(device: &DeviceSummary) -> Value {
    json!({
        "id": device.id,
        "name": device.name,
        "scopes": device.scopes,
        "createdAt": device.created_at,
        "lastUsedAt": device.last_used_at,
        "address": device.address,
        "connections": device.connections,
    })
}

fn table(devices: &[DeviceSummary]) -> String {
    let now = now();
    let titles = ["NAME", "USED", "FROM", "PAIRED", "MAY", "ID"].map(str::to_owned);
    let row = |device: &DeviceSummary| {
        let used = match device.connections {
            0 => format_age(&device.last_used_at, now),
            _ => "connected".to_owned(),
        };
        [
            escape_line(&device.name),
            used,
            escape_line(device.address.as_deref().unwrap_or("-")),
            format_age(&device.created_at, now),
            escape_line(&device.scopes.join(", ")),
            escape_line(&device.id),
        ]
    };
    let rows: Vec<_> = std::iter::once(titles).chain(devices.iter().map(row)).collect();
    format_table(&rows)
}

async fn revoke(options: &RevokeOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let register = DeviceRegister::find(&data)?;
    let devices = register.list().await?;
    let chosen: Vec<&DeviceSummary> = if options.all {
        devices.iter().collect()
    } else {
        let found = options.names.iter().map(|name| find(&devices, name));
        found.collect::<anyhow::Result<_>>()?
    };
    if chosen.is_empty() {
        print("No device is paired.\n")?;
    }
    for device in chosen {
        register.revoke(&device.id).await?;
        print(&format!("{} is signed out.\n", escape_line(&device.name)))?;
    }
    Ok(Exit::Complete)
}

/// Names are unique whatever their case; so are ids.
fn find<'a>(devices: &'a [DeviceSummary], name: &str) -> anyhow::Result<&'a DeviceSummary> {
    let is_named = |device: &&DeviceSummary| {
        device.id == name || device.name.to_lowercase() == name.to_lowercase()
    };
    if let Some(device) = devices.iter().find(is_named) {
        return Ok(device);
    }
    let names: Vec<String> = devices.iter().map(|it| format!("`{}`", it.name)).collect();
    if names.is_empty() {
        bail!("there is no device `{name}`: none is paired")
    } else {
        bail!("there is no device `{name}`; there are: {}", names.join(", "))
    }
}
