//! What nodes take for many spaces: `cargo run --release -p cluster --bin many_spaces -- --spaces 10000 --clients 1000`.
//!
//! `--visited 2000` has that many more loaded, without a client. Statements are counted for `--seconds 60` while nobody does
//! anything; 0: they are not. This process and each node need a file descriptor for every client and every loaded space:
//! `ulimit -n 16384`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cluster::{ManySpacesPlan, many_spaces};

#[tokio::main]
async fn main() -> Result<()> {
    let mut plan = ManySpacesPlan {
        spaces: 10_000,
        with_clients: 1_000,
        visited: 0,
        quiet: Duration::from_secs(60),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} takes a number"))?;
        let value: usize = value.parse().with_context(|| format!("{word} {value}"))?;
        match word.as_str() {
            "--spaces" => plan.spaces = value,
            "--clients" => plan.with_clients = value,
            "--visited" => plan.visited = value,
            "--seconds" => plan.quiet = Duration::from_secs(u64::try_from(value)?),
            _ => bail!("there are --spaces, --clients, --visited and --seconds, not {word}"),
        }
    }
    println!("{plan:?}");
    if let Some(report) = many_spaces(plan).await? {
        println!("{}", report.describe());
    }
    Ok(())
}
