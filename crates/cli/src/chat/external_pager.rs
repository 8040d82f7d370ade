//! The user's pager: which one, and a text in it.

use std::process::Stdio;

use anyhow::Context;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::line::{Line, Style, TAB};
use crate::terminal::escape;

/// Used if no other is named and it is there.
const PAGER_DEFAULT: &str = "less";

/// The command of the pager; none if there is none, or if it would only print.
pub(crate) fn find_pager() -> Option<String> {
    let named = std::env::var("PAGER").ok();
    match named.as_deref().map(str::trim) {
        Some("" | "cat") => None,
        Some(named) => Some(named.to_owned()),
        None => is_in_path(PAGER_DEFAULT).then(|| PAGER_DEFAULT.to_owned()),
    }
}

fn is_in_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(program).is_file())
}

/// Starts the pager with a text; it has the terminal until it ends.
pub(crate) fn open_pager(command: &str, text: String) -> anyhow::Result<Child> {
    // Through the shell, since the variable may hold options.
    let mut pager = Command::new("sh");
    pager.arg("-c").arg(command).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Our colours as colours.
        pager.env("LESS", "-R");
    }
    let mut child = pager
        .spawn()
        .with_context(|| format!("the pager `{command}` could not be started; set $PAGER"))?;
    if let Some(mut input) = child.stdin.take() {
        tokio::spawn(async move {
            // Whoever leaves the pager early has seen enough.
            let _ = input.write_all(text.as_bytes()).await;
        });
    }
    Ok(child)
}

/// A text in lines as they are, without anything that would control the terminal.
pub(crate) fn text_lines(text: &str) -> Vec<Line> {
    escape(text).replace('\t', TAB).lines().map(|line| Line::new(Style::Plain, line)).collect()
}
