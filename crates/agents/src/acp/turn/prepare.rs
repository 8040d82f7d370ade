//! Before a prompt: trust, a process, a session, its settings, and the note of which session it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_api::{Section, TurnOver};
use sha2::{Digest, Sha256};
use workspace::{Confinement, Workspace};

use super::super::agent_process::{AgentProcess, Lease};
use super::super::errors;
use super::super::live_session::{LiveSession, TurnModeError};
use super::super::mcp_servers::{PassedServers, find_passed_servers};
use super::super::notes::ChatNotes;
use super::super::open::{OpenedChat, Opening};
use super::super::plugin_instructions::describe_plugins;
use super::super::transcript;
use super::super::view::OptionValues;
use super::{AcpTurn, CANCEL_LIMIT, TurnStopped};
use crate::prompt as sections;
use crate::task;
use crate::trust::require_trust;

/// The section that plugins of clients are told in; all others begin empty.
const PLUGIN_SECTION: &str = "runtime_instructions";

/// Where a turn works.
pub(super) struct TurnDirectories {
    pub(super) workspace: Arc<Workspace>,
    /// Without links, the primary one first.
    pub(super) paths: Vec<PathBuf>,
}

/// A session that can be prompted.
pub(super) struct PreparedTurn {
    pub(super) process: Arc<AgentProcess>,
    pub(super) session: Arc<LiveSession>,
    /// The process is not stopped while this is there.
    pub(super) _lease: Lease,
    /// What the agent does not have of the conversation.
    pub(super) transcript: Option<String>,
    /// The agent got this turn's message before it was interrupted.
    pub(super) has_message: bool,
}

/// Opens the working directories.
pub(super) async fn open_directories(turn: &AcpTurn<'_>) -> Result<TurnDirectories, TurnStopped> {
    let config = &turn.core.config;
    let uris = turn.facts.working_directories.clone();
    let opened = task::run_blocking(move || Workspace::open(&uris, &Confinement::none())).await;
    let workspace = opened.map_err(|error| errors::no_directory(config, &error.to_string()))?;
    let directories = workspace.real_directories();
    if directories.is_empty() {
        return Err(errors::no_directory(config, "the session has none").into());
    }
    Ok(TurnDirectories { workspace: Arc::new(workspace), paths: directories })
}

/// Finds or starts the process, and opens the chat's session in it.
pub(super) async fn open(
    turn: &AcpTurn<'_>,
    directories: &TurnDirectories,
) -> Result<PreparedTurn, TurnStopped> {
    let (core, facts) = (turn.core, turn.facts);
    let Some(primary) = directories.paths.first() else {
        return Err(errors::no_directory(&core.config, "the session has none").into());
    };
    if core.config.find_program().is_none() {
        return Err(errors::missing(&core.config).into());
    }
    require_trust(turn.events, &core.trust, &core.config, &facts.conversation, &directories.paths)
        .await?;
    let (token, credentials) = core.token_of(facts.principal.as_deref());
    loop {
        let found = core.pool.process(primary, &facts.chat, token.as_deref(), credentials.clone());
        let (process, lease) = found.await?;
        leave_others(turn, &process).await;
        core.learn_abilities(&process.abilities);
        let live = process.session(&facts.chat);
        if let Some(live) = &live
            && !wait_for_last_turn(turn, &process, live).await
        {
            continue; // in another process
        }
        return open_in(turn, directories, process, lease, live).await;
    }
}

/// A chat that worked in another process, with somebody else's credentials or elsewhere, leaves it: that one would not hear what is
/// said here. One that takes no new work ends by itself.
async fn leave_others(turn: &AcpTurn<'_>, process: &Arc<AgentProcess>) {
    let others = turn.core.pool.processes().into_iter();
    for other in others.filter(|other| !Arc::ptr_eq(other, process) && other.is_usable()) {
        if let Some(live) = other.session(&turn.facts.chat)
            && wait_for_last_turn(turn, &other, &live).await
        {
            other.close_session(&turn.facts.chat);
        }
    }
}

