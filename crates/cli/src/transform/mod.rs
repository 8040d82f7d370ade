//! `greenroom transform`: serves a transform pack by joining a session as an active client.
//!
//! Promises: it is active until it is stopped or the session is gone, over losses of the connection too. It never opts in to
//! what the host restricts; that, and what the host does not know, is reported.

mod pack;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use client::transform::{self, TransformHandler};
use client::{Live, Options, Update, Updates};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use wire::ChannelUri;
use wire::ext::system_message_transform::{CATALOGUE_FIELD, CATALOGUE_KEY};

use self::pack::RewriteRules;
use crate::exit::Exit;
use crate::output::print;
use crate::session_name::SessionName;
use crate::target::HostOptions;
use crate::terminal::escape_line;
use crate::{archive, inspect};

/// Renders that a dry run shows of each chat.
const DRY_RENDERS: usize = 3;

/// Rewrite sections of an agent's system prompt with the files of a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom transform house-style/                       the newest session
  greenroom transform house-style/ --session scripted:/0190...
  greenroom transform house-style/ --session scripted:/0190... --dry-run

Each .md file of the directory begins with front matter and holds what is to be put in:

  ---
  sections: [tone, guidelines]
  mode: append
  ---
  Never run destructive commands without asking.

`mode: replace` puts the body in place of the section. Files are applied in the order of their names. Ctrl-C stops; from \
then on the prompt is what it was. --dry-run asks no host: it shows what the files would have changed in the last renders.")]
pub(crate) struct TransformOptions {
    /// The pack: a directory of Markdown files
    directory: PathBuf,
    /// The session [default: the newest]
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionName>,
    /// Show what would change in the last renders, and change nothing
    #[arg(long, requires = "session")]
    dry_run: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: TransformOptions) -> anyhow::Result<Exit> {
    let pack = RewriteRules::load(&options.directory)?;
    if options.dry_run {
        return dry_run(&options, &pack);
    }
    let locator = options.host.locator()?;
    let client_id = crate::target::client_id();
    let (live, updates) = Live::connect(locator, &client_id, Options::default()).await?;
    let session = match options.session {
        Some(name) => name.find(&live).await?,
        None => newest(&live).await?,
    };
    live.subscribe(&session).await?;
    let serving = TransformServer { live, session, pack };
    let ended = serving.serve(updates).await;
    serving.live.close().await;
    ended
}

async fn newest(live: &Live) -> anyhow::Result<ChannelUri> {
    let newest = live
        .latest_session()
        .await?
        .context("there is no session; start one with `greenroom chat`")?;
    Ok(newest.uri()?)
}

struct TransformServer {
    live: Live,
    session: ChannelUri,
    pack: RewriteRules,
}

impl TransformServer {
    async fn serve(&self, mut updates: Updates) -> anyhow::Result<Exit> {
        let mut interrupt = signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
        let catalogue = self.catalogue();
        for line in warnings(&self.pack, &catalogue) {
            eprintln!("{line}");
        }
        self.activate()?;
        let session = escape_line(self.session.as_str());
        let is_known = |id: &String| {
            let mut entries = catalogue.iter();
            catalogue.is_empty() || entries.any(|entry| entry["id"] == id.as_str())
        };
        let mut sections = self.pack.without(&restricted_sections(&catalogue)).sections();
        sections.retain(is_known);
        let sections = if sections.is_empty() { "nothing".to_owned() } else { sections.join(", ") };
        print(&format!("Rewriting {sections} in {session}. Ctrl-C stops.\n"))?;
        loop {
            let update = tokio::select! {
                update = updates.next() => update,
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
            };
            match update {
                None => return Ok(Exit::NoHost),
                Some(Update::Gone { channel }) if channel == self.session.as_str() => {
                    eprintln!("the session is gone");
                    return Ok(Exit::Complete);
                }
                Some(Update::Refused { reason, .. }) => {
                    return Err(anyhow!("the host refused it: {}", escape_line(&reason)));
                }
                Some(Update::Connection(client::ConnectionEvent::Closed { why })) => {
                    return Err(why.into());
                }
                // Away for too long: the host took the entry out.
                Some(_) if !transform::is_active(&self.live, &self.session) => self.activate()?,
                Some(_) => {}
            }
        }
        transform::deactivate(&self.live, &self.session)?;
        Ok(Exit::Complete)
    }

