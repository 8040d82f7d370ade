//! `cargo run -p xtask -- tidy`: prints what is untidy, and fails if anything is. `cargo run -p xtask -- interop`: works with agents
//! that others make, and prints what worked. `cargo run -p xtask -- generations`: runs published clients of older versions against the
//! binary. `cargo run -p xtask -- gen`: writes what is made from other files.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let verb = std::env::args().nth(1);
    match verb.as_deref() {
        Some("tidy") => tidy(),
        Some("interop") => interop(),
        Some("generations") => generations(),
        Some("gen") => {
            xtask::write_page_types(&xtask::root())?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy | gen | interop [NAME..] | generations");
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

fn tidy() -> anyhow::Result<ExitCode> {
    let root = xtask::root();
    let findings = xtask::run_checks(&root)?;
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
