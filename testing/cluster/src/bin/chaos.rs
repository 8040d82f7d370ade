//! A long chaos run: `cargo run -p cluster --bin chaos -- --minutes 60 --spaces 50 --seed 1`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use cluster::{ChaosPlan, run};

#[tokio::main]
async fn main() -> Result<()> {
    let mut plan = ChaosPlan {
        spaces: 50,
        time: Duration::from_secs(600),
        every_ms: 100,
        ..ChaosPlan::default()
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} takes a value"))?;
        if word == "--only" {
            plan.only = Some(value.leak());
            continue;
        }
        let value: u64 = value.parse().with_context(|| format!("{word} {value}"))?;
        match word.as_str() {
            "--seed" => plan.seed = value,
            "--spaces" => plan.spaces = usize::try_from(value)?,
            "--minutes" => plan.time = Duration::from_secs(value * 60),
            "--every-ms" => plan.every_ms = value,
            _ => bail!("there are --seed, --spaces, --minutes, --every-ms and --only, not {word}"),
        }
    }
    println!("{plan:?}");
    if let Some(report) = run(plan).await? {
        println!(
            "{} faults, {} actions heard, none lost; {} clients began anew\n{}",
            report.faults,
            report.actions,
            report.beginners,
            report.describe_absences()
        );
        let mut is_missed = false;
        // What is promised: a TTL of 6 s and 2 s, and a second.
        for (kind, bound) in [("kill", 8), ("drain", 1)] {
            let p99 = report.absence_at(kind, 0.99);
            let is_within = p99 <= Duration::from_secs(bound);
            let verdict = if is_within { "within" } else { "BEYOND" };
            println!("{kind}: p99 {p99:?}, {verdict} the bound of {bound} s");
            is_missed |= !is_within;
        }
        ensure!(!is_missed, "a bound was missed");
    }
    Ok(())
}
