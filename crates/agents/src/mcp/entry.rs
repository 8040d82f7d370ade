//! A declaration as it is written: in `greenroom.toml`, in `mcp.json`, `.mcp.json` and `.vscode/mcp.json`.
//!
//! Promises: an entry that cannot work is an error that says what to write instead.
//! Must not know: files, who may expand what.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::declaration::{McpDeclaration, McpTransport, is_server_name};
use super::expand::Expander;
use super::oauth_entry::OAuthEntry;
use crate::SettingsEntryError;

/// The longest time limit of a call.
const TIMEOUT_S_MAX: u64 = 24 * 60 * 60;

/// A server as a file declares it: `[[mcp]]` of the settings file, or an entry of a file of JSON, where the name is the key.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpEntry {
    pub name: String,
    /// `stdio`, `http` or `sse`; told by `command` and `url` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The only tools that are offered; all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// Whether what the server says of its tools is believed; taken from the user's own declarations alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_hints: bool,
    /// The client to sign in as; taken from the user's own declarations alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthEntry>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

/// Every key of an entry but its name.
const KEYS: [&str; 12] = [
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "tools",
    "timeout_s",
    "trust_hints",
    "oauth",
    "disabled",
];

impl std::fmt::Debug for McpEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values of variables and headers may be secrets.
        f.debug_struct("McpEntry")
            .field("name", &self.name)
            .field("command", &self.command)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl McpEntry {
    /// An entry of a file of JSON. What other programs write beside the keys that are known is ignored.
    pub(super) fn read(name: &str, written: Value) -> Result<Self, String> {
        let Value::Object(mut fields) = written else { return Err("it is no object".to_owned()) };
        if let Some(kind) = fields.remove("type") {
            fields.entry("transport").or_insert(kind);
        }
        fields.retain(|key, _| KEYS.contains(&key.as_str()));
        fields.insert("name".to_owned(), Value::from(name));
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
    }

    /// Whether all entries of the settings file can work.
    pub fn check_all(entries: &[Self]) -> Result<(), SettingsEntryError> {
        for (index, entry) in entries.iter().enumerate() {
            let wrong = |key, message: &str| SettingsEntryError {
                index,
                key,
                message: format!("mcp: {message}"),
            };
            if !is_server_name(&entry.name) {
                let message = "a name has 1 to 64 characters, none of them a control character";
                return Err(wrong("name", message));
            }
            if entries[..index].iter().any(|other| other.name == entry.name) {
                let message = format!("there are two servers named {:?}", entry.name);
                return Err(wrong("name", &message));
            }
            entry.check().map_err(|(key, message)| wrong(key, &message))?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let transport = self.transport.as_deref();
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                let message = "a server has a `command` or a `url`, not both";
                Err(("url", message.to_owned()))
            }
            (None, None) => {
                let message = "a server needs a `command` to start or a `url` to ask";
                Err(("name", message.to_owned()))
            }
            (Some(_), None) if transport.is_some_and(|transport| transport != "stdio") => {
                let message = "a server with a `command` has the transport \"stdio\"";
                Err(("transport", message.to_owned()))
            }
            (None, Some(_)) => match transport {
                None | Some("http" | "streamable-http" | "streamableHttp") => Ok(()),
                Some("sse") => Ok(()), // tried as streamable HTTP, which such servers of today speak, too
                Some(other) => Err((
                    "transport",
                    format!("{other:?} is no transport of a server with a `url`; write \"http\""),
                )),
            },
            (Some(_), None) => Ok(()),
        }?;
        match &self.oauth {
            Some(_) if self.url.is_none() => {
                let message = "`oauth` is for a server with a `url`";
                return Err(("oauth", message.to_owned()));
            }
            Some(oauth) => oauth.check().map_err(|message| ("oauth", message))?,
            None => {}
        }
        match self.timeout_s {
            Some(seconds) if !(1..=TIMEOUT_S_MAX).contains(&seconds) => {
                let message = format!("timeout_s is from 1 to {TIMEOUT_S_MAX}");
                Err(("timeout_s", message))
            }
            _ => Ok(()),
        }
    }

    /// The declaration, with what may be expanded in it.
    pub(super) fn declare(&self, expand: &dyn Expander) -> Result<McpDeclaration, String> {
        if !is_server_name(&self.name) {
            return Err(
                "its name is empty, longer than 64 bytes, or has control characters".to_owned()
            );
        }
        self.check().map_err(|(_, message)| message)?;
        let expand_all = |map: &BTreeMap<String, String>| {
            let pairs = map.iter().map(|(name, value)| Ok((name.clone(), expand.expand(value)?)));
            pairs.collect::<Result<BTreeMap<String, String>, String>>()
        };
        let transport = match (&self.command, &self.url) {
            (Some(command), _) => McpTransport::Process {
                command: expand.expand(command)?,
                args: self.args.iter().map(|arg| expand.expand(arg)).collect::<Result<_, _>>()?,
                env: expand_all(&self.env)?,
                cwd: match &self.cwd {
                    Some(cwd) => Some(PathBuf::from(expand.expand(cwd)?)),
                    None => None,
                },
            },
            (None, Some(url)) => {
                McpTransport::Http { url: expand.expand(url)?, headers: expand_all(&self.headers)? }
            }
            (None, None) => return Err("it has neither a `command` nor a `url`".to_owned()),
        };
        Ok(McpDeclaration {
            name: self.name.clone(),
            transport,
            program: None,
            tools: self.tools.clone(),
            timeout: self.timeout_s.map(Duration::from_secs),
            trust_hints: self.trust_hints && expand.is_users(),
            // A file of a directory could name any file as a secret.
            oauth: self.oauth.clone().filter(|_| expand.is_users()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_key_is_read_from_json_and_others_are_ignored() {
        let full = json!({
            "name": "s", "transport": "stdio", "command": "c", "args": ["a"], "env": {"A": "1"}, "cwd": "d", "url": "u",
            "headers": {"H": "1"}, "tools": ["t"], "timeout_s": 1, "trust_hints": true, "disabled": true,
            "oauth": {"client_id": "c"},
        });
        let mut written = full.clone();
        written["gallery"] = json!(1);
        let entry = McpEntry::read("s", written).unwrap();
        assert_eq!(json!(entry), full);
        let entry = McpEntry::read("s", json!({"type": "http", "url": "https://h"})).unwrap();
        assert_eq!(entry.transport.as_deref(), Some("http"));
        assert!(McpEntry::read("s", json!([])).is_err());
    }

    fn check(text: &str) -> Result<(), SettingsEntryError> {
        #[derive(Deserialize)]
        struct File {
            mcp: Vec<McpEntry>,
        }
        let file: File = toml::from_str(text).unwrap();
        McpEntry::check_all(&file.mcp)
    }

    #[test]
    fn entries_that_cannot_work_are_named() {
        let good = "[[mcp]]\nname = \"a\"\ncommand = \"x\"\nargs = [\"-y\"]\nenv = { A = \"b\" }\n\
                    [[mcp]]\nname = \"b\"\nurl = \"https://h\"\ntimeout_s = 5\ntrust_hints = true\n\
                    oauth = { client_id = \"c\", issuer = \"https://a\", client_secret_file = \"f\", share_secret = true }\n";
        assert_eq!(check(good), Ok(()));
        for (text, index, key) in [
            ("[[mcp]]\nname = \"\"\ncommand = \"x\"\n", 0, "name"),
            ("[[mcp]]\nname = \"a\"\n", 0, "name"),
            ("[[mcp]]\nname = \"a\"\ncommand = \"x\"\nurl = \"http://h\"\n", 0, "url"),
            ("[[mcp]]\nname = \"a\"\ncommand = \"x\"\ntransport = \"http\"\n", 0, "transport"),
            ("[[mcp]]\nname = \"a\"\nurl = \"http://h\"\ntransport = \"ws\"\n", 0, "transport"),
            ("[[mcp]]\nname = \"a\"\nurl = \"http://h\"\ntimeout_s = 0\n", 0, "timeout_s"),
            (
                "[[mcp]]\nname = \"a\"\nurl = \"http://h\"\noauth = { client_id = \"\" }\n",
                0,
                "oauth",
            ),
            (
                "[[mcp]]\nname = \"a\"\nurl = \"http://h\"\noauth = { client_id = \"c\", client_secret_file = \"f\" }\n",
                0,
                "oauth",
            ),
            (
                "[[mcp]]\nname = \"a\"\nurl = \"http://h\"\noauth = { client_id = \"c\", client_secret_file = \"f\", share_secret = true }\n",
                0,
                "oauth",
            ),
            (
                "[[mcp]]\nname = \"a\"\nurl = \"http://h\"\noauth = { client_id = \"c\", issuer = \"http://a.example\" }\n",
                0,
                "oauth",
            ),
            ("[[mcp]]\nname = \"a\"\ncommand = \"x\"\noauth = { client_id = \"c\" }\n", 0, "oauth"),
            (
                "[[mcp]]\nname = \"a\"\ncommand = \"x\"\n[[mcp]]\nname = \"a\"\ncommand = \"y\"\n",
                1,
                "name",
            ),
        ] {
            let error = check(text).unwrap_err();
            assert_eq!((error.index, error.key), (index, key), "{text}");
        }
    }
}
