//! Asks the user, on the terminal.

use std::io::{self, IsTerminal, Write};

use anyhow::bail;

/// Whether the user agrees. Only `y` and `yes` do.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        bail!("this has to be confirmed, and there is no terminal to ask on: pass --yes");
    }
    let answer = read_answer(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// What the user types, in lower case; empty at the end of input.
pub(crate) fn read_answer(prompt: &str) -> io::Result<String> {
    let mut err = io::stderr();
    write!(err, "{}", crate::terminal::escape(prompt))?;
    err.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_lowercase())
}
