//! `greenroom pair`: a link and a QR code that let another device use the sessions of this machine.
//!
//! Promises: an address is shown only if the host answers to it; nothing goes over plain http beyond this machine unless that was
//! asked for; the link pairs one device, once, within five minutes.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::bail;
use client::devices::{CodeRequest, request_code};
use client::{ClientError, endpoint};
use host::devices::check_name;
use rustix::termios::tcgetwinsize;

use crate::exit::Exit;
use crate::output::{print, print_drawing};
use crate::page_address::{PageAddress, find_or_start_host};
use crate::qr_code;
use crate::stop::command_for;

/// Where the size of a terminal is not known.
const COLUMNS_UNKNOWN: usize = 80;

/// Let a phone or another machine use the sessions of this one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom pair --at https://laptop.tailnet.ts.net --name phone
  greenroom pair --at https://laptop.tailnet.ts.net --inspect
  greenroom pair --at http://192.168.1.7:4790 --plain-http

The address is the one under which the device reaches this host: through `tailscale serve`, a proxy, or a port that ssh forwards. A \
name must be in `allowed_hosts` of greenroom.toml. Without --at it is the host's own address, which as a rule works on this machine \
only.

Scan the code with the camera of the device, or open the link there. It works once, within five minutes. `greenroom devices` lists \
the devices and signs them out.")]
pub(crate) struct PairOptions {
    /// Address under which the device reaches the host
    #[arg(long, value_name = "URL")]
    at: Option<String>,
    /// What the device is called in `greenroom devices` [default: what it calls itself]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Let the device see what models were sent, too
    #[arg(long)]
    inspect: bool,
    /// Allow an address without encryption: whoever shares the network can read and change everything
    #[arg(long)]
    plain_http: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: PairOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let named = options.at.as_deref().map(PageAddress::parse).transpose()?;
    // Before a host is started for nothing.
    let name = options.name.as_deref().map(check_name).transpose()?;
    if let Some(page) = &named {
        check_encryption(page, options.plain_http)?;
    }
    let host = find_or_start_host(&data).await?;
    let page = match named {
        Some(page) => page,
        None => PageAddress::of_endpoint(&host)?,
    };
    check_encryption(&page, options.plain_http)?;
    let request =
        CodeRequest { opens_here: false, name, inspect: options.inspect, at: Some(page.text()) };
    let code = match request_code(&host.destination(None), &request).await {
        Ok(code) => code,
        Err(ClientError::AddressNotAllowed) => bail!(explain_not_allowed(&page, &data)),
        Err(error) => return Err(error.into()),
    };
    let link = page.pairing_link(&code.code);
    let is_shown = std::io::stdout().is_terminal() && show_code(&link)?;
    print(&format!("{link}\n"))?;
    let minutes = code.seconds.div_ceil(60);
    let what_to_do = if is_shown {
        "Scan the code or open the link on the device."
    } else {
        "Open the link on the device."
    };
    eprintln!("{what_to_do} It works once, within {minutes} min.");
    if page.is_loopback() {
        eprintln!(
            "This address works on this machine only; --at names the one under which another device reaches it."
        );
    }
    Ok(Exit::Complete)
}

fn check_encryption(page: &PageAddress, plain_http: bool) -> anyhow::Result<()> {
    if page.is_encrypted() || page.is_loopback() || plain_http {
        return Ok(());
    }
    bail!(
        "{} is not encrypted: whoever shares the network could read everything and run commands here. Use an address that \
         begins with https:// (`tailscale serve` gives one), or pass --plain-http if nobody else is on that network",
        page.text()
    )
}

fn explain_not_allowed(page: &PageAddress, data: &Path) -> String {
    let name = page.name();
    format!(
        "the host does not answer to the name {name}. Add it to `allowed_hosts` in greenroom.toml (`{}` opens it):\n\n  \
         allowed_hosts = [\"{name}\"]\n\nThen `{}`, and pair again",
        command_for("config edit", data),
        command_for("restart", data)
    )
}

/// Whether there was room for it.
fn show_code(link: &str) -> std::io::Result<bool> {
    let columns = match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_UNKNOWN,
    };
    let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match qr_code::draw(link, columns, has_colours) {
        Some(code) => print_drawing(&code).map(|()| true),
        None => {
            eprintln!("The terminal is too narrow for a QR code.");
            Ok(false)
        }
    }
}
