//! A connection to a server, from its start to its end: handshake, lists, calls.
//!
//! Promises: every wait has a limit (MC-10); dropping it, or closing it, ends the server's process.
//! Must not know: when a server is started, and again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, ErrorData, JsonObject, ProtocolVersion, ServerPeerInfo,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService,
    RunningServiceCancellationToken, serve_client_with_lifecycle,
};
use tokio::sync::watch;
use tokio::time::timeout;

use super::any_transport::AnyTransport;
use super::call::{self, CallHost, SILENCE_MAX};
use super::content::McpResult;
use super::declaration::{DirectoryProgram, McpDeclaration, McpTransport};
use super::error::{McpError, clean};
use super::handler::{ChangedLists, McpHandler, McpShared};
use super::http::{self, HttpEndpoint};
use super::lines::LineTransport;
use super::old_sse::OldSseTransport;
use super::process::{ServerCommand, ServerProcess};
use super::program::digest_of;
use super::tool_list::{ToolList, list_tools};
use crate::secret_values::SecretValues;
use crate::task::{self, WorkError};

/// How long a handshake may take.
const START_MAX: Duration = Duration::from_secs(30);

/// The same for commands that download a program before they run it.
const DOWNLOAD_MAX: Duration = Duration::from_secs(120);
const DOWNLOADING: &[&str] = &["npx", "uvx", "bunx", "pipx", "docker", "podman"];

/// How long a list may take.
pub(super) const LIST_MAX: Duration = Duration::from_secs(10);

/// How long the last output of a process that ended is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Shorter values of variables are words such as `true`, which errors need.
const VARIABLE_BYTES_MIN: usize = 8;

/// What is used of a server's instructions.
const INSTRUCTIONS_BYTES_MAX: usize = 2 * 1_024;

/// Where a session's servers work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDirectories {
    /// The primary working directory.
    pub directory: PathBuf,
    /// All of them, as `file:` URIs.
    pub roots: Vec<String>,
}

/// A connection that is open.
pub struct McpConnection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) shared: Arc<McpShared>,
    silence_max: Duration,
    allowed: Option<Vec<String>>,
    /// What the server says about its use.
    pub instructions: String,
    cancel: Mutex<Option<RunningServiceCancellationToken>>,
    process: Mutex<Option<ServerProcess>>,
    ended: watch::Receiver<bool>,
}

/// A handshake that worked.
type OpenedConnection = (RunningService<RoleClient, McpHandler>, Option<ServerProcess>);

impl McpConnection {
    /// Starts or reaches a server.
    pub async fn open(
        declaration: &McpDeclaration,
        directories: &ServerDirectories,
        token: Option<&str>,
    ) -> Result<Self, McpError> {
        let secrets = secrets_of(&declaration.transport, token);
        let shared = McpShared::new(directories.roots.clone(), token.is_some(), secrets);
        let shared = Arc::new(shared);
        let limit = start_limit(&declaration.transport);
        let opening = open_either(declaration, directories, token, &shared);
        let opened = match timeout(limit, opening).await {
            Ok(opened) => opened.map_err(|error| error.without(&shared.secrets))?,
            Err(_) => return Err(McpError::Silent(limit, shared.log.last_line())),
        };
        let (running, process) = opened;
        let peer = running.peer().clone();
        let instructions = peer.peer_info().map(|info| read_instructions(&info));
        let cancel = Mutex::new(Some(running.cancellation_token()));
        let (ends, ended) = watch::channel(false);
        let failing = Arc::clone(&shared);
        task::spawn(Box::pin(async move {
            tokio::select! {
                _ = running.waiting() => {}
                // What waits is dropped, and the connection with it.
                () = failing.failed.notified() => {}
            }
            // Nobody may be left who wants to know.
            let _ = ends.send(true);
        }));
        Ok(Self {
            peer,
            silence_max: declaration.timeout.unwrap_or(SILENCE_MAX),
            allowed: declaration.tools.clone(),
            instructions: instructions.unwrap_or_default(),
            cancel,
            process: Mutex::new(process),
            ended,
            shared,
        })
    }

