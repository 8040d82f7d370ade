//! `greenroom status`: what the local host is and what it is doing.
//!
//! Promises: changes nothing and starts nothing. The exit code says whether a host runs.

use std::path::{Path, PathBuf};

use client::endpoint;
use serde_json::{Value, json};

use crate::clock::now;
use crate::exit::Exit;
use crate::format::{format_count, format_duration};
use crate::host_record::RunMode;
use crate::local_host::{HostReport, LocalHost};
use crate::output::{print, print_json};
use crate::restart::compare_versions;
use crate::service::Service;
use crate::stop::command_for;
use crate::terminal::{escape, escape_line};

/// Show whether a host runs on this machine, and what it is doing
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom status
  greenroom status --json | jq .sessions.waiting
  greenroom status > /dev/null || greenroom restart

Exit codes: 0 a host runs, 1 one holds the data directory and does not answer, 3 none runs.")]
pub(crate) struct StatusOptions {
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: StatusOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let service = Service::for_data(&data).map(|service| service.state());
    let Some(host) = LocalHost::find(&data)? else {
        report_absence(&data, service, options.json)?;
        return Ok(Exit::NotRunning);
    };
    let report = host.ask(&data).await;
    if options.json {
        print_json(&to_json(&data, &host, &report, service))?
    } else {
        print(&to_text(&data, &host, &report, service))?
    }
    match report {
        Ok(_) => Ok(Exit::Complete),
        Err(error) => {
            eprintln!(
                "greenroom: the host does not answer: {}. `{}` stops it, `{}` says more",
                escape(&format!("{error:#}")),
                command_for("stop", &data),
                command_for("doctor", &data)
            );
            Ok(Exit::Failed)
        }
    }
}

fn report_absence(data: &Path, service: Option<&str>, as_json: bool) -> std::io::Result<()> {
    if as_json {
        return print_json(&json!({
            "running": false, "data": data.display().to_string(), "service": service,
        }));
    }
    let service = service.map_or_else(String::new, |state| format!("Service: {state}.\n"));
    print(&format!(
        "No host is running with the data directory {}.\n{service}Start one with `greenroom chat` or `{}`.\n",
        data.display(),
        command_for("serve", data)
    ))
}

/// Since when it runs, in seconds.
fn uptime_seconds(host: &LocalHost) -> Option<i64> {
    let record = host.record.as_ref()?;
    Some(now().ms_since(record.started).max(0) / 1_000)
}

fn version_of(host: &LocalHost) -> Option<&str> {
    let endpoint = host.endpoint.as_ref().ok();
    endpoint.map(|endpoint| endpoint.version.as_str())
}

fn to_json(
    data: &Path,
    host: &LocalHost,
    report: &anyhow::Result<HostReport>,
    service: Option<&str>,
) -> Value {
    let record = host.record.as_ref();
    let mut status = json!({
        "running": true,
        "answers": report.is_ok(),
        "address": host.address(),
        "pid": host.pid,
        "version": version_of(host),
        "programVersion": host::VERSION,
        "mode": record.map(|record| record.mode.name()),
        "startedAt": record.map(|record| record.started.to_rfc3339()),
        "uptimeSeconds": uptime_seconds(host),
        "data": data.display().to_string(),
        "log": record.and_then(|record| record.log.as_ref()).map(|log| log.display().to_string()),
        "service": service,
    });
    match report {
        Ok(report) => {
            status["clients"] = json!(report.clients);
            status["models"] = json!(report.models);
            status["sessions"] = json!({
                "total": report.sessions.len(),
                "working": report.working().len(),
                "waiting": report.waiting().len(),
            });
        }
        Err(error) => status["error"] = json!(format!("{error:#}")),
    }
    status
}

fn to_text(
    data: &Path,
    host: &LocalHost,
    report: &anyhow::Result<HostReport>,
    service: Option<&str>,
) -> String {
    let record = host.record.as_ref();
    let pid = host.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    let mode = record.map(|record| match record.mode {
        RunMode::Foreground => ", in a terminal or started by another program",
        RunMode::Background => ", in the background",
        RunMode::Service => ", as a service",
    });
    let mut lines = vec![
        ("version", version_of(host).unwrap_or("unknown").to_owned()),
        ("address", host.address().unwrap_or("none yet").to_owned()),
        ("process", format!("{pid}{}", mode.unwrap_or_default())),
    ];
    if let Some(seconds) = uptime_seconds(host) {
        lines.push(("uptime", format_duration(seconds)));
    }
    lines.push(("data", data.display().to_string()));
    if let Ok(report) = report {
        lines.push(("sessions", describe_sessions(report)));
        if let Some(clients) = report.clients {
            lines.push(("clients", format!("{clients} connected")));
        }
        let models = if report.models.is_empty() {
            "none; `greenroom models` says how to add one".to_owned()
        } else {
            report.models.join(", ")
        };
        lines.push(("models", models));
    }
    let log = record.map(|record| match &record.log {
        Some(log) => log.display().to_string(),
        None => "standard error of the host".to_owned(),
    });
    lines.extend(log.map(|log| ("log", log)));
    lines.extend(service.map(|state| ("service", state.to_owned())));
    let restart = command_for("restart", data);
    let other =
        version_of(host).and_then(|running| compare_versions(running, host::VERSION, &restart));
    let rows = lines.iter().map(|(name, value)| format!("{name:9} {}\n", escape_line(value)));
    rows.chain(other.map(|note| format!("\n{note}\n"))).collect()
}

fn describe_sessions(report: &HostReport) -> String {
    let mut parts = vec![report.sessions.len().to_string()];
    let (working, waiting) = (report.working().len(), report.waiting().len());
    if working > 0 {
        parts.push(format!("{working} working"));
    }
    if waiting > 0 {
        let verb = if waiting == 1 { "waits" } else { "wait" };
        parts.push(format!("{waiting} {verb} for you"));
    }
    match parts.len() {
        1 => format_count(report.sessions.len() as u64, "session"),
        _ => parts.join(", "),
    }
}
