//! `cargo run -p xtask -- tidy`: prints what is untidy, and fails if anything is. `gen` writes what is made from types.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let verb = std::env::args().nth(1);
    match verb.as_deref() {
        Some("tidy") => tidy(),
        Some("gen") => generate(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy | gen");
            Ok(ExitCode::from(2))
        }
    }
}

/// JSON Schemas of extensions: the types know them, and a test of theirs writes them when asked to.
fn generate() -> anyhow::Result<ExitCode> {
    let status = std::process::Command::new(env!("CARGO"))
        .args(["test", "--quiet", "-p", "wire", "--test", "schemas"])
        .current_dir(xtask::root())
        .env("GREENROOM_WRITE_SCHEMAS", "1")
        .status()?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn tidy() -> anyhow::Result<ExitCode> {
    let root = xtask::root();
    let large = xtask::list_large_files(&root)?;
    for line in &large {
        println!("large: {line}");
    }
    let findings = xtask::run_checks(&root)?;
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
        large.len()
    );
    Ok(match findings.wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
