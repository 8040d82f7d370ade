//! The command line: runs one verb and says how it went by its exit code.
//!
//! Promises: what is for people and what is for programs never mix: results on standard output, the rest on standard
//! error. Every error says what to do next. Logs never hold content or tokens.
//! Must not know: how a verb does its work.

mod agents;
mod allocator;
mod archive;
mod ask;
mod chat;
mod clock;
mod completions;
mod compose;
mod config;
mod database;
mod devices;
mod doctor;
mod dollars;
mod exit;
mod export;
mod format;
mod help;
mod host_process;
mod host_record;
mod input_lines;
mod inspect;
mod local_host;
mod log_file;
mod logging;
mod logs;
mod man;
mod migrate;
mod models;
mod node;
mod open_page;
mod output;
mod own_host;
mod page_address;
mod pair;
mod private_directory;
mod process_one;
mod qr_code;
mod read_document;
mod restart;
mod rules;
mod send;
mod serve;
mod service;
mod session_choice;
mod session_name;
mod sessions;
mod space;
mod start_host;
mod status;
mod stop;
mod target;
mod terminal;
mod terminals;
mod transform;
mod watch;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

use crate::chat::ChatOptions;
use crate::exit::Exit;
use crate::logging::LogDestination;

/// Runs AI agent sessions and shows them, live, to any number of clients over the Agent Host Protocol.
#[derive(Debug, Parser)]
#[command(
    name = "greenroom",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  greenroom                        chat with an agent; starts a host if none runs
  greenroom --model http://localhost:11434/v1#qwen3
                                   the same, with a model of your own
  greenroom --agent claude         the same, with an agent that is installed here
  greenroom send hello             send one message, show the answer
  greenroom sessions               list the sessions
  greenroom open                   the same sessions in a browser; `greenroom pair` for a phone
  greenroom status                 is a host running, and what is it doing?
  greenroom doctor                 find out what is wrong

`greenroom VERB --help` says more about a verb. GREENROOM_LOG sets the level of logs (error, warn, info, debug)."
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    chat: ChatOptions,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Chat(Box<chat::ChatOptions>),
    Serve(serve::ServeOptions),
    Sessions(sessions::SessionsOptions),
    Send(send::SendOptions),
    Open(open_page::OpenPageOptions),
    Pair(pair::PairOptions),
    Devices(devices::DevicesOptions),
    Agents(agents::AgentsOptions),
    Models(models::ModelsOptions),
    Rules(rules::RulesOptions),
    Terminals(terminals::TerminalsOptions),
    Watch(watch::WatchOptions),
    Export(export::ExportOptions),
    Inspect(inspect::InspectOptions),
    Compose(compose::ComposeOptions),
    Transform(transform::TransformOptions),
    Status(status::StatusOptions),
    Stop(stop::StopOptions),
    Restart(restart::RestartOptions),
    Logs(logs::LogsOptions),
    Service(service::ServiceOptions),
    Space(space::SpaceOptions),
    Migrate(migrate::MigrateOptions),
    Database(database::DatabaseVerbOptions),
    Node(node::NodeOptions),
    Config(config::ConfigOptions),
    Doctor(doctor::DoctorOptions),
    Completions(completions::CompletionsOptions),
    Man(man::ManOptions),
    #[command(hide = true)]
    ReadDocument(read_document::ReadDocumentOptions),
}

fn main() -> ExitCode {
    let cli =
        Cli::from_arg_matches(&help::command().get_matches()).unwrap_or_else(|error| error.exit());
    if let Some(Verb::ReadDocument(_)) = cli.verb {
        return read_document::run().into();
    }
    if let Some(code) = process_one::run_as_process_one() {
        return code;
    }
    let log_level = match &cli.verb {
        Some(Verb::Serve(options)) => {
            allocator::apply_settings();
            logging::start(options.log_destination())
        }
        _ => logging::start(LogDestination::StandardError),
    };
    // The default verb is chat.
    let verb = cli.verb.unwrap_or(Verb::Chat(Box::new(cli.chat)));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("greenroom: cannot start: {error}");
            return Exit::Failed.into();
        }
    };
    let result = runtime.block_on(async {
        match verb {
            Verb::Chat(options) => chat::run(*options).await,
            Verb::Serve(options) => serve::run(options, log_level).await,
            Verb::Sessions(options) => sessions::run(options).await,
            Verb::Send(options) => send::run(options).await,
            Verb::Open(options) => open_page::run(options).await,
            Verb::Pair(options) => pair::run(options).await,
            Verb::Devices(options) => devices::run(options).await,
            Verb::Agents(options) => agents::run(options).await,
            Verb::Models(options) => models::run(options).await,
            Verb::Rules(options) => rules::run(options),
            Verb::Terminals(options) => terminals::run(options).await,
            Verb::Watch(options) => watch::run(options).await,
            Verb::Export(options) => export::run(&options),
            Verb::Inspect(options) => inspect::run(&options),
            Verb::Compose(options) => compose::run(&options).await,
            Verb::Transform(options) => transform::run(options).await,
            Verb::Status(options) => status::run(options).await,
            Verb::Stop(options) => stop::run(options).await,
            Verb::Restart(options) => restart::run(options).await,
            Verb::Logs(options) => logs::run(options).await,
            Verb::Service(options) => service::run(options).await,
            Verb::Space(options) => space::run(options).await,
            Verb::Migrate(options) => migrate::run(options).await,
            Verb::Database(options) => database::run(options).await,
            Verb::Node(options) => node::run(options).await,
            Verb::Config(options) => config::run(options),
            Verb::Doctor(options) => doctor::run(options).await,
            Verb::Completions(options) => completions::run(&options),
            Verb::Man(options) => man::run(&options),
            Verb::ReadDocument(_) => Ok(read_document::run()),
        }
    });
    // A thread that still reads standard input must not keep the program alive.
    runtime.shutdown_background();
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("greenroom: {}", terminal::escape(&format!("{error:#}")));
            Exit::of_error(&error).into()
        }
    }
}
