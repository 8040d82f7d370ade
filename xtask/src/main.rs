//! `cargo run -p xtask -- tidy`: says what is untidy, and fails if anything is. `gen` writes what is made from types.

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
    let mut wrong = xtask::wrong_edges(&root)?;
    let files = xtask::untidy_files(&root)?;
    for large in &files.large {
        println!("large: {large}");
    }
    wrong.extend(files.wrong);
    for line in &wrong {
        println!("wrong: {line}");
    }
    println!("tidy: {} wrong, {} large", wrong.len(), files.large.len());
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