/// Waits for the end of the prompt before; whether it ended. If not, the process is given up for this chat.
async fn wait_for_last_turn(
    turn: &AcpTurn<'_>,
    process: &Arc<AgentProcess>,
    live: &LiveSession,
) -> bool {
    let free = live.inbox.wait_until_free();
    let is_free =
        tokio::time::timeout(CANCEL_LIMIT + Duration::from_millis(100), free).await.is_ok();
    if !is_free {
        turn.core.pool.give_up(process, &live.inbox.session);
    }
    is_free
}

async fn open_in(
    turn: &AcpTurn<'_>,
    directories: &TurnDirectories,
    process: Arc<AgentProcess>,
    lease: Lease,
    live: Option<Arc<LiveSession>>,
) -> Result<PreparedTurn, TurnStopped> {
    let (core, facts, input) = (turn.core, turn.facts, &turn.input);
    let last = input.last_turn_id.as_deref();
    let is_known = |through: Option<&str>| knows(&input.turn_id, last, through);
    let instructions = plugin_instructions(turn, &process).await;
    let servers = match directories.paths.first() {
        Some(primary) => find_passed_servers(turn, &process, primary).await?,
        None => PassedServers::default(),
    };
    let instructions_digest = instructions.as_deref().map(hex_digest);
    if let Some(session) = live
        && is_known(session.through().as_deref())
        && session.directories == directories.paths
        && session.instructions_digest == instructions_digest
        && session.servers.digest == servers.digest
        && !process.connection.is_over()
    {
        let has_message = session.through().as_deref() == Some(&input.turn_id);
        servers.show(core, &facts.conversation, true);
        return Ok(PreparedTurn { process, session, _lease: lease, transcript: None, has_message });
    }
    let (notes, forked) = find_notes(turn, &process, directories, &is_known);
    let anew =
        notes.as_ref().and_then(|notes| reason_to_begin_anew(turn, notes, directories, &is_known));
    let system_prompt = render(turn, instructions).await?;
    let opening = Opening {
        core: Arc::clone(core),
        process: Arc::clone(&process),
        conversation: facts.conversation.clone(),
        chat: facts.chat.clone(),
        directories: directories.paths.clone(),
        servers: servers.clone(),
        instructions_digest,
        system_prompt,
        forked,
    };
    servers.show(core, &facts.conversation, false);
    let had_session = notes.is_some();
    let opened = opening.open(notes, anew).await;
    let OpenedChat { session, anew } = opened.map_err(|error| turn.failed(&process, &error))?;
    if let Some(is_signed_in) = process.connection.sign_in() {
        core.learn_sign_in(is_signed_in);
    }
    servers.show(core, &facts.conversation, true);
    let has_message =
        input.resume.is_some() && session.through().as_deref() == Some(&input.turn_id);
    let transcript = if session.through().is_none() { read_transcript(turn).await } else { None };
    if let Some(why) = anew.filter(|_| had_session) {
        say_anew(turn, &why).await?;
    }
    Ok(PreparedTurn { process, session, _lease: lease, transcript, has_message })
}

async fn say_anew(turn: &AcpTurn<'_>, why: &impl std::fmt::Display) -> Result<(), TurnOver> {
    let name = &turn.core.config.name;
    turn.notice(format!("{name} was started anew with a transcript of the conversation: {why}."))
        .await
}

/// Whether an agent that has got messages through this turn knows all that was said before the turn.
fn knows(turn: &str, last: Option<&str>, through: Option<&str>) -> bool {
    through == last || through == Some(turn)
}

/// A live session whose notes this turn did not get yet, because the turn that opened it was dropped.
fn live_notes(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    directories: &TurnDirectories,
) -> Option<ChatNotes> {
    let session = process.session(&turn.facts.chat)?;
    Some(make_notes(turn, process, &session, directories.paths.first()?.clone()))
}

