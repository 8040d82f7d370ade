//! The environment of an agent's process (TR-5).
//!
//! Promises: what every command gets, and what the agent's entry names; nothing else of the host's.
//! Must not know: what the agent does with it.

use std::ffi::OsString;

use super::config::AcpAgentConfig;
use crate::task;
use crate::tool::command_environment;

/// Secrets in files are short.
const SECRET_BYTES_MAX: u64 = 64 * 1_024;

pub(super) struct ProcessEnvironment {
    pub(super) variables: Vec<(OsString, OsString)>,
    /// Values that must not be shown.
    pub(super) secrets: Vec<String>,
}

/// The variables of an agent, with the one that a token goes into. The error says which variable cannot be had.
pub(super) async fn of_agent(
    config: &AcpAgentConfig,
    token: Option<(String, String)>,
) -> Result<ProcessEnvironment, String> {
    let mut named = Vec::new();
    for source in &config.env_from {
        let value = match &source.file {
            None => std::env::var_os(&source.name),
            Some(path) => Some(read_secret(path, &source.name).await?.into()),
        };
        named.extend(value.map(|value: OsString| (OsString::from(&source.name), value)));
    }
    named.extend(token.map(|(name, value)| (name.into(), value.into())));
    let secrets =
        named.iter().filter_map(|(_, value)| value.to_str()).map(ToOwned::to_owned).collect();
    let mut variables = command_environment(&[]);
    // The directory is trusted by the time a process starts.
    let plain = config.env.iter().chain(&config.trusted_env);
    variables.extend(plain.map(|(name, value)| (name.into(), value.into())));
    variables.extend(named);
    Ok(ProcessEnvironment { variables, secrets })
}

async fn read_secret(path: &std::path::Path, name: &str) -> Result<String, String> {
    let failed = |why: String| format!("the file with `{name}` cannot be read: {why}");
    let path = path.to_owned();
    let read = task::try_blocking(move || {
        use std::io::Read;
        let mut text = String::new();
        std::fs::File::open(path)?.take(SECRET_BYTES_MAX).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    });
    match read.await {
        Ok(Ok(text)) => Ok(text.trim_end_matches(['\n', '\r']).to_owned()),
        Ok(Err(error)) => Err(failed(error.kind().to_string())),
        Err(_) => Err(failed("internal error while reading it".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::EnvSource;

    #[tokio::test]
    async fn only_what_the_entry_names_is_added() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from-file\n").unwrap();
        let mut config = AcpAgentConfig::new("a", "a");
        config.env.insert("PLAIN".to_owned(), "1".to_owned());
        config
            .env_from
            .push(EnvSource { name: "SECRET".to_owned(), file: Some(file.path().to_owned()) });
        let token = Some(("TOKEN".to_owned(), "t0ken".to_owned()));
        let environment = of_agent(&config, token).await.unwrap();
        let value = |name: &str| {
            let mut found = environment.variables.iter().rev();
            found.find(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap())
        };
        assert_eq!(
            (value("PLAIN"), value("SECRET"), value("TOKEN")),
            (Some("1"), Some("from-file"), Some("t0ken"))
        );
        assert_eq!((value("TERM"), value("NO_COLOR")), (Some("dumb"), Some("1")));
        assert_eq!(value("CARGO_PKG_NAME"), None);
        assert_eq!(environment.secrets, ["from-file", "t0ken"]);
        config.env_from[0].file = Some("/none".into());
        let Err(why) = of_agent(&config, None).await else { panic!() };
        assert!(why.contains("`SECRET`"), "{why}");
    }
}
