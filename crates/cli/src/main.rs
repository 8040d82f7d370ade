//! The command line: runs one verb and says how it went by its exit code.
//!
//! Promises: what is for people and what is for programs never mix: results on standard output, the rest on standard
//! error. Every error says what to do next. Logs never hold content or tokens.
//! Must not know: how a verb does its work.

mod allocator;
mod archive;
mod chat;
mod clock;
mod compose;
mod doctor;
mod exit;
mod export;
mod format;
mod inspect;
mod logs;
mod models;
mod output;
mod own_host;
mod process_one;
mod send;
mod serve;
mod session_name;
mod sessions;
mod target;
mod terminal;
mod transform;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::chat::ChatOptions;
use crate::exit::Exit;

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
  greenroom serve                  run a host in this terminal
  greenroom send hello             send one message, show the answer
  greenroom sessions               list the sessions
  greenroom watch ahp-root://      follow what happens, live
  greenroom doctor                 find out what is wrong

Logs go to standard error; GREENROOM_LOG sets their level (error, warn, info, debug)."
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
    Models(models::ModelsOptions),
    Watch(watch::WatchOptions),
    Export(export::ExportOptions),
    Inspect(inspect::InspectOptions),
    Compose(compose::ComposeOptions),
    Transform(transform::TransformOptions),
    Doctor(doctor::DoctorOptions),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(code) = process_one::run_as_process_one() {
        return code;
    }
    if matches!(cli.verb, Some(Verb::Serve(_))) {
        allocator::apply_settings();
    }
    let log_level = logs::start();
    // The default verb is chat.
    let verb = cli.verb.unwrap_or(Verb::Chat(Box::new(cli.chat)));
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
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
            Verb::Models(options) => models::run(options).await,
            Verb::Watch(options) => watch::run(options).await,
            Verb::Export(options) => export::run(&options),
            Verb::Inspect(options) => inspect::run(&options),
            Verb::Compose(options) => compose::run(&options),
            Verb::Transform(options) => transform::run(options).await,
            Verb::Doctor(options) => doctor::run(options).await,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
