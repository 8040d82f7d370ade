//! `greenroom doctor`: finds out what is wrong and says what to do about it.
//!
//! Promises: changes nothing. Every line says `ok`, `warn` or `fail` and, unless it is `ok`, what to do next.

mod database;
mod directory;
mod network;
mod settings;

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::target::HostOptions;

/// Find out what is wrong, and what to do about it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom doctor
  greenroom doctor --data /srv/greenroom --json

Exit codes: 0 nothing failed, 1 something did.")]
pub(crate) struct DoctorOptions {
    /// Print one JSON array of findings instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckLevel {
    Ok,
    Warn,
    Fail,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    what: &'static str,
    level: CheckLevel,
    message: String,
}

impl Finding {
    fn ok(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, level: CheckLevel::Ok, message: message.into() }
    }

    fn warn(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, level: CheckLevel::Warn, message: message.into() }
    }

    fn fail(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, level: CheckLevel::Fail, message: message.into() }
    }

    fn line(&self) -> String {
        format!(
            "{:4}  {:15} {}\n",
            self.level.name(),
            self.what,
            crate::terminal::escape_line(&self.message)
        )
    }

    fn json(&self) -> Value {
        json!({"check": self.what, "level": self.level.name(), "message": self.message})
    }
}

impl CheckLevel {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

pub(crate) async fn run(options: DoctorOptions) -> anyhow::Result<Exit> {
    let data = options.host.data_directory()?;
    let mut findings = vec![versions()];
    let mut listen = None;
    // A host on another machine has its data there.
    if options.host.named_host().is_none() {
        findings.extend(directory::check(&data));
        let (checked, config) = settings::check(&data).await;
        findings.extend(checked);
        if let Some(config) = &config {
            findings.extend(database::check(config).await);
        }
        listen = config.map(|config| config.listen);
        findings.push(settings::check_rules(&data));
        findings.extend(settings::check_service(&data));
    }
    findings.extend(network::check(&options.host, &data, listen).await);
    if options.json {
        let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
        print_json(&Value::Array(findings))?;
    } else {
        print(&findings.iter().map(Finding::line).collect::<String>())?;
    }
    Ok(verdict(&findings))
}

fn verdict(findings: &[Finding]) -> Exit {
    let failed = findings.iter().any(|finding| finding.level == CheckLevel::Fail);
    if failed { Exit::Failed } else { Exit::Complete }
}

fn versions() -> Finding {
    let protocols = client::connection::PROTOCOL_VERSIONS.join(", ");
    Finding::ok("versions", format!("greenroom {}, protocol {protocols}", host::VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_is_a_failure() {
        let (ok, warn) = (Finding::ok("a", "fine"), Finding::warn("b", "hm"));
        assert_eq!(verdict(&[ok.clone(), warn.clone()]), Exit::Complete);
        assert_eq!(verdict(&[ok, warn, Finding::fail("c", "no")]), Exit::Failed);
    }

    #[test]
    fn a_line_begins_with_its_level() {
        assert_eq!(Finding::warn("token", "x\ny").line(), "warn  token           x\\ny\n");
        assert_eq!(
            Finding::ok("token", "x").json(),
            json!({"check": "token", "level": "ok", "message": "x"})
        );
    }
}
