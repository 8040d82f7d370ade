//! `cargo run --release -p bench [name...]`: what ARCHITECTURE.md quotes, each figure beside its floor from the same
//! shuffled run.
//!
//! The host is the real `greenroom` binary, started as a process of its own on a data directory on disk; watchers
//! and openers are other processes (this program again, under names that `--help` does not show). Figures are
//! medians over rounds; in each round every subject runs once, in an order that seeded dice decide.

mod affinity;
mod bare;
mod burst;
mod dial;
mod disk;
mod frames;
mod guard;
mod lab;
mod measure;
mod model_server;
mod opener;
mod process;
mod relay;
mod rows;
mod schedule;
mod seed_data;
mod socket;
mod stage;
mod table;
mod watcher;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::lab::Lab;
use crate::rows::ROWS;

/// Measures the host against what its work costs at least.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct Cli {
    /// Rows to measure; all if none is named
    names: Vec<String>,
    /// Show the names of the rows
    #[arg(long)]
    list: bool,
    /// Fewer and shorter rounds: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// One JSON object with all figures instead of the table
    #[arg(long)]
    json: bool,
    /// Decides the order of subjects
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(subcommand)]
    helper: Option<Helper>,
}

#[derive(Debug, Subcommand)]
enum Helper {
    #[command(name = "bare-server", hide = true)]
    Bare(bare::BareOptions),
    #[command(name = "watchers", hide = true)]
    Watch(watcher::WatchOptions),
    #[command(name = "askers", hide = true)]
    Burst(burst::BurstOptions),
    #[command(name = "guard", hide = true)]
    Guard(guard::GuardOptions),
    #[command(name = "model-server", hide = true)]
    Model,
    #[command(name = "opener", hide = true)]
    Open(opener::OpenOptions),
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.helper {
        Some(Helper::Bare(options)) => bare::run(options)?,
        Some(Helper::Watch(options)) => watcher::run(&options)?,
        Some(Helper::Burst(options)) => burst::run(&options)?,
        Some(Helper::Guard(options)) => guard::run(&options)?,
        Some(Helper::Model) => model_server::run()?,
        Some(Helper::Open(options)) => opener::run(&options)?,
        None if cli.list => {
            for row in ROWS {
                println!("{:<16} {}", row.name, row.what);
            }
        }
        None => return measure(&cli),
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if a figure misses what it must reach, or a row could not be measured.
fn measure(cli: &Cli) -> Result<ExitCode> {
    for name in &cli.names {
        if !ROWS.iter().any(|row| row.name == name) {
            bail!("there is no row `{name}`; --list shows them");
        }
    }
    raise_file_limit()?;
    let mut lab = Lab::open(cli.quick, cli.seed)?;
    let wanted = |name: &str| cli.names.is_empty() || cli.names.iter().any(|wanted| wanted == name);
    let (mut figures, mut failed) = (Vec::new(), Vec::new());
    for row in ROWS.iter().filter(|row| wanted(row.name)) {
        eprintln!("{}: {}", row.name, row.what);
        match (row.run)(&mut lab) {
            Ok(more) => {
                eprintln!("{}", table::text(&more));
                figures.extend(more);
            }
            Err(error) => {
                eprintln!("{} could not be measured: {error:#}\n", row.name);
                failed.push(json!({"row": row.name, "error": format!("{error:#}")}));
            }
        }
    }
    let passed = failed.is_empty() && figures.iter().all(|figure| figure.ok != Some(false));
    if cli.json {
        println!(
            "{}",
            json!({"figures": figures, "failed": failed, "quick": cli.quick})
        );
    } else {
        println!("{}", table::text(&figures));
        for row in &failed {
            println!("not measured: {} ({})", row["row"], row["error"]);
        }
    }
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A thousand watchers need more files than some systems allow by default; children inherit it.
fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )?;
    Ok(())
}
