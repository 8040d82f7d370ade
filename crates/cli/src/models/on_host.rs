//! Models and the host that runs: it reads its configuration again, or is given a model until it stops (G-71).
//!
//! Promises: no key is sent, only where the host finds it.

use std::str::FromStr;

use anyhow::{anyhow, bail};
use client::{ClientError, Live};
use host::Model;
use wire::ChannelUri;
use wire::rpc::code;

use super::config_file::ConfigFile;
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// The agent that talks to models.
pub(crate) const NATIVE: &str = "native";

/// Whether the running host took a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostUpdate {
    NoHost,
    Yes,
    /// It read its configuration, and the change is not in it, or is hidden by its command line.
    ReadsAnother,
    /// It cannot be asked, or does not know how.
    NeedsRestart,
}

impl HostUpdate {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::NoHost => "",
            Self::Yes => "The running host uses it now.\n",
            Self::ReadsAnother => {
                "Not applied: the running host uses another settings file or models from its command line.\n"
            }
            Self::NeedsRestart => {
                "Not applied yet: the running host uses it after `greenroom restart`.\n"
            }
        }
    }

    /// For programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NoHost => "none",
            Self::Yes => "taken",
            Self::ReadsAnother => "reads-another",
            Self::NeedsRestart => "needs-restart",
        }
    }

    pub(super) fn describe_removal(self) -> &'static str {
        match self {
            Self::Yes => {
                "The running host no longer offers it. Sessions that used it say so and continue when you choose another model.\n"
            }
            other => other.describe(),
        }
    }

    pub(super) fn is_host_running(self) -> bool {
        self != Self::NoHost
    }
}

/// Lets the host that runs read its configuration again; `is_taken` tells by the ids of its models whether it has the change.
pub(super) async fn reload(file: &ConfigFile, is_taken: impl Fn(&[String]) -> bool) -> HostUpdate {
    let host = HostOptions::local(file.data());
    let (live, _updates) = match host.live(&[ChannelUri::root()]).await {
        Ok(connected) => connected,
        Err(error) if crate::start_host::is_host_missing(&error) => return HostUpdate::NoHost,
        Err(_) => return HostUpdate::NeedsRestart,
    };
    let reloaded = live.reload_models().await;
    let took = match reloaded {
        Ok(()) if is_taken(&model_ids(&live)) => HostUpdate::Yes,
        Ok(()) => HostUpdate::ReadsAnother,
        Err(_) => HostUpdate::NeedsRestart,
    };
    live.close().await;
    took
}

/// The ids of the native agent's models, the default first; none if it is not offered.
pub(crate) fn model_ids(live: &Live) -> Vec<String> {
    models_of(live, NATIVE)
}

/// The ids of an agent's models, the default first; none if it is not offered.
pub(crate) fn models_of(live: &Live, agent: &str) -> Vec<String> {
    let root = live.root();
    let agents = root
        .iter()
        .flat_map(|root| root.agents.iter())
        .filter(|offered| offered["provider"] == agent);
    let models = agents.flat_map(|agent| agent["models"].as_array().into_iter().flatten());
    let ids = models.filter_map(|model| model["id"].as_str());
    ids.map(str::to_owned).collect()
}

/// `--model`: one of the host's models by its id, or any by its address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelChoice {
    Id(String),
    At(Box<Model>),
}

impl FromStr for ModelChoice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if !text.contains("://") && !text.contains('#') && !text.is_empty() {
            return Ok(Self::Id(text.to_owned()));
        }
        let model = Model::parse_for_host(text).map_err(|error| anyhow!(error.to_string()))?;
        Ok(Self::At(Box::new(model)))
    }
}

/// A model of an agent that brings its own.
pub(crate) fn find_of_agent(
    known: &[String],
    agent: &str,
    choice: &ModelChoice,
) -> anyhow::Result<String> {
    let ModelChoice::Id(id) = choice else {
        bail!("the agent {agent} brings its own models: name one of them, or leave --agent out");
    };
    match known {
        [] => bail!("the host offers no agent {agent}; `greenroom agents` lists those that it has"),
        _ if known.contains(id) => Ok(id.clone()),
        [_] => bail!(
            "{agent} has not said yet which models it has: talk to it once without --model, or choose in a session with /model"
        ),
        _ => {
            let known: Vec<String> = known.iter().map(|id| escape_line(id)).collect();
            bail!("{agent} has no model {id}; it has {}", known.join(", "))
        }
    }
}

