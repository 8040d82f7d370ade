//! A call of an MCP tool over pipes with 1 KB each way, as the native agent makes it, against rmcp with nothing around it. The server
//! is the same. Nothing is recorded by either: a call in a turn has the commits of a turn besides.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Map, Value};

use super::{median_of, values};
use crate::harness::Harness;
use crate::host_api::mcp::{PipedServer, SilentCaller};
use crate::measure::{median, now_ns, spread};
use crate::table::Figure;

const BYTES: usize = 1_024;
const FACTOR: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Agent,
    Rmcp,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let calls = if harness.quick { 300 } else { 1_000 };
    let bench = harness.bench().to_owned();
    let directory = harness.directory()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let subjects = [Subject::Agent, Subject::Rmcp];
    let results = harness.shuffled(&subjects, |_, subject| {
        runtime.block_on(async {
            match subject {
                Subject::Agent => through_agent(&bench, &directory, calls).await,
                Subject::Rmcp => through_rmcp(&bench, calls).await,
            }
        })
    })?;
    let time = |us: &f64| *us;
    let figure = Figure::at_most(
        "an MCP call of 1 KB over pipes, p50, against rmcp alone",
        "us",
        median_of(&results, Subject::Agent, time),
        median_of(&results, Subject::Rmcp, time),
        FACTOR,
    );
    Ok(vec![figure.note(format!(
        "rounds: agent {}, rmcp {}",
        spread(&values(&results, Subject::Agent, time)),
        spread(&values(&results, Subject::Rmcp, time)),
    ))])
}

fn arguments() -> Map<String, Value> {
    let mut arguments = Map::new();
    arguments.insert("text".to_owned(), Value::from("x".repeat(BYTES)));
    arguments
}

async fn through_agent(bench: &Path, directory: &Path, calls: usize) -> Result<f64> {
    let server = PipedServer::open(bench, &["mcp-server"], PathBuf::from(directory)).await?;
    let mut times = Vec::new();
    for _ in 0..calls {
        let began = now_ns();
        let length = server.call("echo", arguments(), &SilentCaller).await?;
        times.push((now_ns() - began) as f64 / 1_000.0);
        ensure!(length == BYTES, "the text comes back");
    }
    Ok(median(&times))
}

async fn through_rmcp(bench: &Path, calls: usize) -> Result<f64> {
    let mut child = tokio::process::Command::new(bench)
        .arg("mcp-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let input = child.stdin.take().context("it has a pipe")?;
    let output = child.stdout.take().context("it has a pipe")?;
    let client = ().serve((output, input)).await?;
    let mut times = Vec::new();
    for _ in 0..calls {
        let params = CallToolRequestParams::new("echo").with_arguments(arguments());
        let began = now_ns();
        let result = client.call_tool(params).await?;
        times.push((now_ns() - began) as f64 / 1_000.0);
        ensure!(result.content.len() == 1, "the text comes back");
    }
    client.cancel().await?;
    Ok(median(&times))
}
