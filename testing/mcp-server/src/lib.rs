//! An MCP server for tests, on the published library: what it answers, and the faults that it has on demand.
//!
//! Promises: every fault is a switch or a tool, so that a test names what it is about. A start is noted in a file, so that
//! a test can count them.
//! Must not know: the client that it is tested with.

mod http;
mod oauth;
mod server;
mod tools;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use rmcp::ServiceExt;

pub use server::TestServer;

/// What the server does, and what it does wrong.
#[derive(Debug, Clone, Parser)]
pub struct Switches {
    /// Serves HTTP on a free port of this machine, and writes its URL into this file.
    #[arg(long)]
    pub http: Option<PathBuf>,
    /// HTTP: answers with one JSON body instead of a stream of events.
    #[arg(long)]
    pub json: bool,
    /// HTTP: answers 401 to who does not bring this token.
    #[arg(long)]
    pub token: Option<String>,
    /// HTTP: answers 401 to who does not bring a token of the authorisation server that it is itself.
    #[arg(long)]
    pub oauth: bool,
    /// How long its tokens are good.
    #[arg(long, default_value_t = 3_600)]
    pub token_seconds: u64,
    /// Its tokens can be renewed.
    #[arg(long)]
    pub renewals: bool,
    /// Appends a line with its process number to this file when it starts.
    #[arg(long)]
    pub starts: Option<PathBuf>,
    /// Reads, and answers nothing.
    #[arg(long)]
    pub silent: bool,
    /// Says why on standard error and exits.
    #[arg(long)]
    pub exits: bool,
    /// Says what this variable holds on standard error and exits.
    #[arg(long)]
    pub tells: Option<String>,
    /// Answers `initialize` with an error of these words.
    #[arg(long)]
    pub refuses: Option<String>,
    /// Speaks the version without `initialize` (2026-07-28) and no other.
    #[arg(long)]
    pub newest: bool,
    /// Prints a line that is no JSON before it answers anything.
    #[arg(long)]
    pub garbage: bool,
    /// Does not go when its input ends.
    #[arg(long)]
    pub stays: bool,
    /// Lists this many tools more, in pages of 1,000.
    #[arg(long, default_value_t = 0)]
    pub tools: usize,
    /// Lists this many resources more.
    #[arg(long, default_value_t = 0)]
    pub resources: usize,
    /// Lists tools without an end: every page names another.
    #[arg(long)]
    pub endless: bool,
    /// Says all the time that its tools changed; each list names how many there were before it, as `listed0`.
    #[arg(long)]
    pub restless: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self::parse_from(["mcp-test-server"])
    }
}

/// Runs the program.
pub fn run() -> anyhow::Result<()> {
    run_with(Switches::parse())
}

/// Runs the server until its input ends.
pub fn run_with(switches: Switches) -> anyhow::Result<()> {
    note_start(&switches)?;
    if switches.exits {
        eprintln!("loading the configuration");
        eprintln!("there is no database at db.example");
        std::process::exit(4);
    }
    if let Some(name) = &switches.tells {
        let value = std::env::var(name).unwrap_or_default();
        eprintln!("cannot sign in with {value}");
        std::process::exit(4);
    }
    if switches.silent {
        return read_for_ever();
    }
    if switches.garbage {
        println!("Server is starting, please wait!");
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(serve(switches))
}

async fn serve(switches: Switches) -> anyhow::Result<()> {
    if let Some(file) = switches.http.clone() {
        return http::serve(switches, &file).await;
    }
    let stays = switches.stays;
    let server = TestServer::new(switches);
    let stdio = (tokio::io::stdin(), tokio::io::stdout());
    let running = server.serve(stdio).await.context("no handshake")?;
    running.waiting().await?;
    if stays {
        std::future::pending::<()>().await;
    }
    // The thread that reads standard input cannot be ended otherwise.
    std::process::exit(0)
}

fn note_start(switches: &Switches) -> anyhow::Result<()> {
    let Some(path) = &switches.starts else {
        return Ok(()); // nobody counts
    };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(())
}

fn read_for_ever() -> anyhow::Result<()> {
    let mut input = [0; 4_096];
    while std::io::stdin().read(&mut input)? > 0 {}
    Ok(())
}
