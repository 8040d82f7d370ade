//! The floor of an agent's answer: its lines are read from its pipe, and each is one frame to every watcher. Nothing is decoded,
//! decided or recorded.

use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::host_api::net::{Frame, Link};

pub(crate) struct AgentRelay;

impl AgentRelay {
    /// Starts an agent, prompts it, and hands on what it says to these, each with its delivery window.
    pub(crate) fn ask(&self, text: &str, to: Vec<(Arc<Link>, u32)>) {
        let text = text.to_owned();
        tokio::spawn(async move {
            if let Err(error) = hand_on(&text, &to).await {
                eprintln!("relay: {error:#}");
            }
        });
    }
}

async fn hand_on(text: &str, to: &[(Arc<Link>, u32)]) -> Result<()> {
    let mut agent = Command::new(std::env::current_exe()?)
        .arg("acp-agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = agent.stdin.take().context("it has a pipe")?;
    let prompt = json!({"sessionId": "bench", "prompt": [{"type": "text", "text": text}]});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": prompt});
    input.write_all(format!("{request}\n").as_bytes()).await?;
    let output = agent.stdout.take().context("it has a pipe")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        let line = Bytes::from(line);
        for (link, window_ms) in to {
            link.push(Frame::Text(line.clone()), *window_ms);
        }
    }
    Ok(())
}
