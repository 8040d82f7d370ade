//! The external agents as people and programs read them: those that a host offers, and those that could be installed.

use std::path::PathBuf;

use anyhow::Context;
use client::Endpoint;
use client::agent_log::read_agent_log;
use host::Config;
use host::acp_agents::{AcpAgentConfig, AgentReport, Preset, TrustPolicy};
use serde_json::{Value, json};
use wire::ChannelUri;

use super::ConfigFileOptions;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// List the agents that are installed, as `greenroom agents` does
#[derive(Debug, clap::Args)]
pub(super) struct AgentListOptions {
    /// Print one JSON array instead of text
    #[arg(long)]
    json: bool,
    /// Print the latest standard error of a running agent instead of the list
    #[arg(long, value_name = "ID", conflicts_with = "json")]
    log: Option<String>,
    #[command(flatten)]
    config: ConfigFileOptions,
}

/// An agent of the list.
pub(crate) struct ListedAgent {
    config: AcpAgentConfig,
    origin: ListReason,
    /// Where its program is now.
    program: Option<PathBuf>,
    /// What it last said of itself.
    report: AgentReport,
}

/// Why an agent is in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListReason {
    Configured,
    Found,
    /// It is a preset, and is not offered.
    Known,
}

pub(super) async fn run(options: &AgentListOptions) -> anyhow::Result<Exit> {
    let settings = options.config.settings()?;
    if let Some(id) = &options.log {
        return print_log(&settings, id).await;
    }
    let listed = list_agents(&settings)?;
    if options.json {
        let listed = listed.iter().map(ListedAgent::to_json);
        print_json(&Value::Array(listed.collect()))?;
        return Ok(Exit::Complete);
    }
    print(&describe_list(&listed, settings.agents_auto))?;
    if let Some(note) = note_restart(&settings, &listed).await {
        eprintln!("{note}");
    }
    Ok(Exit::Complete)
}

/// The host that runs has it in memory, and nobody else.
async fn print_log(settings: &Config, id: &str) -> anyhow::Result<Exit> {
    let host = Endpoint::find(&settings.data)?;
    let log = read_agent_log(&host.destination(None), id).await?;
    let lines: Vec<String> = log.lines().map(escape_line).collect();
    if lines.is_empty() {
        eprintln!("{} has printed nothing since the host was started.", escape_line(id))
    } else {
        print(&format!("{}\n", lines.join("\n")))?
    }
    Ok(Exit::Complete)
}

/// What a host with these settings offers, and then the presets that it does not.
pub(crate) fn list_agents(settings: &Config) -> anyhow::Result<Vec<ListedAgent>> {
    let offered =
        settings.offered_agents().context("the agents of greenroom.toml cannot be used")?;
    let is_offered = |preset: &&Preset| {
        let mut offered = offered.iter().map(|offered| &offered.config);
        offered.any(|config| config.id == preset.id || config.command == preset.command)
    };
    let known: Vec<(AcpAgentConfig, ListReason)> = Preset::all()
        .iter()
        .filter(|preset| !is_offered(preset))
        .map(|preset| (preset.to_config(), ListReason::Known))
        .collect();
    let offered = offered.into_iter().map(|offered| {
        let origin = if offered.is_configured { ListReason::Configured } else { ListReason::Found };
        (offered.config, origin)
    });
    let listed = offered.chain(known).map(|(config, origin)| ListedAgent {
        program: config.find_program(),
        report: settings.read_report(&config),
        config,
        origin,
    });
    Ok(listed.collect())
}

impl ListedAgent {
    pub(crate) fn config(&self) -> &AcpAgentConfig {
        &self.config
    }

    pub(crate) fn program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    pub(crate) fn is_offered(&self) -> bool {
        self.origin != ListReason::Known
    }

    fn to_json(&self) -> Value {
        let config = &self.config;
        json!({
            "id": config.id,
            "name": config.name,
            "offered": self.is_offered(),
            "configured": self.origin == ListReason::Configured,
            "command": config.command,
            "args": config.args,
            "program": self.program.as_ref().map(|path| path.to_string_lossy()),
            "install": config.install,
            "trust": trust_name(config.trust),
            "title": self.report.title,
            "version": self.report.version,
            "signedIn": self.report.signed_in,
            "models": self.report.models,
            "can": self.report.can,
        })
    }

