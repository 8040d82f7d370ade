//! `greenroom agents token`: brings a token for an agent or an MCP server that wants one.
//!
//! Promises: the token is read from standard input, and is in no argument, file or output of this program.
//! Must not know: how a token is made.

use std::io::Read;

use anyhow::{Context, bail};
use client::token::bring_token;
use wire::ChannelUri;

use crate::exit::Exit;
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// Longest token that a host takes.
const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// Give a token to an agent or an MCP server that needs one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom agents token https://mcp.example.com/mcp < token-file
  pass show example | greenroom agents token https://mcp.example.com/mcp
  greenroom agents token --forget https://mcp.example.com/mcp

RESOURCE is what the server's state names (`authRequired`). The host holds the token in memory, and sends it to that resource alone. \
A call that waits for it goes on.")]
pub(super) struct TokenOptions {
    /// What the token is for
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// Remove the token that was given before
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(super) async fn run(options: &TokenOptions) -> anyhow::Result<Exit> {
    let token = if options.forget { String::new() } else { read_token()? };
    let (live, _updates) = options.host.live(&[ChannelUri::root()]).await?;
    let brought = bring_token(&live, &options.resource, &token, None).await;
    live.close().await;
    brought.with_context(|| {
        format!("the host refused the token for {}", escape_line(&options.resource))
    })?;
    Ok(Exit::Complete)
}

fn read_token() -> anyhow::Result<String> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(TOKEN_BYTES_MAX + 1);
    let read = input.read_to_string(&mut text);
    read.context("the token on standard input cannot be read")?;
    let token = text.trim();
    if token.is_empty() {
        bail!("there is no token on standard input; `--forget` removes a stored one");
    }
    Ok(token.to_owned())
}
