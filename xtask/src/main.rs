//! `cargo run -p xtask -- tidy`: prints what is untidy, and fails if anything is. `cargo run -p xtask -- interop`: works with agents
//! that others make, and prints what worked. `cargo run -p xtask -- generations`: runs published clients of older versions against the
//! binary. `cargo run -p xtask -- durations`: prints the slowest tests of the last run by nextest. `cargo run -p xtask -- gen`: writes
//! what is made from other files.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let verb = std::env::args().nth(1);
    match verb.as_deref() {
        Some("tidy") => tidy(),
        Some("interop") => interop(),
        Some("generations") => generations(),
        Some("durations") => durations(),
        Some("gen") => {
            xtask::write_page_types(&xtask::root())?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- tidy | gen | durations | interop [NAME..] | generations"
            );
            Ok(ExitCode::from(2))
        }
    }
}

fn interop() -> anyhow::Result<ExitCode> {
    let names: Vec<String> = std::env::args().skip(2).collect();
    Ok(if xtask::run_interop(&xtask::root(), &names)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn generations() -> anyhow::Result<ExitCode> {
    Ok(if xtask::run_generations(&xtask::root())? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn durations() -> anyhow::Result<ExitCode> {
    Ok(if xtask::report_durations(&xtask::root())? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tidy() -> anyhow::Result<ExitCode> {
    let root = xtask::root();
    let mut findings = xtask::run_checks(&root)?;
    findings.wrong.extend(xtask::check_program(&root)?);
    for line in &findings.large {
        println!("large: {line}");
    }
    for line in &findings.pending {
        println!("pending: {line}");
    }
    for line in &findings.wrong {
        println!("wrong: {line}");
    }
    println!(
        "tidy: {} wrong, {} pending, {} large",
        findings.wrong.len(),
        findings.pending.len(),
        findings.large.len()
    );
    Ok(if findings.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
