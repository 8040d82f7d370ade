//! An agent that speaks the Agent Client Protocol over its standard streams and does what a script says. It needs no model, no
//! key and no network, and has every oddity of real agents as a switch.
//!
//! ```text
//! acp-agent --script FILE --state DIR
//! ```
//!
//! **The script** is JSON (`script.rs` has every field). The first scene whose `when`, a regular expression, is found in the text of a
//! prompt is played; scenes are read again at every prompt, all else when the process starts.
//!
//! ```json
//! { "initialize": {"agentCapabilities": {"sessionCapabilities": {"resume": null}}},
//!   "session": {"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}},
//!   "answers": [{"method": "session/new", "times": 1, "answer": {"error": {"code": -32000, "message": "Authentication required"}}}],
//!   "replay": "after-response", "cancel": "ignored", "overlap": "aborts",
//!   "scenes": [{"when": "^hello (.*)", "steps": [{"say": ["Hel", "lo $1"]}]}] }
//! ```
//!
//! `initialize` and `session` are merged over the usual results (JSON merge patch: `null` removes). In every string of a scene `$1`.. are
//! the groups of `when`; `{{text}}` the prompt, `{{history}}` the prompts before it in its session, `{{last}}` the last answer of the
//! client, `{{steering}}` the last steering message, `{{cwd}}`, `{{pid}}`, `{{session}}`, `{{env:NAME}}`.
//!
//! **The state directory** is where it keeps sessions, so that another process can load them after this one was killed: as with real
//! agents a prompt is on disk before it is worked on, and the answer only once it is whole. There it also writes what
//! tests read: `received.jsonl` (every line of the client), `starts.jsonl` (directory, arguments, environment of each process),
//! `children` (processes it left behind). A step `{"await": NAME}` waits for a file of that name there.
//!
//! Promises: what its own steps send is checked against the schema, what arrives too; only `update`, `notify`, `request` and
//! the faults send what the script says as it is. It must know nothing of greenroom.

mod agent;
mod binary;
mod connection;
mod faults;
mod fill;
mod log;
mod methods;
mod player;
mod script;
mod session;
mod tool;

pub use binary::binary;
pub use log::{Received, Start, children, received, starts};

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// Where the process finds its script and its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    script: PathBuf,
    state: PathBuf,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let (mut script, mut state) = (None, None);
        while let Some(name) = arguments.next() {
            let value = arguments.next().map(PathBuf::from);
            let value = value.with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--script" => script = Some(value),
                "--state" => state = Some(value),
                _ => bail!("unknown option {name}; there are --script FILE and --state DIR"),
            }
        }
        Ok(Self {
            script: script.context("--script FILE is missing")?,
            state: state.context("--state DIR is missing")?,
        })
    }
}

/// Runs the agent on this process's streams until its input ends.
pub async fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::parse(arguments)?;
    let script = script::Script::read(&options.script)?;
    agent::serve(options, script).await
}