    /// What follows its id.
    fn describe(&self) -> String {
        let config = &self.config;
        let what = match (&self.program, self.origin) {
            (Some(program), _) => program.display().to_string(),
            // The heading says that it is not installed.
            (None, ListReason::Known) => config.install.clone(),
            (None, ListReason::Configured | ListReason::Found) => config.describe_missing(),
        };
        let trust = match config.trust {
            TrustPolicy::Ask => "",
            TrustPolicy::Always => " (starts in any directory)",
            TrustPolicy::Never => " (starts in trusted directories only, asks nobody)",
        };
        let name = match &self.report.version {
            Some(version) => format!("{} {version}", config.name),
            None => config.name.clone(),
        };
        let report = self.describe_report();
        escape_line(&format!("{name}: {what}{report}{trust}"))
    }

    /// What it said of itself when it ran last.
    fn describe_report(&self) -> String {
        let signed_in = match self.report.signed_in {
            Some(true) => Some("signed in".to_owned()),
            Some(false) => Some("not signed in".to_owned()),
            None => None,
        };
        // The first is the agent's own choice.
        let models = match self.report.models.len().saturating_sub(1) {
            0 => None,
            1 => Some("1 model".to_owned()),
            count => Some(format!("{count} models")),
        };
        let can =
            (!self.report.can.is_empty()).then(|| format!("can {}", self.report.can.join(", ")));
        let report = [signed_in, models, can].into_iter().flatten();
        report.map(|report| format!(" · {report}")).collect()
    }
}

fn trust_name(trust: TrustPolicy) -> &'static str {
    match trust {
        TrustPolicy::Ask => "ask",
        TrustPolicy::Always => "always",
        TrustPolicy::Never => "never",
    }
}

fn describe_list(listed: &[ListedAgent], is_auto: bool) -> String {
    let width = listed.iter().map(|agent| agent.config.id.len()).max().unwrap_or(0);
    let lines = |wanted: bool| {
        let agents = listed.iter().filter(|agent| agent.is_offered() == wanted);
        let lines = agents.map(|agent| {
            let id = escape_line(&agent.config.id);
            format!("  {id:width$}  {}\n", agent.describe())
        });
        lines.collect::<String>()
    };
    let (offered, known) = (lines(true), lines(false));
    let mut text = match (offered.is_empty(), is_auto) {
        (false, _) => format!("Set up (`greenroom chat --agent ID` talks to one):\n{offered}"),
        (true, true) => "No external agent is installed.\n".to_owned(),
        (true, false) => {
            "No external agent is set up: greenroom.toml has no [[agents]] table, and says `agents_auto = false`.\n".to_owned()
        }
    };
    if !known.is_empty() {
        let why = if is_auto { "" } else { ", or not offered because of `agents_auto = false`" };
        text.push_str(&format!("Not installed{why}:\n{known}"));
    }
    text
}

/// Whether the host that runs offers something else than its settings say now.
async fn note_restart(settings: &Config, listed: &[ListedAgent]) -> Option<String> {
    let host = HostOptions::local(&settings.data);
    // Where no host runs there is nothing to be said.
    let (live, _updates) = host.live(&[ChannelUri::root()]).await.ok()?;
    let root = live.root();
    let agents = root.iter().flat_map(|root| root.agents.iter());
    let there: Vec<String> =
        agents.filter_map(|agent| agent["provider"].as_str().map(str::to_owned)).collect();
    live.close().await;
    let offered = listed.iter().filter(|agent| agent.is_offered());
    let missing: Vec<&str> = offered
        .map(|agent| agent.config.id.as_str())
        .filter(|id| there.iter().all(|there| there != id))
        .collect();
    let ids = missing.join(", ");
    (!missing.is_empty()).then(|| {
        format!("The running host does not offer {ids} yet; it does after `greenroom restart`.")
    })
}
