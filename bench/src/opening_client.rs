//! `bench opener`: comes, opens a chat in full, reads it all, leaves; again and again at a steady pace.
//!
//! Begins with `go` on standard input and ends with it; then one line of JSON says how many openings there were.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::measure::now_ns;
use crate::protocol;
use crate::socket::Socket;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OpenOptions {
    #[arg(long)]
    pub address: String,
    #[arg(long)]
    pub channel: String,
    #[arg(long)]
    pub every_ms: u64,
}

static OVER: AtomicBool = AtomicBool::new(false);

pub(crate) fn run(options: &OpenOptions) -> Result<()> {
    println!("{}", json!({"ready": true}));
    if std::io::stdin().read_line(&mut String::new())? == 0 {
        return Ok(());
    }
    std::thread::spawn(|| {
        // A line, the end or an error: all mean that it is over.
        let _ = std::io::stdin().read_line(&mut String::new());
        OVER.store(true, Ordering::Release);
    });
    let (mut opened, mut bytes) = (0_u64, 0);
    let mut due = now_ns();
    while !OVER.load(Ordering::Acquire) {
        let mut socket = Socket::join(&options.address, &format!("opener{opened}"))?;
        bytes += socket.ask_and_discard(&protocol::subscribe(&options.channel, None, None))?;
        opened += 1;
        due += options.every_ms * 1_000_000;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
    }
    println!("{}", json!({"opened": opened, "bytes": bytes}));
    Ok(())
}
