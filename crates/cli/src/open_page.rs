//! `greenroom open`: the page in the browser of this machine, signed in.
//!
//! Promises: the link pairs one browser, once, within a minute; where no browser can be opened the link is printed.

mod browser;

use std::path::PathBuf;

use client::devices::{CodeRequest, request_code};
use client::endpoint;

use crate::exit::Exit;
use crate::output::print;
use crate::page_address::{PageAddress, find_or_start_host};

/// Open the sessions of this machine in the browser
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom open
  greenroom open --print               print the link instead, for a browser of your choice

Where no host runs, one is started in the background. The link signs one browser in, once, within a minute; it may then see the \
sessions and what models were sent. `greenroom devices` lists the browsers and signs them out, `greenroom pair` is for other \
devices.")]
pub(crate) struct OpenPageOptions {
    /// Print the link and open nothing
    #[arg(long)]
    print: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: OpenPageOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let host = find_or_start_host(&data).await?;
    let page = PageAddress::of_endpoint(&host)?;
    let request = CodeRequest { opens_here: true, inspect: true, ..CodeRequest::default() };
    let code = request_code(&host.destination(None), &request).await?;
    let link = page.pairing_link(&code.code);
    if options.print {
        print(&format!("{link}\n"))?;
        eprintln!("It signs one browser in, within {} s.", code.seconds);
        return Ok(Exit::Complete);
    }
    match browser::open(&link).await {
        Ok(()) => {
            let text = page.text();
            print(&format!("Opened {text} in the browser, which asks whether to pair it.\n"))?;
        }
        Err(why) => {
            eprintln!(
                "{why}. Open this link on this machine; it works once, within {} s:",
                code.seconds
            );
            print(&format!("{link}\n"))?;
        }
    }
    Ok(Exit::Complete)
}
