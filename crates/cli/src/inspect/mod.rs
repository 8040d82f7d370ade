//! `greenroom inspect`: the messages of a chat and what the model was sent of them, read from the data directory; no host is
//! needed, and one may run.
//!
//! Promises: nothing it shows ever travels over the protocol; records are printed as they were stored.

mod call;
mod call_diff;
mod call_list;
mod pretty;
pub(crate) mod prompt;
mod sent_call;
mod turns;

use std::path::PathBuf;

use client::endpoint;

use crate::archive::find_session;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::session_name::SessionName;
use sent_call::{SentCalls, exit_of};

/// Show the messages of a chat and what the model was sent of them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom inspect scripted:/0190...
  greenroom inspect ahp-chat://default/... --turn t7 --json
  greenroom inspect scripted:/0190... --prompt
  greenroom inspect ahp-chat://default/... --prompt --last 1 --json | jq '.[0].sections'
  greenroom inspect native:/0190... --call
  greenroom inspect native:/0190... --call 7
  greenroom inspect native:/0190... --call 7 --raw > request.json
  greenroom inspect native:/0190... --diff 6 7

Reads the data directory: no host has to run, and one that does is not disturbed. Of each chat the newest 50 renders are stored \
there, and the newest 50 requests, or as many as `inspect_calls_max` and `inspect_bytes_max` in the settings say; for whoever may \
read that directory and nobody else.")]
pub(crate) struct InspectOptions {
    /// The chat; or a session (its URI, a part of its id, or its title), for all of its chats
    #[arg(value_name = "CHAT")]
    name: SessionName,
    /// The system prompt of the last renders, section by section, before and after a client rewrote it
    #[arg(long, conflicts_with = "turn")]
    prompt: bool,
    /// The requests to models: one of them whole, as it was sent; without a number the list of them
    #[arg(long, value_name = "N", num_args = 0..=1, conflicts_with_all = ["prompt", "turn", "diff"])]
    call: Option<Option<u64>>,
    /// What changed from one request to another
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["prompt", "turn"])]
    diff: Option<Vec<u64>>,
    /// With --call N: the body alone, byte for byte
    #[arg(long, requires = "call", conflicts_with_all = ["json", "bodies"])]
    raw: bool,
    /// With --call N or --diff: bodies of attachments in full instead of by their type, size and digest
    #[arg(long)]
    bodies: bool,
    /// Only this turn
    #[arg(long, value_name = "ID")]
    turn: Option<String>,
    /// How many renders of each chat to show
    #[arg(long, value_name = "N", default_value_t = 3)]
    last: usize,
    /// Print one JSON array, or one object for --call N and --diff
    #[arg(long)]
    json: bool,
    /// Data directory [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(options: &InspectOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let (archive, session) = find_session(&data, &options.name)?;
    if options.call.is_some() || options.diff.is_some() {
        let calls = SentCalls::open(&archive, &session, &data)?;
        return inspect_calls(&calls, options);
    }
    if !options.prompt {
        let turns = turns::turns_of(&archive, &session, options.turn.as_deref())?;
        if options.json {
            print_json(&turns::to_json(&turns))?
        } else {
            print(&turns::to_text(&turns))?
        }
        return Ok(Exit::Complete);
    }
    let renders = prompt::renders_of(&archive, &session, options.last)?;
    if options.json {
        print_json(&prompt::to_json(&renders))?
    } else {
        print(&prompt::to_text(&renders))?
    }
    Ok(Exit::Complete)
}

fn inspect_calls(calls: &SentCalls<'_>, options: &InspectOptions) -> anyhow::Result<Exit> {
    if let Some([before, after]) = options.diff.as_deref() {
        let before = calls.read(*before)?;
        let after = calls.read(*after)?;
        let diff = call_diff::compare(&before, &after, options.bodies)?;
        if options.json {
            print_json(&diff.to_json())?
        } else {
            print(&diff.to_text())?
        }
        return Ok(Exit::Complete);
    }
    let Some(number) = options.call.flatten() else {
        if options.json {
            print_json(&call_list::to_json(calls))?
        } else {
            print(&call_list::to_text(calls))?
        }
        return Ok(Exit::Complete);
    };
    let call = calls.read(number)?;
    if options.raw {
        return call::print_raw(&call);
    }
    if options.json {
        print_json(&call::to_json(&call, options.bodies)?)?
    } else {
        print(&call::to_text(&call, options.bodies)?)?
    }
    Ok(exit_of(&call))
}
