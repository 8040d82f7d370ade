//! What agents should not do, done on purpose.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use rustix::process::{Signal, getpid, kill_process};

use crate::agent::Agent;
use crate::log;
use crate::script::Step;

/// One piece of a line without end.
const PIECE: usize = 64 * 1024;

pub(crate) async fn play(agent: &Agent, step: Step) -> Result<()> {
    match step {
        Step::Exit(code) => std::process::exit(code),
        Step::Kill => {
            kill_process(getpid(), Signal::KILL)?;
            std::future::pending().await
        }
        Step::Stderr { text, times } => {
            for _ in 0..times {
                eprintln!("{text}");
            }
            Ok(())
        }
        Step::Garbage(lines) => {
            for number in 0..lines {
                let line = format!("this is line {number} of something that is no JSON\n");
                agent.connection.write(line.as_bytes()).await?;
            }
            Ok(())
        }
        Step::EndlessLine(bytes) => write_endless_line(agent, bytes).await,
        Step::Child { ignores_term } => leave_child(agent, ignores_term),
        other => bail!("this is no fault: {other:?}"),
    }
}

async fn write_endless_line(agent: &Agent, bytes: usize) -> Result<()> {
    let piece = vec![b'x'; PIECE];
    let mut left = bytes;
    while left > 0 {
        let size = left.min(PIECE);
        agent.connection.write(&piece[..size]).await?;
        left -= size;
    }
    Ok(())
}

fn leave_child(agent: &Agent, ignores_term: bool) -> Result<()> {
    let trap = if ignores_term { "trap '' TERM HUP INT; " } else { "" };
    let mut child = Command::new("sh");
    child.args(["-c", &format!("{trap}while :; do sleep 1; done")]);
    child.stdin(Stdio::null());
    child.stdout(Stdio::null());
    child.stderr(Stdio::null());
    let child = child.spawn()?;
    log::append(&agent.options.state, "children", &child.id())
}