    /// What the server lists, as far as the declaration allows it.
    pub(super) async fn list(&self) -> Result<ToolList, McpError> {
        let info = self.peer.peer_info();
        if info.is_none_or(|info| info.capabilities.tools.is_none()) {
            return Ok(ToolList::default());
        }
        let listing = list_tools(&self.peer, self.allowed.as_deref());
        match timeout(LIST_MAX, listing).await {
            Ok(Err(McpError::Ended(_))) => Err(self.shared.end_reason()),
            Ok(listed) => listed.map_err(|error| error.without(&self.shared.secrets)),
            Err(_) => Err(McpError::Silent(LIST_MAX, self.shared.log.last_line())),
        }
    }

    /// The session works in these directories now: a server that asked for them before is told to ask again (MC-2).
    pub(super) fn set_roots(&self, roots: Vec<String>) {
        if !self.shared.set_roots(roots) {
            return; // it knows them
        }
        let peer = self.peer.clone();
        task::spawn(Box::pin(async move {
            // A server that is gone needs not be told.
            let _ = peer.notify_roots_list_changed().await;
        }));
    }

    /// Calls a tool. Dropping the future cancels the call.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        host: &dyn CallHost,
    ) -> Result<McpResult, McpError> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let called = call::call(&self.peer, &self.shared, request, self.silence_max, host).await;
        match called {
            Err(McpError::Ended(_)) => Err(self.end_error().await),
            called => called.map_err(|error| error.without(&self.shared.secrets)),
        }
    }

    /// Waits until the server says that it has other tools, prompts or resources.
    pub(super) async fn lists_changed(&self) {
        self.shared.lists_changed.notified().await;
    }

    /// Which of its lists changed since this was asked last.
    pub(super) fn take_changed(&self) -> ChangedLists {
        self.shared.take_changed()
    }

    /// Waits for the end; why it ended.
    pub(super) async fn ended(&self) -> McpError {
        let mut ended = self.ended.clone();
        // The sender says so before it is gone.
        let _ = ended.wait_for(|ended| *ended).await;
        self.end_error().await
    }

    /// Why the connection ended. What a process prints in the end may come after its pipes are closed.
    pub(super) async fn end_error(&self) -> McpError {
        if let McpError::Ended(words) = self.shared.end_reason()
            && words.is_empty()
        {
            tokio::time::sleep(LAST_WORDS).await;
        }
        self.shared.end_reason()
    }

    /// Its standard error and what it logged.
    pub fn log(&self) -> String {
        self.shared.log.text()
    }

    /// Ends it: calls that wait fail, the process may go by itself for a while.
    pub fn close(&self) {
        self.shared.fail(McpError::Stopped);
        let cancel = self.cancel.lock().take();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
        let process = self.process.lock().take();
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(process), Ok(runtime)) = (process, runtime) {
            task::spawn_on(&runtime, Box::pin(process.stop()));
        }
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        self.close();
    }
}

/// Values of a declaration that are in no state, error or log (TR-5): what it sends in headers, what it sets as variables, but for
/// paths and short words, and the token.
fn secrets_of(transport: &McpTransport, token: Option<&str>) -> SecretValues {
    let mut secrets: Vec<String> = token.into_iter().map(str::to_owned).collect();
    match transport {
        McpTransport::Process { env, .. } => {
            let values = env
                .values()
                .filter(|value| value.len() >= VARIABLE_BYTES_MIN && !value.starts_with('/'));
            secrets.extend(values.cloned());
        }
        McpTransport::Http { headers, .. } => {
            // A server may repeat a token without the name of its scheme.
            let values = headers.values();
            secrets.extend(values.flat_map(|value| {
                let last = value.rsplit(' ').next().unwrap_or_default();
                [value.clone(), last.to_owned()]
            }));
        }
    }
    SecretValues::new(secrets)
}

