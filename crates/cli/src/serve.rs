//! `greenroom serve`: runs a host until it is stopped.
//!
//! Promises: with `--ready-json` standard output holds exactly one line. Flags win over the TOML file, the file over
//! the defaults.

mod announce;
mod record;

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::Context;
use client::endpoint;
use host::journal::JournalError;
use host::{Config, Model, ServeError, ServerReady, TokenChoice};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::host_record::RunMode;
use crate::log_file::{self, Streams};
use crate::logging::{LogDestination, LogLevel};
use crate::output::print;
use crate::terminal::escape_line;

use self::announce::Announce;
use self::record::make_record;

/// Run a host that clients connect to
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  greenroom serve
  greenroom serve --listen 127.0.0.1:0 --ready-json
  greenroom serve --model http://localhost:11434/v1#qwen3 --workspace ~/code
  greenroom serve --script my-script.json

SIGTERM or Ctrl-C stops the host within 5 s; nothing that a client has seen is lost.")]
pub(crate) struct ServeOptions {
    /// Address to listen on [default: 127.0.0.1:4790]; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Where sessions are stored [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// TOML file with settings [default: greenroom.toml in the data directory]; --print-config shows them all
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Script of the scripted agent, instead of the built-in one
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// A model to talk to: BASE_URL#MODEL of a server that speaks Chat Completions, or `anthropic+`, `responses+` or `gemini+` before it for those; may be repeated, the first being
    /// the default. Models with keys, prices and settings go into the TOML file
    #[arg(long, value_name = "URL#MODEL", value_parser = Model::parse)]
    model: Vec<Model>,
    /// File that holds the token clients must show [default: one is created and stored in the data directory]
    #[arg(long, value_name = "FILE", conflicts_with = "no_token")]
    token_file: Option<PathBuf>,
    /// Ask for no token; only where other machines cannot connect
    #[arg(long)]
    no_token: bool,
    /// Directory that sessions may work in, the first being the default; may be repeated
    /// [default: the current directory, and the home directory]
    #[arg(long, value_name = "DIR")]
    workspace: Vec<PathBuf>,
    /// Print one line of JSON on standard output once connections are accepted
    #[arg(long, conflicts_with = "stdio")]
    ready_json: bool,
    /// Do not offer the scripted agent
    #[arg(long, conflicts_with = "script")]
    no_scripted: bool,
    /// Serve one client on standard input and output; no socket, no token
    #[arg(long, conflicts_with_all = ["listen", "token_file"])]
    stdio: bool,
    /// Print all settings as a TOML file and exit
    #[arg(long)]
    print_config: bool,
    /// Detach from the terminal; other verbs start a host like this
    #[arg(long, hide = true, conflicts_with_all = ["stdio", "ready_json"])]
    background: bool,
    /// Run under a service manager; the installed unit starts a host like this
    #[arg(long, hide = true, conflicts_with_all = ["stdio", "ready_json", "background"])]
    service: bool,
    /// With --background: listen on this port if it is free, since clients know it
    #[arg(long, hide = true, requires = "background")]
    earlier_port: Option<u16>,
}

impl ServeOptions {
    fn mode(&self) -> RunMode {
        match (self.background, self.service) {
            (true, _) => RunMode::Background,
            (false, true) => RunMode::Service,
            (false, false) => RunMode::Foreground,
        }
    }

    /// Where a host that is started like this logs.
    pub(crate) fn log_destination(&self) -> LogDestination {
        let streams = match self.mode() {
            RunMode::Foreground => return LogDestination::StandardError,
            RunMode::Background => Streams::Redirected,
            RunMode::Service => Streams::Kept,
        };
        match endpoint::data_directory(self.data.as_deref()) {
            Ok(data) => LogDestination::File(log_file::path_in(&data), streams),
            // Without a data directory it will not start, and says so there.
            Err(_) => LogDestination::StandardError,
        }
    }

    /// Whether another port will do: clients find a host without a terminal by its data directory. A port that was named
    /// is wanted; the usual one, or any, is not.
    fn may_move(&self, config: &Config) -> bool {
        let is_usual = config.listen == Config::default().listen;
        self.mode() != RunMode::Foreground && (is_usual || config.listen.port() == 0)
    }

