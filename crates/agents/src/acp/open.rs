//! Opening a chat's session with the agent: the one it has, the one it had, or a new one (AG-40 to AG-44, AG-29).
//!
//! Promises: what an agent replays of a session is never shown. A session that was opened is the chat's even if the turn that asked for it is
//! over meanwhile: none is left behind.
//! Must not know: what is prompted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};

use super::agent_core::AgentCore;
use super::agent_process::AgentProcess;
use super::config::AcpAuth;
use super::connection::RequestError;
use super::errors;
use super::live_session::{LiveSession, OpenedWith, ReportedSettings};
use super::mapper::UsageTotals;
use super::mcp_servers::PassedServers;
use super::notes::ChatNotes;
use super::rpc::{AcpError, INTERNAL_ERROR, METHOD_NOT_FOUND};

const SIGN_IN_LIMIT: Duration = Duration::from_secs(60);

/// A replay is over when nothing came for so long after the answer (AG-43).
const QUIET_AFTER_LOAD: Duration = Duration::from_millis(300);
const QUIET_AFTER_RESUME: Duration = Duration::from_millis(50);
const REPLAY_MAX: Duration = Duration::from_secs(5);

/// What a session is opened with.
#[derive(Clone)]
pub(super) struct Opening {
    pub(super) core: Arc<AgentCore>,
    pub(super) process: Arc<AgentProcess>,
    pub(super) conversation: String,
    pub(super) chat: String,
    /// The primary one first.
    pub(super) directories: Vec<PathBuf>,
    pub(super) servers: PassedServers,
    /// The digest of what plugins of clients say to the agent.
    pub(super) instructions_digest: Option<String>,
    /// Appended to the agent's own prompt, with its digest.
    pub(super) system_prompt: Option<(String, String)>,
    /// The session of another chat that this one begins with.
    pub(super) forked: Option<ChatNotes>,
}

/// What was opened.
pub(super) struct OpenedChat {
    pub(super) session: Arc<LiveSession>,
    /// Set if the agent does not know what was said before; the text says why, for the user.
    pub(super) anew: Option<String>,
}

impl Opening {
    /// The session that the notes name, or a new one. `anew`: why the noted one cannot be used, if it cannot.
    pub(super) async fn open(
        self,
        notes: Option<ChatNotes>,
        anew: Option<String>,
    ) -> Result<OpenedChat, RequestError> {
        // Goes on if the turn is dropped: the agent makes a session either way, and the chat's next turn takes it.
        let opening = tokio::spawn(async move {
            let noted = notes.as_ref().map(|notes| notes.session.clone());
            let opened = self.open_now(notes, anew).await;
            if let Err(RequestError::TimedOut { .. }) = &opened {
                // It takes no new work, and is stopped once nobody works in it (AG-14).
                let session = noted.unwrap_or_default();
                self.core.pool.give_up(&self.process, &session);
            }
            opened
        });
        match opening.await {
            Ok(opened) => opened,
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        }
    }

    async fn open_now(
        &self,
        notes: Option<ChatNotes>,
        anew: Option<String>,
    ) -> Result<OpenedChat, RequestError> {
        let mut anew = anew;
        if let (Some(notes), None) = (&notes, &anew) {
            match self.reopen(notes).await? {
                Ok(session) => return Ok(OpenedChat { session, anew: None }),
                Err(why) => anew = Some(why),
            }
        }
        if let Some(source) = self.forked.as_ref().filter(|_| notes.is_none())
            && let Some(session) = self.fork(source).await?
        {
            return Ok(OpenedChat { session, anew: None });
        }
        let session = self.begin().await?;
        Ok(OpenedChat { session, anew })
    }

    fn params(&self) -> Value {
        let (primary, others) = match self.directories.split_first() {
            Some((primary, others)) => (primary.clone(), others),
            None => (PathBuf::from("/"), &[][..]),
        };
        let mut params = json!({"cwd": primary, "mcpServers": self.servers.servers});
        if self.process.abilities.additional_directories && !others.is_empty() {
            params["additionalDirectories"] = json!(others);
        }
        if let Some((text, _)) = &self.system_prompt {
            let content = json!([{"type": "text", "text": text}]);
            params["systemPrompt"] = json!({"mode": "append", "content": content});
        }
        params
    }

    fn live(
        &self,
        inbox: Arc<super::connection::SessionInbox>,
        reported: Arc<ReportedSettings>,
        through: Option<String>,
    ) -> Arc<LiveSession> {
        let digest = self.system_prompt.as_ref().map(|(_, digest)| digest.clone());
        let opened_with = OpenedWith {
            directories: self.directories.clone(),
            instructions_digest: self.instructions_digest.clone(),
            prompt_digest: digest,
            servers: self.servers.clone(),
        };
        let session = LiveSession::new(inbox, reported, opened_with, through);
        self.process.set_session(&self.chat, Arc::clone(&session));
        session
    }

    /// A session that knows what another one knows. None if the agent does not make it: a transcript says the same.
    async fn fork(&self, source: &ChatNotes) -> Result<Option<Arc<LiveSession>>, RequestError> {
        let reported =
            ReportedSettings::new(&self.core, &self.conversation, UsageTotals::default());
        let listener = Arc::clone(&reported) as Arc<dyn super::connection::SessionListener>;
        let mut params = self.params();
        params["sessionId"] = json!(source.session);
        let connection = &self.process.connection;
        match connection
            .new_session("session/fork", &params, listener, self.core.config.open_timeout)
            .await
        {
            Ok((inbox, answer)) => {
                reported.apply_response(&answer);
                inbox.wait_for_quiet(QUIET_AFTER_RESUME, REPLAY_MAX).await;
                Ok(Some(self.live(inbox, reported, source.through.clone())))
            }
            Err(RequestError::Refused(_) | RequestError::Unreadable { .. }) => Ok(None),
            Err(error @ (RequestError::TimedOut { .. } | RequestError::Ended(_))) => Err(error),
        }
    }