fn start_limit(transport: &McpTransport) -> Duration {
    match transport {
        McpTransport::Process { command, .. } => {
            let program = command.rsplit('/').next().unwrap_or_default();
            if DOWNLOADING.contains(&program) { DOWNLOAD_MAX } else { START_MAX }
        }
        McpTransport::Http { .. } => START_MAX,
    }
}

/// Begins with the handshake that servers of today have; servers that have it no more are asked to describe themselves
/// (MC-1).
async fn open_either(
    declaration: &McpDeclaration,
    directories: &ServerDirectories,
    token: Option<&str>,
    shared: &Arc<McpShared>,
) -> Result<OpenedConnection, McpError> {
    let initialize = ClientLifecycleMode::Initialize;
    let opened = open_once(declaration, directories, token, shared, initialize).await;
    let Err(McpError::Handshake(why)) = opened else { return opened };
    let discover =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    match open_once(declaration, directories, token, shared, discover).await {
        // It knows neither: its answer to what most clients say is the one that helps.
        Err(McpError::Handshake(_) | McpError::Refused { .. } | McpError::Unreadable) => {
            Err(McpError::Handshake(why))
        }
        opened => opened,
    }
}

async fn open_once(
    declaration: &McpDeclaration,
    directories: &ServerDirectories,
    token: Option<&str>,
    shared: &Arc<McpShared>,
    lifecycle: ClientLifecycleMode,
) -> Result<OpenedConnection, McpError> {
    let handler = McpHandler(Arc::clone(shared));
    match &declaration.transport {
        McpTransport::Process { command, args, env, cwd } => {
            let directory = match cwd {
                Some(cwd) => directories.directory.join(cwd),
                None => directories.directory.clone(),
            };
            let command = ServerCommand { command, args, env, directory: &directory };
            if let Some(program) = &declaration.program {
                check_program(program.clone()).await?;
            }
            let (process, pipes) = command.start()?;
            let log = Arc::clone(shared);
            let reading = task::spawn(Box::pin(async move { log.log.follow(pipes.errors).await }));
            let lines = LineTransport::new(pipes.input, pipes.output, Arc::clone(shared));
            match serve_client_with_lifecycle(handler, AnyTransport::new(lines), lifecycle).await {
                Ok(running) => Ok((running, Some(process))),
                Err(error) => {
                    drop(process);
                    // Its last output says more than a closed pipe does.
                    let _ = timeout(LAST_WORDS, reading).await;
                    Err(read_failure(&error, shared))
                }
            }
        }
        McpTransport::Http { url, headers } => {
            let endpoint = HttpEndpoint { url, headers, token };
            let transport = http::transport(&endpoint, shared).await?;
            let transport = AnyTransport::new(transport);
            let served = serve_client_with_lifecycle(handler, transport, lifecycle).await;
            match served {
                Ok(running) => Ok((running, None)),
                Err(error) => match read_failure(&error, shared) {
                    // A server from before streamable HTTP refuses the first message.
                    McpError::Unreachable(why) if shared.was_refused() => {
                        let old = open_old_sse(&endpoint, shared).await;
                        old.map_err(|_| McpError::Unreachable(why))
                    }
                    error => Err(error),
                },
            }
        }
    }
}

/// The same with the HTTP of older servers.
async fn open_old_sse(
    endpoint: &HttpEndpoint<'_>,
    shared: &Arc<McpShared>,
) -> Result<OpenedConnection, McpError> {
    let transport = OldSseTransport::open(endpoint, shared).await?;
    let transport = AnyTransport::new(transport);
    let handler = McpHandler(Arc::clone(shared));
    let initialize = ClientLifecycleMode::Initialize;
    let served = serve_client_with_lifecycle(handler, transport, initialize).await;
    match served {
        Ok(running) => Ok((running, None)),
        Err(error) => Err(read_failure(&error, shared)),
    }
}