    /// The port that clients know from before, if it is free.
    fn prefer_earlier_port(&self, config: &mut Config) {
        let at_port = |port| SocketAddr::new(config.listen.ip(), port);
        let earlier = self.earlier_port.map(at_port).filter(|_| self.may_move(config));
        if let Some(earlier) = earlier.filter(|address| TcpListener::bind(address).is_ok()) {
            config.listen = earlier;
        }
    }

    fn config(&self) -> anyhow::Result<Config> {
        let data = endpoint::data_directory(self.data.as_deref())?;
        let mut config = settings(data, self.config.as_deref())?;
        config.put_models_first(self.model.clone());
        if let Some(listen) = self.listen {
            config.listen = listen;
        }
        if let Some(script) = &self.script {
            config.script = Some(script.clone());
        }
        if let Some(file) = &self.token_file {
            config.token = TokenChoice::File(file.clone());
        }
        if self.no_token || self.stdio {
            config.token = TokenChoice::None;
        }
        if !self.workspace.is_empty() {
            config.workspaces = self.workspace.clone();
        }
        config.document_reader = document_reader();
        config.scripted &= !self.no_scripted;
        config.stdio = self.stdio;
        Ok(config)
    }
}

/// The settings of a host, with the models of its environment and what its user keeps for agents: those of the file that is named, else of `greenroom.toml` in the data directory if it is there.
pub(crate) fn settings(data: PathBuf, file: Option<&Path>) -> anyhow::Result<Config> {
    let default_file = data.join(host::CONFIG_FILE);
    let mut config = Config::default_for(data);
    let file = file.or_else(|| default_file.is_file().then_some(default_file.as_path()));
    if let Some(file) = file {
        config.load_toml(file).context("the configuration file cannot be used")?;
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    config.user_agents = home.map(|home| PathBuf::from(home).join(".agents"));
    for problem in config.use_environment() {
        eprintln!("greenroom: a key of the environment is not used: {}", escape_line(&problem));
    }
    Ok(config)
}

/// This program reads documents for the host, in processes of their own.
pub(crate) fn document_reader() -> Vec<OsString> {
    match std::env::current_exe() {
        Ok(program) => vec![program.into(), "read-document".into()],
        Err(error) => {
            tracing::warn!(%error, "this program is not found: PDFs that a model does not take are described, not read");
            Vec::new()
        }
    }
}

/// What the command line asks for and may not have.
fn usage_error(config: &Config) -> Option<String> {
    let open = !config.stdio && !config.listen.ip().is_loopback();
    (open && config.token == TokenChoice::None).then(|| {
        format!(
            "{} can be reached from other machines, so a token is needed: leave --no-token out, \
             or listen on 127.0.0.1",
            config.listen
        )
    })
}

pub(crate) async fn run(options: ServeOptions, log_level: LogLevel) -> anyhow::Result<Exit> {
    let mode = options.mode();
    match serve(options, log_level).await {
        // Another host was there first, which clients find: there is nothing to be done, nor to be tried again.
        Err(error) if mode == RunMode::Service && is_already_served(&error) => {
            tracing::info!("another host serves the data directory; the service ends");
            Ok(Exit::Complete)
        }
        Err(error) if mode == RunMode::Service => {
            // Standard error is the service manager's; the log is where people look.
            tracing::error!("the host ends: {error:#}");
            Err(error)
        }
        served => served,
    }
}

fn is_already_served(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ServeError>(), Some(ServeError::Journal(JournalError::Locked(_))))
}

