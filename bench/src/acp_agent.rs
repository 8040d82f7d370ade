//! `bench acp-agent`: an agent over ACP that does nothing but stream, on pipes. A prompt `stream N SIZE EVERY_MS` is answered with
//! N updates of a fixed size at a steady pace; anything else with nothing.

use std::io::{BufRead, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::measure::now_ns;

/// A word of which each update has one.
pub(crate) const WORD: &str = "quick";

pub(crate) fn run() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let result = match request["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": 1, "agentCapabilities": {}}),
            Some("session/new") => json!({"sessionId": "bench"}),
            Some("session/prompt") => {
                answer_prompt(&mut output, &request["params"])?;
                json!({"stopReason": "end_turn"})
            }
            Some(_) => json!({}),
            None => continue, // an answer: nothing was asked
        };
        if request.get("id").is_some() {
            write_line(
                &mut output,
                &json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
            )?;
        }
    }
    Ok(())
}

fn answer_prompt(output: &mut impl Write, params: &Value) -> Result<()> {
    let blocks = params["prompt"].as_array().context("a prompt has blocks")?;
    let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let Some(wanted) = texts.find_map(|text| text.strip_prefix("stream ")) else {
        return Ok(()); // nothing is to be streamed
    };
    let numbers: Vec<u64> = wanted
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [count, size, every_ms] = numbers[..] else {
        anyhow::bail!("`stream N SIZE EVERY_MS`");
    };
    let size = usize::try_from(size)?;
    let text = format!("{WORD} {}", "x".repeat(size.saturating_sub(WORD.len() + 1)));
    let update =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let params = json!({"sessionId": "bench", "update": update});
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    let began = now_ns();
    for number in 0..count {
        let due = began + number * every_ms * 1_000_000;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
        write_line(output, &update)?;
    }
    Ok(())
}

fn write_line(output: &mut impl Write, value: &Value) -> Result<()> {
    writeln!(output, "{value}")?;
    output.flush().context("the host is gone")
}