/// A model that the host has.
pub(crate) struct ModelOnHost {
    pub id: String,
    /// What the user should know of it.
    pub note: Option<String>,
}

/// Makes sure that the host has a model; one it does not have is added until it stops.
pub(crate) async fn find_or_add(live: &Live, choice: &ModelChoice) -> anyhow::Result<ModelOnHost> {
    let known = model_ids(live);
    // The name of a vendor means its usual model, unless a model is called so.
    let usual = match choice {
        ModelChoice::Id(id) if !known.contains(id) => Model::parse_for_host(id).ok(),
        ModelChoice::Id(_) | ModelChoice::At(_) => None,
    };
    let model = match (choice, &usual) {
        (ModelChoice::At(model), _) => model,
        (ModelChoice::Id(_), Some(usual)) => usual,
        (ModelChoice::Id(id), None) if known.contains(id) => {
            return Ok(ModelOnHost { id: id.clone(), note: None });
        }
        (ModelChoice::Id(id), None) if known.is_empty() => {
            bail!(
                "the host has no model `{id}`, nor any other; name one as URL#MODEL, or add it with `greenroom models add`"
            )
        }
        (ModelChoice::Id(id), None) => {
            bail!("the host has no model `{id}`; it has: {}", known.join(", "))
        }
    };
    let id = match live.add_model(&serde_json::to_value(model)?).await {
        Ok(id) => id,
        // A host that asks for no token takes none, but may have it.
        Err(error)
            if error.code() == Some(code::PERMISSION_DENIED) && known.contains(&model.id) =>
        {
            model.id.clone()
        }
        Err(error) => return Err(explain(error)),
    };
    let note = (!known.contains(&id)).then(|| {
        format!(
            "{} is there until the host stops. To keep it: greenroom models add {}",
            escape_line(&id),
            quote(&format!("{}#{}", model.address(), model.server_name()))
        )
    });
    Ok(ModelOnHost { id, note })
}

fn explain(error: ClientError) -> anyhow::Error {
    match error.code() {
        Some(code::METHOD_NOT_FOUND) => anyhow!(
            "the running host is older and cannot add models: run `greenroom restart`, or use `greenroom models add`"
        ),
        _ => anyhow::Error::new(error).context("the host refused the model"),
    }
}

/// A word as a shell takes it.
pub(crate) fn quote(word: &str) -> String {
    match shlex::try_quote(word) {
        Ok(quoted) => quoted.into_owned(),
        Err(_) => escape_line(word), // it has a NUL, which no command line can have
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_by_id_or_by_address() {
        let choice = |text: &str| text.parse::<ModelChoice>();
        assert_eq!(choice("qwen3:8b").unwrap(), ModelChoice::Id("qwen3:8b".to_owned()));
        let ModelChoice::At(model) = choice("http://h/v1#m").unwrap() else {
            panic!("an address");
        };
        assert_eq!(model.id, "m");
        for bad in ["", "http://h/v1", "localhost#m", "#m"] {
            assert!(choice(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_model_of_another_agent_is_one_that_it_named() {
        let find = |known: &[&str], choice: &str| {
            let known: Vec<String> = known.iter().map(|id| (*id).to_owned()).collect();
            let found = find_of_agent(&known, "claude", &choice.parse().unwrap());
            found.map_err(|error| error.to_string())
        };
        assert_eq!(find(&["default", "opus"], "opus"), Ok("opus".to_owned()));
        assert_eq!(find(&["default"], "default"), Ok("default".to_owned()));
        for (known, choice, expected) in [
            (&[][..], "opus", "offers no agent claude"),
            (&["default"][..], "opus", "has not said yet"),
            (&["default", "opus"][..], "opsu", "it has default, opus"),
            (&["default"][..], "http://h/v1#m", "brings its own models"),
        ] {
            let error = find(known, choice).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
