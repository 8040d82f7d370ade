//! What the agent leaves in its state directory for tests, and how they read it.
//!
//! A line is one write to a file opened for appending, so that several processes may write and a reader never sees half a line
//! but the last one, which it leaves out.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of the client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Received {
    /// The agent's process that got it.
    pub pid: u32,
    pub frame: Value,
    /// Why the frame is not of the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// A process of the agent that was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    pub pid: u32,
    pub directory: String,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

/// What clients sent to all processes on a state directory, in order.
pub fn received(state: &Path) -> Vec<Received> {
    read_lines(&state.join("received.jsonl"))
}

/// The processes that ran on a state directory, oldest first.
pub fn starts(state: &Path) -> Vec<Start> {
    read_lines(&state.join("starts.jsonl"))
}

/// The processes that agents started and left.
pub fn children(state: &Path) -> Vec<u32> {
    read_lines(&state.join("children"))
}

pub(crate) fn append(state: &Path, name: &str, line: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .append(true)
        .open(state.join(name))
        .with_context(|| format!("cannot write to {name}"))?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Counts one more of something over all processes; how many there were before.
pub(crate) fn count(state: &Path, name: &str) -> Result<u64> {
    let before = read_lines::<u32>(&state.join(name)).len();
    append(state, name, &std::process::id())?;
    Ok(before as u64)
}

pub(crate) fn append_start(state: &Path) -> Result<()> {
    let start = Start {
        pid: std::process::id(),
        directory: std::env::current_dir()?.display().to_string(),
        arguments: std::env::args().skip(1).collect(),
        environment: std::env::vars().collect(),
    };
    append(state, "starts.jsonl", &start)
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    // No file: nothing was written yet.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(serde_json::from_str);
    lines.filter_map(Result::ok).collect()
}