/// Whether a program of the directory is still the one that the user agreed to: it may have changed since, also while the
/// server ran.
async fn check_program(program: DirectoryProgram) -> Result<(), McpError> {
    let looking = task::try_blocking(move || {
        let is_same = digest_of(&program.path).map(|digest| digest == program.digest);
        let was_missing = program.digest.is_empty();
        match is_same {
            Ok(true) => Ok(()),
            Ok(false) => Err(McpError::ProgramChanged),
            Err(_) if was_missing => Ok(()), // it is said that it is missing
            Err(why) => Err(McpError::NotStarted(why)),
        }
    });
    let stopped = |error: WorkError| McpError::NotStarted(error.to_string());
    looking.await.map_err(stopped)?
}

fn read_failure(error: &ClientInitializeError, shared: &McpShared) -> McpError {
    if let Some(wanted) = shared.take_challenge() {
        return wanted;
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => shared.end_reason(),
        ClientInitializeError::TransportError { error, .. } => match shared.log.last_line() {
            words if words.is_empty() => McpError::Unreachable(clean(&describe(&*error.error))),
            words => McpError::Ended(words),
        },
        ClientInitializeError::JsonRpcError(error) if is_other_version(error) => {
            McpError::Handshake(clean(&error.message))
        }
        ClientInitializeError::JsonRpcError(error) => {
            McpError::Refused { code: error.code.0, message: clean(&error.message) }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            McpError::Handshake("it speaks other versions".to_owned())
        }
        _ => McpError::Unreadable,
    }
}

/// Whether a server refuses the handshake as such. Any other refusal, such as for want of a key, would be the same in another version.
fn is_other_version(error: &ErrorData) -> bool {
    let codes = [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION];
    codes.contains(&error.code) || error.message.to_lowercase().contains("unsupported")
}

/// An error with what caused it: the outermost alone seldom says why.
fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn read_instructions(info: &ServerPeerInfo) -> String {
    let mut text = info.instructions.clone().unwrap_or_default();
    text.truncate(text.floor_char_boundary(INSTRUCTIONS_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn mc_10_commands_that_download_a_program_have_longer_to_start() {
        let limit = |command: &str| {
            start_limit(&McpTransport::Process {
                command: command.to_owned(),
                args: Vec::new(),
                env: BTreeMap::new(),
                cwd: None,
            })
        };
        for (command, seconds) in [("npx", 120), ("/usr/bin/uvx", 120), ("node", 30), ("npx2", 30)]
        {
            assert_eq!(limit(command), Duration::from_secs(seconds), "{command}");
        }
        let (url, headers) = ("https://h/npx".to_owned(), BTreeMap::new());
        let remote = McpTransport::Http { url, headers };
        assert_eq!(start_limit(&remote), Duration::from_secs(30));
    }

    #[test]
    fn tr_5_headers_variables_and_the_token_are_secret_but_paths_and_short_words_are_not() {
        let env = [("KEY", "sk-0123456"), ("DB", "/data/x.sqlite"), ("CI", "true")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let process = McpTransport::Process {
            command: "c".to_owned(),
            args: Vec::new(),
            env: env.into(),
            cwd: None,
        };
        let said = "sk-0123456 is wrong for /data/x.sqlite, true, t0ken".to_owned();
        let shown = secrets_of(&process, Some("t0ken")).blank(said);
        assert_eq!(shown, "*** is wrong for /data/x.sqlite, true, ***");
        let header = ("Authorization".to_owned(), "Bearer abcdef".to_owned());
        let remote = McpTransport::Http { url: "https://h/".to_owned(), headers: [header].into() };
        let shown = secrets_of(&remote, None).blank("abcdef expired: Bearer abcdef".to_owned());
        assert_eq!(shown, "*** expired: ***");
    }

    #[test]
    fn mc_1_only_a_refusal_of_the_handshake_itself_is_one() {
        let error =
            |code: i32, message: &'static str| ErrorData::new(ErrorCode(code), message, None);
        assert!(is_other_version(&error(-32601, "Method not found")));
        assert!(is_other_version(&error(-32602, "Unsupported protocol version")));
        assert!(is_other_version(&error(-32022, "other")));
        assert!(!is_other_version(&error(-32603, "no key is set")));
        assert!(!is_other_version(&error(-32602, "a field is missing")));
    }
}