async fn serve(options: ServeOptions, log_level: LogLevel) -> anyhow::Result<Exit> {
    let mut config = options.config()?;
    let may_move = options.may_move(&config);
    options.prefer_earlier_port(&mut config);
    if let Some(problem) = usage_error(&config) {
        eprintln!("greenroom: {problem}");
        return Ok(Exit::Usage);
    }
    if options.print_config {
        print(&config.to_toml())?;
        return Ok(Exit::Complete);
    }
    if options.background {
        // Whoever leads a group already cannot lead a session; then the terminal's signals still come.
        if let Err(error) = rustix::process::setsid() {
            tracing::warn!(%error, "cannot detach from the terminal; closing it may stop the host");
        }
    }
    config.on_log_level = Some(std::sync::Arc::new(move |level| log_level.set(level)));
    match serve_once(&options, config.clone()).await {
        Err(error) if may_move && is_port_taken(&error) => {
            tracing::info!(port = config.listen.port(), "the port is taken; another one is used");
            config.listen.set_port(0);
            serve_once(&options, config).await?;
        }
        served => served?,
    }
    tracing::info!("stopped");
    Ok(Exit::Complete)
}

fn is_port_taken(error: &anyhow::Error) -> bool {
    let kind = std::io::ErrorKind::AddrInUse;
    matches!(error.downcast_ref::<ServeError>(), Some(ServeError::Listen { source, .. }) if source.kind() == kind)
}

async fn serve_once(options: &ServeOptions, config: Config) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let data = config.data.clone();
    let mode = options.mode();
    let announce = match (options.stdio, options.ready_json) {
        (true, _) => Announce::Nothing, // G-31: standard output is the client's
        (false, true) => Announce::Json,
        // A log must not hold a token.
        (false, false) if mode != RunMode::Foreground => Announce::Nothing,
        (false, false) => Announce::Text,
    };
    let record = make_record(mode, &data);
    let on_ready = move |ready: ServerReady| {
        // Only now: until it is ready the directory may be another host's.
        if let Err(error) = record.and_then(|record| Ok(record.write(&data)?)) {
            tracing::warn!(%error, "`greenroom restart` will not know how this host was started");
        }
        announce.print(&ready, &data);
    };
    Ok(host::serve(config, on_ready, stop).await?)
}

/// Ends with the first SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
    Ok(async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "stopping");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ServeOptions {
        ServeOptions { data: Some(PathBuf::from("d")), ..ServeOptions::default() }
    }

    #[test]
    fn no_token_is_for_loopback_only() {
        let problem = |listen: &str, no_token| {
            let listen = Some(listen.parse().unwrap());
            usage_error(&ServeOptions { listen, no_token, ..options() }.config().unwrap())
        };
        assert_eq!(problem("127.0.0.1:0", true), None);
        assert_eq!(problem("[::1]:0", true), None);
        assert_eq!(problem("0.0.0.0:4790", false), None);
        assert!(problem("0.0.0.0:4790", true).unwrap().contains("a token is needed"));
    }

    #[test]
    fn a_port_that_was_named_is_not_exchanged_for_another() {
        let background = |listen: Option<&str>| ServeOptions {
            listen: listen.map(|listen| listen.parse().unwrap()),
            background: true,
            ..options()
        };
        let may_move = |options: &ServeOptions| options.may_move(&options.config().unwrap());
        assert!(may_move(&background(None)));
        assert!(may_move(&background(Some("127.0.0.1:0"))));
        assert!(!may_move(&background(Some("127.0.0.1:5"))));
        assert!(!may_move(&options()), "a terminal shows the error");
    }

    #[test]
    fn the_earlier_port_is_used_if_it_is_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let earlier = listener.local_addr().unwrap();
        let options =
            ServeOptions { background: true, earlier_port: Some(earlier.port()), ..options() };
        let chosen = || {
            let mut config = options.config().unwrap();
            options.prefer_earlier_port(&mut config);
            config.listen
        };
        assert_eq!(chosen(), Config::default().listen, "it is taken");
        drop(listener);
        assert_eq!(chosen(), earlier);
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("greenroom.toml");
        std::fs::write(&file, "listen = \"127.0.0.1:5\"\nscripted = false\n").unwrap();
        let from_file = ServeOptions { config: Some(file.clone()), ..options() }.config().unwrap();
        assert_eq!((from_file.listen.port(), from_file.scripted), (5, false));
        let listen = Some("127.0.0.1:6".parse().unwrap());
        let flagged = ServeOptions { config: Some(file), listen, ..options() }.config().unwrap();
        assert_eq!(flagged.listen.port(), 6);
        assert_eq!(options().config().unwrap().listen.port(), 4790);
    }
}
