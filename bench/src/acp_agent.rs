//! `bench acp-agent`: an agent over ACP that does what a prompt says and nothing else, on pipes, for many sessions at once.
//!
//! `stream N SIZE EVERY_MS` is answered with N updates of a fixed size at a steady pace; `stamped N SIZE EVERY_MS` with updates
//! that carry the moment of their sending; `commands BYTES` with a list of commands of that size and one update behind it; anything
//! else with nothing. With `--replay N` it can load a session, and says N updates of it before it answers. With `--cancels FILE`
//! it writes down when it was told to cancel. It goes when its standard input ends, as real ones do.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::measure::now_ns;
use crate::protocol::{STAMP_BYTES, Stamp};

/// A word of which each update has one.
pub(crate) const WORD: &str = "quick";

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AgentOptions {
    /// Say so many updates when a session is loaded; without it none can be
    #[arg(long)]
    pub replay: Option<u64>,
    /// Append the moment of every cancel to this file
    #[arg(long)]
    pub cancels: Option<PathBuf>,
}

/// What its threads share.
#[derive(Default)]
struct Shared {
    /// Sessions whose prompt is to end.
    cancelled: Mutex<HashMap<String, Arc<AtomicBool>>>,
}

pub(crate) fn run(options: &AgentOptions) -> Result<()> {
    let shared = Arc::new(Shared::default());
    let mut sessions = 0;
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let (id, params) = (request["id"].clone(), &request["params"]);
        let session = params["sessionId"].as_str().unwrap_or("bench").to_owned();
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": 1, "agentCapabilities": {"loadSession": options.replay.is_some()},
            }),
            Some("session/new") => {
                sessions += 1;
                json!({"sessionId": format!("bench-{sessions}")})
            }
            Some("session/load") => {
                replay(&session, options.replay.unwrap_or(0))?;
                json!({})
            }
            Some("session/cancel") => {
                note_cancel(options)?;
                shared.cancel(&session);
                continue;
            }
            Some("session/prompt") => {
                let (shared, params) = (Arc::clone(&shared), params.clone());
                std::thread::spawn(move || {
                    let ended = answer_prompt(&shared, &session, &params);
                    let reason = ended.unwrap_or_else(|error| {
                        eprintln!("acp-agent: {error:#}");
                        "refusal"
                    });
                    // A host that is gone needs no answer.
                    let _ = write_line(
                        &json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": reason}}),
                    );
                });
                continue;
            }
            Some(_) => json!({}),
            None => continue, // an answer: nothing was asked
        };
        if request.get("id").is_some() {
            write_line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        }
    }
    Ok(())
}

impl Shared {
    fn flag(&self, session: &str) -> Arc<AtomicBool> {
        let fresh = Arc::new(AtomicBool::new(false));
        let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        cancelled.insert(session.to_owned(), Arc::clone(&fresh));
        fresh
    }

    fn cancel(&self, session: &str) {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flag) = cancelled.get(session) {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

fn note_cancel(options: &AgentOptions) -> Result<()> {
    let now = now_ns();
    let Some(path) = &options.cancels else {
        return Ok(()); // nobody wants to know
    };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    Ok(file.write_all(format!("{now}\n").as_bytes())?)
}

/// Does what a prompt says; why it ended.
fn answer_prompt(shared: &Shared, session: &str, params: &Value) -> Result<&'static str> {
    let cancelled = shared.flag(session);
    let blocks = params["prompt"].as_array().context("a prompt has blocks")?;
    let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let Some((what, numbers)) = texts.find_map(read_wish) else {
        return Ok("end_turn"); // nothing is wanted
    };
    match (what, &numbers[..]) {
        ("commands", [bytes]) => {
            write_line(&commands(session, usize::try_from(*bytes)?))?;
            write_line(&text_update(session, &padded(WORD, 100)))?;
        }
        ("stream" | "stamped", [count, size, every_ms]) => {
            let size = usize::try_from(*size)?;
            let plain = text_update(session, &padded(WORD, size));
            let began = now_ns();
            for number in 0..*count {
                let due = began + number * every_ms * 1_000_000;
                std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
                if cancelled.load(Ordering::Relaxed) {
                    return Ok("cancelled");
                }
                match what {
                    "stream" => write_line(&plain)?,
                    _ => write_line(&stamped_update(session, u32::try_from(number)?, size))?,
                }
            }
        }
        _ => {
            anyhow::bail!("`stream N SIZE EVERY_MS`, `stamped N SIZE EVERY_MS` or `commands BYTES`")
        }
    }
    Ok("end_turn")
}

/// A wish in the text of a prompt: a word and numbers.
fn read_wish(text: &str) -> Option<(&str, Vec<u64>)> {
    let (what, numbers) = text.split_once(' ')?;
    let is_known = matches!(what, "stream" | "stamped" | "commands");
    let numbers: Result<Vec<u64>, _> = numbers.split(' ').map(str::parse).collect();
    Some((what, numbers.ok()?)).filter(|_| is_known)
}

fn stamped_update(session: &str, index: u32, size: usize) -> Value {
    let sent_ns = now_ns();
    let stamp = Stamp { index, sent_ns }.text();
    debug_assert_eq!(stamp.len(), STAMP_BYTES);
    text_update(session, &padded(&stamp, size))
}

/// What an agent has said before is said again.
fn replay(session: &str, count: u64) -> Result<()> {
    let line = format!("{}\n", text_update(session, &padded(WORD, 100)));
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for _ in 0..count {
        output.write_all(line.as_bytes())?;
    }
    output.flush().context("the host is gone")
}

fn padded(text: &str, size: usize) -> String {
    format!("{text} {}", "x".repeat(size.saturating_sub(text.len() + 1)))
}

pub(crate) fn text_update(session: &str, text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    session_update(session, json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

/// A list of commands of about so many bytes.
pub(crate) fn commands(session: &str, bytes: usize) -> Value {
    const EACH: usize = 2_000;
    let command = |number: usize| {
        let description = padded(&format!("Does thing number {number}"), EACH - 60);
        json!({"name": format!("command-{number}"), "description": description})
    };
    let commands: Vec<Value> = (0..bytes / EACH).map(command).collect();
    session_update(
        session,
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
    )
}

pub(crate) fn session_update(session: &str, update: Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

fn write_line(value: &Value) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{value}\n").as_bytes())?;
    output.flush().context("the host is gone")
}
