//! Looks for model servers on this machine, for somebody who has no model yet.
//!
//! Promises: asks loopback addresses only, all at once and for a short time, and nothing before it is waited for.

use std::pin::Pin;
use std::time::Duration;

use host::Model;
use host::model_server;

use super::on_host::quote;
use crate::terminal::escape_line;

/// Where servers usually listen: Ollama, LM Studio, llama.cpp, vLLM.
const PORTS: [u16; 4] = [11434, 1234, 8080, 8000];
/// Other ports, separated by commas, for whoever has moved theirs.
const PORTS_VARIABLE: &str = "GREENROOM_MODEL_PORTS";
/// A server on this machine that takes longer is busy with something else.
const TIME_MAX: Duration = Duration::from_millis(500);

/// Lines that are known later.
pub(crate) type Hint = Pin<Box<dyn Future<Output = Vec<String>>>>;

/// How to get a model, in three lines, with the command for a server that was found here. None if the variable names no port
/// at all. Nothing is asked before the lines are waited for.
pub(crate) fn hint() -> Option<Hint> {
    let ports = ports(std::env::var(PORTS_VARIABLE).ok().as_deref());
    (!ports.is_empty()).then(|| Box::pin(describe(ports)) as Hint)
}

async fn describe(ports: Vec<u16>) -> Vec<String> {
    let found = find(ports).await;
    let how = match found {
        Some(LocalServer { url, models }) => match models.first() {
            Some(model) => {
                let more = match models.len() - 1 {
                    0 => String::new(),
                    more => format!("   ({more} more: leave #.. out to choose)"),
                };
                format!("  greenroom models add {}{more}", quote(&format!("{url}#{model}")))
            }
            None => format!(
                "  The server at {url} has no models yet; then: greenroom models add {url}"
            ),
        },
        None => "  greenroom models add http://localhost:11434/v1#NAME   (Ollama; or any URL, with --key-env KEY)".to_owned(),
    };
    vec![
        "No model is configured; the scripted agent answers for a first look. Add a model:"
            .to_owned(),
        escape_line(&how),
        "Then /new starts a session with it.".to_owned(),
    ]
}

struct LocalServer {
    url: String,
    models: Vec<String>,
}

fn ports(variable: Option<&str>) -> Vec<u16> {
    match variable {
        None => PORTS.to_vec(),
        Some(ports) => ports.split(',').filter_map(|port| port.trim().parse().ok()).collect(),
    }
}

/// The first of the ports at which a server with a list of models answers.
async fn find(ports: Vec<u16>) -> Option<LocalServer> {
    let asked = ports.into_iter().map(|port| tokio::spawn(ask(port)));
    let mut with_none = None;
    for asked in asked.collect::<Vec<_>>() {
        match asked.await {
            Ok(Some(server)) if server.models.is_empty() => {
                with_none.get_or_insert(server);
            }
            Ok(Some(server)) => return Some(server),
            Ok(None) | Err(_) => {}
        }
    }
    with_none
}

async fn ask(port: u16) -> Option<LocalServer> {
    let url = format!("http://127.0.0.1:{port}/v1");
    let model = Model::parse(&format!("{url}#model")).ok()?;
    let models = tokio::time::timeout(TIME_MAX, model_server::list(&model)).await.ok()?.ok()?;
    Some(LocalServer { url, models })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_can_be_named() {
        assert_eq!(ports(None), PORTS);
        assert_eq!(ports(Some("5000, 6000,x")), [5_000, 6_000]);
        assert!(ports(Some("")).is_empty());
    }
}
