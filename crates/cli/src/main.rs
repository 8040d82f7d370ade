//! The door: reads the command line, runs one verb, says how it went by its exit code.
//!
//! Promises: what is for people and what is for programs never mix: results on standard output, the rest on standard
//! error. Every error says what to do next. Logs never hold content or tokens.
//! Must not know: how a verb does its work.

mod doctor;
mod exit;
mod export;
mod logs;
mod screen;
mod send;
mod serve;
mod sessions;
mod target;
mod terminal;
mod watch;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;

/// Runs AI agent sessions and shows them, live, to any number of clients over the Agent Host Protocol.
#[derive(Debug, Parser)]
#[command(
    name = "greenroom",
    version,
    after_help = "Examples:
  greenroom serve                  start a host on this machine
  greenroom send hello             send one message, in another terminal
  greenroom sessions               list what is there
  greenroom doctor                 find out what is wrong

Logs go to standard error; GREENROOM_LOG sets their level (error, warn, info, debug)."
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Serve(serve::ServeOptions),
    Sessions(sessions::SessionsOptions),
    Send(send::SendOptions),
    Watch(watch::WatchOptions),
    Export(export::ExportOptions),
    Doctor(doctor::DoctorOptions),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let log_level = logs::start();
    let Some(verb) = cli.verb else {
        // Nothing was asked for: show what can be.
        return match Cli::command().print_help() {
            Ok(()) => Exit::Complete.into(),
            Err(_) => Exit::Failed.into(),
        };
    };
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
            Verb::Serve(options) => serve::run(options, log_level).await,
            Verb::Sessions(options) => sessions::run(options).await,
            Verb::Send(options) => send::run(options).await,
            Verb::Watch(options) => watch::run(options).await,
            Verb::Export(options) => export::run(&options),
            Verb::Doctor(options) => doctor::run(options).await,
        }
    });
    // A thread that still reads standard input must not keep the program alive.
    runtime.shutdown_background();
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("greenroom: {}", terminal::clean(&format!("{error:#}")));
            Exit::of_error(&error).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
