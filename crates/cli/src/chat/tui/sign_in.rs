//! Signing in to an MCP server, on a terminal: the page to visit, and the outcome.

use std::sync::Arc;

use client::chat::WantedToken;

use super::TerminalChat;
use crate::chat::line::{Line, Style};
use crate::chat::sign_in::SignInEvent;
use crate::terminal::escape_line;

impl TerminalChat {
    /// A call waits for a token, and somebody wants to get it.
    pub(super) fn begin_sign_in(&mut self, wanted: &WantedToken) {
        let named = self.chat.wanted_tokens();
        let mut named = named.iter();
        let server = named.find(|(_, other)| other.resource == wanted.resource);
        let name = server.map_or(wanted.resource.as_str(), |(name, _)| name.as_str());
        self.note(&format!("Asking how to sign in to {name} …"));
        self.sign_ins.begin(self.chat.live(), name, wanted);
    }

    /// `/sign-in`
    pub(super) async fn enter_sign_in(&mut self, typed: &str) {
        match self.sign_ins.enter(&self.chat, typed).await {
            Ok(text) => self.note(&text),
            Err(text) => self.note_error(&text),
        }
    }

    pub(super) fn take_sign_in(&mut self, event: &SignInEvent) {
        self.sign_ins.take(event);
        match event {
            SignInEvent::Page { name, host, url, .. } => {
                let (name, host) = (escape_line(name), escape_line(host));
                let link: Arc<str> = url.as_str().into();
                self.print([
                    Line::new(Style::Bold, format!("Sign in to {name} at {host}:")),
                    // One line, however long: what is copied is what is opened.
                    Line::default().then_link(Style::Plain, url, Some(&link)),
                    Line::new(
                        Style::Dim,
                        "Browser on another machine? Then give the address it ends at to /sign-in.",
                    ),
                ]);
                self.note("Waiting for the sign-in in your browser …");
            }
            SignInEvent::Done { name } => {
                self.note(&format!("Signed in to {name}"));
            }
            SignInEvent::Failed { name, why } => {
                self.note_error(&format!("Not signed in to {name}: {why}"));
            }
            SignInEvent::Delayed { .. } => self.note(&event.describe()),
        }
    }
}
