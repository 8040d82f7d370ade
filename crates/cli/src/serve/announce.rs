//! How a host reports that it is ready to the program that started it.
//!
//! Promises: for programs it is exactly one line.

use std::path::Path;

use host::ServerReady;
use serde_json::json;

use crate::output::print;
use crate::stop::command_for;

/// How the host says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announce {
    Nothing,
    Json,
    Text,
}

impl Announce {
    pub(super) fn print(self, ready: &ServerReady, data: &Path) {
        if self != Self::Text {
            tracing::info!(url = %ready.url, version = ready.version, "ready");
        }
        let text = match self {
            Self::Nothing => return,
            Self::Json => ready_json(ready),
            Self::Text => ready_text(ready, data),
        };
        // Whoever closed standard output does not want to know; the host serves all the same.
        if let Err(error) = print(&text) {
            tracing::warn!(%error, "standard output cannot be written");
        }
    }
}

fn ready_json(ready: &ServerReady) -> String {
    let line = json!({
        "url": ready.url,
        "token": ready.token,
        "pid": std::process::id(),
        "version": ready.version,
    });
    format!("{line}\n")
}

fn ready_text(ready: &ServerReady, data: &Path) -> String {
    let address = match &ready.token {
        Some(token) => format!("{}?tkn={token}", ready.url),
        None => ready.url.clone(),
    };
    format!(
        "greenroom {} is ready.\n\n  Connect a client:  {address}\n  Data directory:    {}\n\n\
         Talk to it, in another terminal:  {}\nStop it with Ctrl-C.\n",
        ready.version,
        data.display(),
        command_for("chat", data),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_one_line_of_json() {
        let ready =
            ServerReady { url: "ws://127.0.0.1:7/".to_owned(), token: None, version: "0.1.0" };
        let pid = std::process::id();
        assert_eq!(
            ready_json(&ready),
            format!(
                "{{\"url\":\"ws://127.0.0.1:7/\",\"token\":null,\"pid\":{pid},\"version\":\"0.1.0\"}}\n"
            )
        );
        let ready = ServerReady { token: Some("T".to_owned()), ..ready };
        let text = ready_text(&ready, Path::new("/data"));
        assert!(text.contains("ws://127.0.0.1:7/?tkn=T") && text.contains("greenroom chat"));
    }
}
