//! The rows of the table, one file each, and what they share: the values of one subject among the results of a shuffled run.

mod acp;
mod acp_first_token;
mod acp_latency;
mod acp_map;
mod acp_memory;
mod acp_replay;
mod attach;
pub(crate) mod changes;
mod completions;
mod compose;
mod customizations;
mod fanout;
mod first_prompt;
mod full_load;
mod idle_spaces;
mod journal;
mod large_actions;
mod latency;
mod list;
mod live;
mod lone;
mod mcp_call;
mod memory;
mod model;
mod node_peak;
mod open;
pub(crate) mod page_deltas;
mod page_file;
mod page_visit;
mod part;
mod peak;
mod pg_append;
mod pg_merged;
mod pg_spaces;
pub(crate) mod prompt;
mod quiet_space;
pub(crate) mod reading;
mod reconnect;
mod refused;
mod relayed;
mod rendering;
pub(crate) mod results;
mod start;
mod takeover;
mod terminal;
mod turns;
mod versions;
mod view;
mod words;

pub(crate) use journal::PlainSqlite;

use anyhow::Result;

use crate::harness::Harness;
use crate::table::Figure;

pub(crate) struct Row {
    pub name: &'static str,
    pub what: &'static str,
    /// No figures: what it needs is not installed here, and a line says so.
    pub run: fn(&mut Harness) -> Result<Vec<Figure>>,
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "fanout",
        what: "CPU per delivered delta, 100 watchers, 200 deltas/s, no coalescing",
        run: fanout::steady,
    },
    Row {
        name: "fanout-window",
        what: "the same at 1,000/s with a 5 ms delivery window",
        run: fanout::windowed,
    },
    Row {
        name: "versions",
        what: "CPU per delivered delta with clients of nine versions, against all on 1.0",
        run: versions::run,
    },
    Row { name: "peak", what: "peak deltas/s to 100 watchers", run: peak::run },
    Row {
        name: "latency",
        what: "latency to the last of 100 watchers at 200/s",
        run: latency::run,
    },
    Row {
        name: "live",
        what: "a live stream's p99 while others open a 5 MB chat, 10 a second",
        run: live::run,
    },
    Row {
        name: "changes",
        what: "a look at a git repository with 100,000 files, and subscribing to the changes of a turn",
        run: changes::run,
    },
    Row {
        name: "terminal",
        what: "a live stream's p99 while a terminal prints at full speed",
        run: terminal::run,
    },
    Row { name: "part", what: "delta into the 10,000th part of a turn", run: part::run },
    Row { name: "open", what: "opening a 5 MB chat in full", run: open::run },
    Row { name: "view", what: "opening with `view.turns: 20`, cold", run: view::run },
    Row {
        name: "reconnect",
        what: "reconnect, 100 clients, 1,000 missed actions each",
        run: reconnect::run,
    },
    Row {
        name: "journal",
        what: "journal, 1,000 deltas/s, 100 watchers, 5 ms window",
        run: journal::run,
    },
    Row { name: "large-actions", what: "commits beside large actions", run: large_actions::run },
    Row {
        name: "results",
        what: "a turn with 200 tool calls of 1 MB output each",
        run: results::run,
    },
    Row { name: "start", what: "start to ready", run: start::run },
    Row {
        name: "first-prompt",
        what: "`greenroom` to its prompt, with a host that runs already",
        run: first_prompt::run,
    },
    Row { name: "memory", what: "memory (RssAnon)", run: memory::run },
    Row { name: "list", what: "first page (50) of `listSessions`", run: list::run },
    Row {
        name: "page-file",
        what: "CPU for a file of the page, against hyper alone",
        run: page_file::run,
    },
    Row {
        name: "page-deltas",
        what: "main thread of the page per delta, against a page that only appends",
        run: page_deltas::run,
    },
    Row {
        name: "page-visit",
        what: "a visit to the page: bytes, first paint, the list",
        run: page_visit::visit,
    },
    Row {
        name: "page-open",
        what: "the page: from the state of a chat to its last turn painted",
        run: page_visit::open,
    },
    Row {
        name: "page-kill",
        what: "the page: live again after `kill -9` of the host",
        run: page_visit::killed,
    },
    Row {
        name: "rendering",
        what: "CPU for text rendered for the page, against the parser alone",
        run: rendering::run,
    },
    Row {
        name: "model",
        what: "CPU per piece of a model's answer, against a bare HTTP relay",
        run: model::run,
    },
    Row {
        name: "words",
        what: "latency of a model's words to 50 watchers, against a bare HTTP relay",
        run: words::run,
    },
    Row {
        name: "lone",
        what: "CPU that the journal adds to a delta that comes alone",
        run: lone::run,
    },
    Row {
        name: "refused",
        what: "what others wait while an action of 16 MiB is refused",
        run: refused::run,
    },
    Row {
        name: "acp",
        what: "CPU per update of an agent over ACP, against a bare relay of its lines",
        run: acp::run,
    },
    Row {
        name: "acp-map",
        what: "CPU for decoding and mapping an agent's updates, and what is held of 569 KB of commands",
        run: acp_map::run,
    },
    Row {
        name: "acp-latency",
        what: "latency of an agent's updates at 50/s, against a bare relay of its lines",
        run: acp_latency::run,
    },
    Row {
        name: "acp-cancel",
        what: "a client's cancel until the agent hears of it",
        run: acp_latency::cancel,
    },
    Row {
        name: "acp-first-token",
        what: "a message until the agent's first word, against the agent driven by hand",
        run: acp_first_token::run,
    },
    Row {
        name: "acp-memory",
        what: "memory with 50 chats of an agent over ACP: idle, at rest, streaming",
        run: acp_memory::run,
    },
    Row {
        name: "acp-replay",
        what: "a replay of 20,000 updates that are dropped",
        run: acp_replay::run,
    },
    Row {
        name: "mcp-call",
        what: "an MCP call of 1 KB over pipes, against rmcp alone",
        run: mcp_call::run,
    },
    Row {
        name: "acp-kill",
        what: "`kill -9` of the host until its agent's processes are gone",
        run: acp::killed,
    },
    Row {
        name: "customizations",
        what: "finding the customizations of a project with 200 files, and again when one changed",
        run: customizations::run,
    },
    Row {
        name: "completions",
        what: "a completion over 100,000 paths, against a bare matcher's pass",
        run: completions::run,
    },
    Row {
        name: "render",
        what: "rendering a system prompt of eleven sections",
        run: prompt::render,
    },
    Row {
        name: "transform",
        what: "what a client that rewrites sections adds to a render",
        run: prompt::transform,
    },
    Row {
        name: "turns",
        what: "100 turns at once: memory, and latency from the model to the watcher",
        run: turns::run,
    },
    Row {
        name: "reading",
        what: "CPU per frame of `greenroom chat` at the end of an answer of 20,000 lines, against its beginning",
        run: reading::run,
    },
    Row { name: "compose", what: "a message of 50 parts composed and lowered", run: compose::run },
    Row {
        name: "attach",
        what: "1 MiB attached, against decoding, hashing, writing and syncing it",
        run: attach::run,
    },
    Row {
        name: "attach-memory",
        what: "memory while ten clients send 20 MiB each",
        run: attach::memory,
    },
    Row {
        name: "pg-append",
        what: "a batch of 5 records in PostgreSQL, 200/s, against SQLite FULL",
        run: pg_append::run,
    },
    Row {
        name: "pg-spaces",
        what: "batches/s of 100 spaces in PostgreSQL and CPU a batch, against 100 SQLite files",
        run: pg_spaces::run,
    },
    Row {
        name: "pg-merged",
        what: "merged appends of a node, against the bare statement in a loop",
        run: pg_merged::run,
    },
    Row {
        name: "node-peak",
        what: "peak deltas/s of a node with 8 spaces, against 1",
        run: node_peak::run,
    },
    Row {
        name: "quiet-space",
        what: "p99 of a quiet space beside a flooding one, against alone",
        run: quiet_space::run,
    },
    Row {
        name: "relayed",
        what: "CPU a frame and p50 through another node, against the node that serves the space",
        run: relayed::run,
    },
    Row {
        name: "idle-spaces",
        what: "memory and statements of idle loaded spaces",
        run: idle_spaces::run,
    },
    Row {
        name: "takeover",
        what: "`kill -9` of a node with 1,000 spaces to the first replayed action of each",
        run: takeover::run,
    },
];

/// The values of one subject, in the order of the rounds.
fn values<S: PartialEq, T>(results: &[(S, T)], subject: S, value: impl Fn(&T) -> f64) -> Vec<f64> {
    results.iter().filter(|(who, _)| *who == subject).map(|(_, result)| value(result)).collect()
}

/// The median of one subject over the rounds.
fn median_of<S: PartialEq, T>(results: &[(S, T)], subject: S, value: impl Fn(&T) -> f64) -> f64 {
    crate::measure::median(&values(results, subject, value))
}