/// Which session the chat had; or that of another chat, if the agent can fork it for this one.
fn find_notes(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    directories: &TurnDirectories,
    is_known: &dyn Fn(Option<&str>) -> bool,
) -> (Option<ChatNotes>, Option<ChatNotes>) {
    let stored = turn.input.chat_notes.as_deref().and_then(ChatNotes::read);
    match live_notes(turn, process, directories).or(stored) {
        Some(notes) if notes.chat == turn.facts.chat => (Some(notes), None),
        Some(source) => {
            let knows_as_much = is_known(source.through.as_deref());
            let can = knows_as_much && can_fork(turn, process, directories, &source);
            (None, Some(source).filter(|_| can))
        }
        None => (None, None),
    }
}

/// Whether the agent can make a session of this chat from another chat's: only if it is seen that it knows no more than was noted.
fn can_fork(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    directories: &TurnDirectories,
    source: &ChatNotes,
) -> bool {
    let live = process.all_sessions();
    let is_as_noted = |live: &Arc<LiveSession>| {
        live.inbox.session == source.session && live.through() == source.through
    };
    process.abilities.fork
        && source.agent == agent_name(turn)
        && directories.paths.first() == Some(&source.cwd)
        && source.through.is_some()
        && live.iter().any(is_as_noted)
}

fn reason_to_begin_anew(
    turn: &AcpTurn<'_>,
    notes: &ChatNotes,
    directories: &TurnDirectories,
    is_known: &dyn Fn(Option<&str>) -> bool,
) -> Option<String> {
    let core = turn.core;
    if notes.agent != agent_name(turn) {
        return Some("its command was changed in the settings".to_owned());
    }
    if directories.paths.first() != Some(&notes.cwd) {
        return Some("the working directory of the session was changed".to_owned());
    }
    if core.pool.is_abandoned(&notes.session) {
        return Some("its last session did not answer after a cancel".to_owned());
    }
    if !is_known(notes.through.as_deref()) {
        return Some("turns were taken back that it knows of".to_owned());
    }
    None
}

fn agent_name(turn: &AcpTurn<'_>) -> String {
    let config = &turn.core.config;
    format!("{} {}", config.id, config.command)
}

/// What the agent does not know; nothing if that cannot be read, which is said.
async fn read_transcript(turn: &AcpTurn<'_>) -> Option<String> {
    match turn.events.read_history().await {
        Ok(history) => transcript::of_turns(&history, transcript::window_of(&history)),
        Err(error) => {
            let text = format!(
                "The agent does not know what was said before: it could not be read ({error})."
            );
            // Nobody hears it if the turn is over.
            let _ = turn.notice(text).await;
            None
        }
    }
}

/// What plugins of clients say to the agent; none if the agent takes none (AG-37). Other instructions open the session anew.
async fn plugin_instructions(turn: &AcpTurn<'_>, process: &AgentProcess) -> Option<String> {
    if process.abilities.system_prompt {
        Some(describe_plugins(&turn.facts.plugins, &turn.input.switched_off).await)
    } else {
        None
    }
}

/// What is appended to the agent's own prompt, and its digest. Rendered when a session is opened and not with each turn: clients that
/// rewrite sections may say something else every time.
async fn render(
    turn: &AcpTurn<'_>,
    instructions: Option<String>,
) -> Result<Option<(String, String)>, TurnStopped> {
    let Some(instructions) = instructions else {
        return Ok(None); // the agent takes none
    };
    let sections = sections::catalogue().into_iter().map(|section| {
        let text = if section.id == PLUGIN_SECTION { instructions.clone() } else { String::new() };
        Section::new(section.id, text)
    });
    let rendered = turn.events.render(sections.collect()).await?;
    let text = sections::join(&rendered);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let digest = hex_digest(&text);
    Ok(Some((text, digest)))
}

