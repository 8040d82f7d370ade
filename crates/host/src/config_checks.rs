//! Settings that cannot work, each with words that begin with its key.

use std::path::PathBuf;

use crate::config::Config;

pub(super) fn check_default(file: &Config) -> Result<(), String> {
    let is_missing = |id: &&String| file.models.iter().all(|model| model.id != **id);
    if let Some(id) = file.default_model.as_ref().filter(is_missing) {
        return Err(format!(
            "default_model: there is no model `{id}`; `greenroom models default ID` sets it"
        ));
    }
    match file.title_model.as_ref().filter(is_missing) {
        Some(id) => Err(format!(
            "title_model: there is no model `{id}` in this file; `greenroom models` lists what there is"
        )),
        None => Ok(()),
    }
}

/// One without the other would leave a host without encryption that was meant to have it.
pub(super) fn check_tls(file: &Config) -> Result<(), String> {
    match (&file.tls_cert, &file.tls_key) {
        (Some(_), None) => {
            Err("tls_cert: it needs tls_key, the file with its private key".to_owned())
        }
        (None, Some(_)) => {
            Err("tls_key: it needs tls_cert, the file with the certificate".to_owned())
        }
        (None, None) => Ok(()),
        (Some(cert), Some(key)) => {
            check_absolute("tls_cert", std::slice::from_ref(cert))?;
            check_absolute("tls_key", std::slice::from_ref(key))
        }
    }
}

pub(super) fn check_timeouts(file: &Config) -> Result<(), String> {
    let (default, most) = (file.bash_timeout_s, file.bash_timeout_max_s);
    match default {
        0 => Err("bash_timeout_s: a command needs at least 1 second".to_owned()),
        _ if default > most => Err(format!(
            "bash_timeout_s: {default} is more than bash_timeout_max_s allows, {most}"
        )),
        _ => Ok(()),
    }
}

/// Whole names with ports: a pattern would open more of a private network than was meant.
pub(super) fn check_fetched_hosts(hosts: &[String]) -> Result<(), String> {
    let is_host = |entry: &String| {
        let Some((host, port)) = entry.rsplit_once(':') else {
            return false;
        };
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        !host.is_empty() && host.chars().all(is_known) && port.parse::<u16>().is_ok()
    };
    match hosts.iter().find(|host| !is_host(host)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "web_fetch_allow: {other:?} is not a host with its port, such as \"wiki.local:443\""
        )),
    }
}

/// A path that is not absolute means another directory wherever the host is started.
pub(super) fn check_absolute(key: &str, directories: &[PathBuf]) -> Result<(), String> {
    match directories.iter().find(|path| !path.is_absolute()) {
        None => Ok(()),
        Some(other) => Err(format!(
            "{key}: {other:?} is not an absolute path; `~` is not expanded here"
        )),
    }
}

/// Patterns would pass on what nobody thought of.
pub(super) fn check_variables(names: &[String]) -> Result<(), String> {
    let is_name = |name: &String| {
        let mut chars = name.chars();
        !name.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "tool_env: {other:?} is not the name of an environment variable; it takes whole names, no patterns"
        )),
    }
}