    fn catalogue(&self) -> Vec<Value> {
        let state = self.live.session(&self.session);
        let provider = state.map(|state| state.provider.clone()).unwrap_or_default();
        let root = self.live.root();
        let root = root.map_or(Value::Null, |root| wire::action::to_value(&*root));
        catalogue_of(&root, &provider)
    }

    /// Opts in to what the host lets anybody rewrite; it may restrict other sections than before when it was restarted.
    fn activate(&self) -> anyhow::Result<()> {
        let permitted = Arc::new(self.pack.without(&restricted_sections(&self.catalogue())));
        let handler = Arc::clone(&permitted) as Arc<dyn TransformHandler>;
        self.live.answer_with(transform::handler(handler));
        transform::activate(&self.live, &self.session, "Transform pack", &*permitted)?;
        Ok(())
    }
}

/// The sections that nobody may rewrite.
fn restricted_sections(catalogue: &[Value]) -> Vec<&str> {
    let entries = catalogue.iter().filter(|entry| entry["restricted"] == true);
    entries.filter_map(|entry| entry["id"].as_str()).collect()
}

/// The sections an agent lists in the root state.
fn catalogue_of(root: &Value, provider: &str) -> Vec<Value> {
    let listed = &root["_meta"][CATALOGUE_KEY][provider];
    let mut agents = root["agents"].as_array().into_iter().flatten();
    let agent = agents.find(|agent| agent["provider"] == provider);
    let field = agent.map(|agent| &agent[CATALOGUE_FIELD]);
    let listed = listed.as_array().or_else(|| field?.as_array());
    listed.cloned().unwrap_or_default()
}

/// Sections the pack names that will not be rewritten.
fn warnings(pack: &RewriteRules, catalogue: &[Value]) -> Vec<String> {
    if catalogue.is_empty() {
        return vec!["this agent lists no sections; its prompt may never be rewritten".to_owned()];
    }
    let mut lines = Vec::new();
    for rule in &pack.rules {
        for id in &rule.sections {
            let (file, inspected) = (escape_line(&rule.file), escape_line(id));
            match catalogue.iter().find(|entry| entry["id"] == id.as_str()) {
                Some(entry) if entry["restricted"] == true => lines.push(format!(
                    "{file}: the section `{inspected}` is restricted by this host: nobody may rewrite it, so this file does \
                     not change it"
                )),
                Some(_) => {}
                None => lines.push(format!("{file}: this agent has no section `{inspected}`")),
            }
        }
    }
    lines
}

fn dry_run(options: &TransformOptions, pack: &RewriteRules) -> anyhow::Result<Exit> {
    let data = options.host.data_directory()?;
    let Some(uri) = &options.session else { return Err(anyhow!("--dry-run needs --session")) };
    let (archive, session) = archive::find_session(&data, uri)?;
    let root = archive.root()?.unwrap_or(Value::Null);
    let catalogue = catalogue_of(&root, &session.state.provider);
    for line in warnings(pack, &catalogue) {
        eprintln!("{line}");
    }
    let pack = pack.without(&restricted_sections(&catalogue));
    let renders = inspect::prompt::renders_of(&archive, &session, DRY_RENDERS)?;
    if renders.is_empty() {
        print(&inspect::prompt::to_text(&renders))?;
        return Ok(Exit::Complete);
    }
    let mut text = String::new();
    for inspected in &renders {
        let at = wire::Timestamp(inspected.render.at).to_rfc3339();
        text.push_str(&format!("{at}  {}\n\n", escape_line(&inspected.chat)));
        for (id, before) in &inspected.render.before {
            if let Some(after) = pack.apply(id, before) {
                let diff = inspect::prompt::diff(before, &after);
                text.push_str(&format!("== {}\n{diff}\n", escape_line(id)));
            }
        }
    }
    print(&text)?;
    Ok(Exit::Complete)
}
