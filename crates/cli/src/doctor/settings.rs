//! The doctor's checks of what is configured: the settings file, the models, the service.

use std::path::Path;
use std::time::Duration;

use host::model_server::{self, ModelServerError};
use host::rules::RuleStore;
use host::{Config, Model};

use super::Finding;
use crate::agents::list_agents;
use crate::config::find_problem;
use crate::serve::settings;
use crate::service::Service;

/// How long a model's server may take.
const MODEL_WITHIN: Duration = Duration::from_secs(20);

/// The settings file and the models in it; the settings, if they can be used.
pub(super) async fn check(data: &Path) -> (Vec<Finding>, Option<Config>) {
    const WHAT: &str = "settings";
    let file = data.join(host::CONFIG_FILE);
    let mut findings = Vec::new();
    match file.exists().then(|| find_problem(data, &file)) {
        None => {
            findings.push(Finding::ok(WHAT, "no greenroom.toml: every setting has its default"))
        }
        Some(Ok(None)) => {
            findings.push(Finding::ok(WHAT, format!("{} is right", file.display())));
        }
        Some(Ok(Some(problem))) => findings.push(Finding::fail(
            WHAT,
            format!("{problem}; correct it with `greenroom config edit`"),
        )),
        Some(Err(error)) => {
            findings.push(Finding::fail(WHAT, format!("{error}; check who owns it")))
        }
    }
    let config = settings(data.to_owned(), None).ok();
    if let Some(config) = &config {
        let models = config.ordered_models();
        if models.is_empty() {
            findings.push(Finding::warn(
                MODEL,
                "none is configured, so that only the scripted agent answers; `greenroom models add URL#MODEL` adds one, and so does a key in ANTHROPIC_API_KEY or the like",
            ));
        }
        for model in &models {
            findings.push(check_model(model).await);
        }
        findings.extend(check_agents(config));
    }
    (findings, config)
}

/// The external agents, and the directories that they may be started in.
fn check_agents(config: &Config) -> Vec<Finding> {
    const WHAT: &str = "agent";
    // Settings that are wrong were said to be so.
    let listed = list_agents(config).unwrap_or_default();
    let offered = listed.iter().filter(|agent| agent.is_offered());
    let mut findings: Vec<Finding> = offered
        .map(|agent| match agent.program() {
            Some(program) => {
                Finding::ok(WHAT, format!("{} is {}", agent.config().id, program.display()))
            }
            None => Finding::warn(
                WHAT,
                format!("{}: {}", agent.config().id, agent.config().describe_missing()),
            ),
        })
        .collect();
    findings.push(match config.trust_store().entries() {
        Ok(entries) => {
            let count = entries.len() + config.trusted.len();
            Finding::ok("trust", format!("{count} directories are trusted for agents"))
        }
        Err(error) => Finding::fail(
            "trust",
            format!(
                "{error}; no agent starts where you would be asked. Correct the file, or delete it to be asked again"
            ),
        ),
    });
    findings
}

/// The permission rules.
pub(super) fn check_rules(data: &Path) -> Finding {
    const WHAT: &str = "rules";
    match RuleStore::new(data).load() {
        Ok(rules) => Finding::ok(WHAT, format!("{} rules for permissions", rules.rules().len())),
        Err(error) => Finding::fail(
            WHAT,
            format!("{error}; everything is asked until `greenroom rules edit` mends it"),
        ),
    }
}

const MODEL: &str = "model";

async fn check_model(model: &Model) -> Finding {
    let answer = tokio::time::timeout(MODEL_WITHIN, model_server::check(model)).await;
    let answer = answer.unwrap_or_else(|_| {
        Err(ModelServerError { message: "its server does not answer".to_owned(), advice: None })
    });
    let error = match answer {
        Ok(()) => return describe_answer(model),
        Err(error) => error,
    };
    let advice =
        error.advice.unwrap_or("Start its server, or correct it with `greenroom config edit`.");
    Finding::fail(
        MODEL,
        format!(
            "{} does not answer at {}: {}. {advice} `greenroom models` tries again",
            model.id, model.base_url, error.message
        ),
    )
}

/// Where a model answers: its key goes there.
fn describe_answer(model: &Model) -> Finding {
    let named = match model.address_variable {
        Some(variable) => format!(" (named by {variable})"),
        None => String::new(),
    };
    let answers = format!("{} answers at {}{named}", model.id, model.base_url);
    let endpoint = model.endpoint().map_err(|error| error.to_string());
    let checked = endpoint.and_then(|it| it.check_encrypted().map_err(|error| error.to_string()));
    match checked {
        Ok(()) => Finding::ok(MODEL, answers),
        Err(problem) => Finding::warn(MODEL, format!("{answers}; {problem}")),
    }
}

/// The service, if it is installed.
pub(super) fn check_service(data: &Path) -> Option<Finding> {
    const WHAT: &str = "service";
    let service = Service::installed_for(data)?;
    let state = format!("{} is {}", service.name(), service.state());
    Some(if service.is_current() {
        Finding::ok(WHAT, state)
    } else {
        Finding::warn(
            WHAT,
            format!(
                "{state}, and was not written by this executable; `greenroom service install` writes it anew"
            ),
        )
    })
}
