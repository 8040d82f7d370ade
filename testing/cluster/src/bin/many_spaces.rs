//! What nodes take for many spaces: `cargo run -p cluster --bin many_spaces -- --spaces 10000 --clients 1000`.
//!
//! This process and each node need a file descriptor for every client: `ulimit -n 8192`.

use anyhow::{Context as _, Result, bail};
use cluster::{ManySpacesPlan, many_spaces};

#[tokio::main]
async fn main() -> Result<()> {
    let mut plan = ManySpacesPlan {
        spaces: 10_000,
        with_clients: 1_000,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .with_context(|| format!("{word} takes a number"))?;
        let value: usize = value.parse().with_context(|| format!("{word} {value}"))?;
        match word.as_str() {
            "--spaces" => plan.spaces = value,
            "--clients" => plan.with_clients = value,
            _ => bail!("there are --spaces and --clients, not {word}"),
        }
    }
    println!("{plan:?}");
    if let Some(report) = many_spaces(plan).await? {
        println!("{}", report.describe());
    }
    Ok(())
}