    /// A new session. Signs in once if the agent wants it.
    async fn begin(&self) -> Result<Arc<LiveSession>, RequestError> {
        let mut has_signed_in = false;
        loop {
            let reported = ReportedSettings::new(
                &self.core,
                &self.conversation,
                UsageTotals::of_new_session(),
            );
            let listener = Arc::clone(&reported) as Arc<dyn super::connection::SessionListener>;
            let connection = &self.process.connection;
            match connection
                .new_session("session/new", &self.params(), listener, self.core.config.open_timeout)
                .await
            {
                Ok((inbox, answer)) => {
                    reported.apply_response(&answer);
                    return Ok(self.live(inbox, reported, None));
                }
                Err(RequestError::Refused(error))
                    if errors::is_sign_in(&error) && !has_signed_in =>
                {
                    has_signed_in = true;
                    match sign_in(&self.core, &self.process).await {
                        SignInTry::Taken => {}
                        SignInTry::Refused(why) => {
                            return Err(RequestError::Refused(error.caused_by(&why)));
                        }
                        SignInTry::NotConfigured => return Err(RequestError::Refused(error)),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The earlier session. An inner error says why it cannot be had: each agent has words of its own for it.
    async fn reopen(
        &self,
        notes: &ChatNotes,
    ) -> Result<Result<Arc<LiveSession>, String>, RequestError> {
        let can = &self.process.abilities;
        let mut why = "it cannot reopen its earlier session".to_owned();
        let methods = [
            (can.resume, "session/resume", QUIET_AFTER_RESUME),
            (can.load, "session/load", QUIET_AFTER_LOAD),
        ];
        for (is_offered, method, quiet) in methods {
            if !is_offered {
                continue;
            }
            match self.reopen_by(method, notes).await {
                Ok(session) => {
                    session.inbox.wait_for_quiet(quiet, REPLAY_MAX).await;
                    return Ok(Ok(session));
                }
                Err(RequestError::Refused(error)) if errors::is_sign_in(&error) => {
                    return Err(RequestError::Refused(error));
                }
                // Offered and not there: as if it had not been offered.
                Err(RequestError::Refused(error)) if error.code == METHOD_NOT_FOUND => {}
                Err(RequestError::Refused(error)) => {
                    why = format!(
                        "it no longer has its earlier session ({})",
                        super::label::label(&error.text(), 200)
                    );
                    break;
                }
                Err(RequestError::Unreadable { why: unreadable, .. }) => {
                    why = format!(
                        "its answer could not be read ({})",
                        super::label::label(&unreadable, 200)
                    );
                    break;
                }
                Err(error @ (RequestError::TimedOut { .. } | RequestError::Ended(_))) => {
                    return Err(error);
                }
            }
        }
        Ok(Err(why))
    }

    async fn reopen_by(
        &self,
        method: &str,
        notes: &ChatNotes,
    ) -> Result<Arc<LiveSession>, RequestError> {
        let connection = &self.process.connection;
        let reported =
            ReportedSettings::new(&self.core, &self.conversation, UsageTotals::default());
        // Before it is asked for: what is replayed comes at once.
        let listener = Arc::clone(&reported) as Arc<dyn super::connection::SessionListener>;
        let inbox = connection.listen(&notes.session, listener);
        let mut params = self.params();
        params["sessionId"] = json!(notes.session);
        let answer = self.request_signed_in(method, &params).await;
        match answer {
            Ok(answer) => {
                reported.apply_response(&answer);
                Ok(self.live(inbox, reported, notes.through.clone()))
            }
            Err(error) => {
                connection.forget(&notes.session);
                Err(error)
            }
        }
    }

    async fn request_signed_in(&self, method: &str, params: &Value) -> Result<Value, RequestError> {
        let (connection, limit) = (&self.process.connection, self.core.config.open_timeout);
        let answer = connection.request(method, params, limit).await;
        match answer {
            Err(RequestError::Refused(error)) if errors::is_sign_in(&error) => {
                match sign_in(&self.core, &self.process).await {
                    SignInTry::Taken => connection.request(method, params, limit).await,
                    SignInTry::Refused(why) => Err(RequestError::Refused(error.caused_by(&why))),
                    SignInTry::NotConfigured => Err(RequestError::Refused(error)),
                }
            }
            answer => answer,
        }
    }
}

/// What came of signing in.
pub(super) enum SignInTry {
    /// No method is configured.
    NotConfigured,
    /// The agent took it, which proves nothing.
    Taken,
    /// It did not; its words may say what is missing.
    Refused(AcpError),
}

/// Signs in by the configured method.
pub(super) async fn sign_in(core: &AgentCore, process: &AgentProcess) -> SignInTry {
    let Some(AcpAuth::Method(method)) = &core.config.auth else { return SignInTry::NotConfigured };
    let params = acp::AuthenticateRequest::new(method.clone());
    let asked = process.connection.request::<Value>("authenticate", &params, SIGN_IN_LIMIT);
    match asked.await {
        Ok(_) => SignInTry::Taken,
        Err(RequestError::Refused(why)) => SignInTry::Refused(why),
        Err(error) => SignInTry::Refused(AcpError::new(INTERNAL_ERROR, error.to_string())),
    }
}