fn hex_digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sets the model and the settings of the session; the model in use.
pub(super) async fn settings(
    turn: &AcpTurn<'_>,
    prepared: &PreparedTurn,
) -> Result<Option<String>, TurnStopped> {
    let (session, process) = (&prepared.session, &prepared.process);
    let custom_agent = turn.input.custom_agent.as_deref();
    session.end_turn_mode(&process.connection, custom_agent).await;
    session.apply_settings(&process.connection, &turn.input.config).await;
    choose_custom_agent(turn, prepared).await?;
    turn.show_held_notices(process, session).await?;
    let model = session.reported.view().model;
    let Some(chosen) = turn.chosen_model() else {
        if let Some(model) = &model {
            name_model(turn, model).await?;
        }
        return Ok(model.and_then(|model| model.current.as_str().map(ToOwned::to_owned)));
    };
    // Some agents take any name and use it.
    let is_offered = model.is_some_and(|model| model.values.iter().any(|value| value.id == chosen));
    if !is_offered {
        return Err(errors::unknown_model(&turn.core.config, chosen).into());
    }
    let set = session.choose_model(&process.connection, chosen).await;
    set.map_err(|error| turn.failed(process, &error))?;
    Ok(Some(chosen.to_owned()))
}

/// Lets the agent work in the mode that the message's custom agent stands for (CU-9).
async fn choose_custom_agent(
    turn: &AcpTurn<'_>,
    prepared: &PreparedTurn,
) -> Result<(), TurnStopped> {
    let config = &turn.core.config;
    let Some(name) = &turn.input.custom_agent else {
        return if turn.input.message["agent"]["uri"].is_string() {
            Err(errors::no_custom_agent(config, None).into())
        } else {
            // most messages name none
            Ok(())
        };
    };
    let (session, process) = (&prepared.session, &prepared.process);
    let begun = session.begin_turn_mode(&process.connection, name).await;
    begun.map_err(|error| match error {
        TurnModeError::NotOffered => errors::no_custom_agent(config, Some(name)).into(),
        TurnModeError::Refused(error) => turn.failed(process, &error),
    })
}

/// Says which model the agent chose, where it chooses one although nobody is signed in.
async fn name_model(turn: &AcpTurn<'_>, model: &OptionValues) -> Result<(), TurnStopped> {
    let config = &turn.core.config;
    let Some(current) = model.current_name().filter(|_| config.names_model) else {
        return Ok(()); // it says itself who must sign in, or has no model
    };
    let text = format!(
        "{} works with the model {current}, which it chose itself; it never says whether you are signed in. Choose another model if you \
         want one.",
        config.name
    );
    turn.core.notify_once(turn, text).await
}

/// Notes which session the chat has, and through which turn the agent knows it; returns when that is on the disk. What was noted
/// before.
pub(super) async fn note(
    turn: &AcpTurn<'_>,
    prepared: &PreparedTurn,
    through: Option<String>,
) -> Result<Option<String>, TurnStopped> {
    let session = &prepared.session;
    let before = session.set_through(through);
    let cwd = session.directories.first().cloned().unwrap_or_default();
    let notes = make_notes(turn, &prepared.process, session, cwd);
    turn.events.note_chat(notes.to_bytes()).await?;
    Ok(before)
}

fn make_notes(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    session: &LiveSession,
    cwd: PathBuf,
) -> ChatNotes {
    ChatNotes {
        chat: turn.facts.chat.clone(),
        agent: agent_name(turn),
        version: process.abilities.version.clone(),
        session: session.inbox.session.clone(),
        cwd,
        dirs: session.directories.iter().skip(1).cloned().collect(),
        through: session.through(),
        prompt: session.prompt_digest.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ag_44_an_agent_knows_the_chat_if_it_got_its_last_message() {
        assert!(knows("t2", Some("t1"), Some("t1")));
        assert!(knows("t2", Some("t1"), Some("t2")), "the turn is resumed");
        assert!(knows("t1", None, None), "there is nothing to know");
        assert!(!knows("t3", Some("t1"), Some("t2")), "the last was taken back");
        assert!(!knows("t3", None, Some("t2")), "all of it was");
        assert!(!knows("t2", Some("t1"), None), "a fork");
    }
}
