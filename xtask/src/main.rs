//! `cargo run -p xtask -- tidy`: says what is untidy, and fails if anything is.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let verb = std::env::args().nth(1);
    match verb.as_deref() {
        Some("tidy") => tidy(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
            Ok(ExitCode::from(2))
        }
    }
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
