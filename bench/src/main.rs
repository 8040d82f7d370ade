//! `cargo run --release -p bench`: the figures of the host, each beside its floor from the same shuffled run.
//!
//! The host is the real `greenroom` binary, started as a process of its own on a data directory on disk; watchers
//! and openers are other processes (this program again, under names that `--help` does not show). Figures are
//! medians over rounds; in each round every subject runs once, in an order that a seeded generator decides.
//!
//! Two versions are compared by `--json FILE` with the one and `--beside FILE` with the other.

mod acp_agent;
mod affinity;
mod agent_relay;
mod bare;
mod bare_page;
mod cleanup;
mod database;
mod disk;
mod driver;
mod frames;
mod harness;
mod host_api;
mod mcp_server;
mod measure;
mod model_server;
mod node_place;
mod opening_client;
mod process;
mod protocol;
mod pty;
mod recorder;
mod relay;
mod report;
mod requesting_clients;
mod rows;
mod schedule;
mod seed_data;
mod socket;
mod space_client;
mod tab;
mod table;
mod watcher;
mod wire_format;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::Harness;
use crate::report::{FailedRow, Report};
use crate::rows::ROWS;

/// Measures the host against what its work costs at least.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct Cli {
    /// Rows to measure, separated by commas; all if none is named
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    only: Vec<String>,
    /// Show the names of the rows
    #[arg(long)]
    list: bool,
    /// Fewer and shorter rounds: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// Write all figures to this file as one JSON object
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print these figures, written by `--json`, beside those of this run
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    /// The host to measure, instead of the one beside this program
    #[arg(long, value_name = "PROGRAM")]
    greenroom: Option<PathBuf>,
    /// Decides the order of subjects
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(subcommand)]
    child: Option<ChildRole>,
}

#[derive(Debug, Subcommand)]
enum ChildRole {
    #[command(name = "bare-server", hide = true)]
    Bare(bare::BareOptions),
    #[command(name = "bare-page", hide = true)]
    BarePage(bare_page::BarePageOptions),
    #[command(name = "watchers", hide = true)]
    Watch(watcher::WatchOptions),
    #[command(name = "askers", hide = true)]
    Burst(requesting_clients::RequestOptions),
    #[command(name = "cleanup", hide = true)]
    Cleanup(cleanup::CleanupOptions),
    #[command(name = "model-server", hide = true)]
    Model,
    #[command(name = "acp-agent", hide = true)]
    AcpAgent(acp_agent::AgentOptions),
    #[command(name = "mcp-server", hide = true)]
    McpServer,
    #[command(name = "opener", hide = true)]
    Open(opening_client::OpenOptions),
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.child {
        Some(ChildRole::Bare(options)) => bare::run(options)?,
        Some(ChildRole::BarePage(options)) => bare_page::run(&options)?,
        Some(ChildRole::Watch(options)) => watcher::run(&options)?,
        Some(ChildRole::Burst(options)) => requesting_clients::run(&options)?,
        Some(ChildRole::Cleanup(options)) => cleanup::run(&options)?,
        Some(ChildRole::Model) => model_server::run()?,
        Some(ChildRole::AcpAgent(options)) => acp_agent::run(&options)?,
        Some(ChildRole::McpServer) => mcp_server::run()?,
        Some(ChildRole::Open(options)) => opening_client::run(&options)?,
        None if cli.list => {
            for row in ROWS {
                println!("{:<16} {}", row.name, row.what);
            }
        }
        None => return measure(&cli),
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if a figure misses its bound, or a row could not be measured.
fn measure(cli: &Cli) -> Result<ExitCode> {
    for name in &cli.only {
        if !ROWS.iter().any(|row| row.name == name) {
            bail!("there is no row `{name}`; --list shows them");
        }
    }
    // Read first: a run of many minutes must not end in a file that is not there.
    let before = cli.beside.as_deref().map(report::read).transpose()?;
    raise_file_limit()?;
    let mut harness = Harness::open(cli.greenroom.as_deref(), cli.quick, cli.seed)?;
    let selected = |name: &str| cli.only.is_empty() || cli.only.iter().any(|only| only == name);
    let mut report = Report::new(cli.quick);
    let mut skipped = Vec::new();
    for row in ROWS.iter().filter(|row| selected(row.name)) {
        eprintln!("{}: {}", row.name, row.what);
        let began = Instant::now();
        let result = (row.run)(&mut harness);
        let seconds = began.elapsed().as_secs_f64();
        match result {
            Ok(figures) if figures.is_empty() => {
                eprintln!("{} is skipped\n", row.name);
                skipped.push(row.name);
            }
            Ok(figures) => {
                eprintln!("{}({seconds:.0} s)\n", table::markdown(&figures));
                report.figures.extend(figures);
            }
            Err(error) => {
                eprintln!("{} could not be measured: {error:#}\n", row.name);
                report
                    .failed
                    .push(FailedRow { row: row.name.to_owned(), error: format!("{error:#}") });
            }
        }
    }
    if let Some(path) = &cli.json {
        report::write(path, &report)?;
    }
    match &before {
        Some(before) => println!("{}", table::beside(&before.figures, &report.figures)),
        None => println!("{}", table::markdown(&report.figures)),
    }
    for name in skipped {
        println!("skipped: {name} (what it needs is not installed)");
    }
    for failed in &report.failed {
        println!("not measured: {} ({})", failed.row, failed.error);
    }
    Ok(if report.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A thousand watchers need more files than some systems allow by default; children inherit it.
fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(())
}
