//! Restores files at the user's command (`/undo`, `/redo`, `/rewind`): finds the turns that changed them, shows what would
//! change, asks once, and does it (G-67). It works on the turn of the command as an agent would.
//!
//! Promises: nothing is changed without an answer that says so, and then only files that are still what was shown; what a file
//! held is kept first, so that the restoration itself can be taken back. A crash leaves each file as it was or restored.
//! Must not know: how changes came about. It reads what turns recorded of them.

mod apply;
mod plan;
mod turns;
mod words;

use agent_api::{AgentError, AgentEvent, AgentReply, EventSink, InputRequest, TurnOver};
use kernel::{RestoreTask, TurnRun};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;
use workspace::{CancelOnDrop, Cancellation, Workspace};

use super::services::TurnServices;
use crate::task;
use plan::{Files, RestorePlan};
use turns::{FileTurn, RestoreCommand, TurnReader};

/// The one question of a request, and what may be answered.
const QUESTION: &str = "choice";
const RESTORE: &str = "restore";
const RESTORE_ALL: &str = "restore-all";
const KEEP: &str = "keep";

/// Numbers of what is sent: one question and one call are all there is.
const ASK: u64 = 0;
const CALL: u64 = 1;

/// What the user decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestoreDecision {
    /// Those that nobody else changed.
    Restore,
    RestoreAll,
    Keep,
}

/// Why a restoration ends early.
enum RestoreStop {
    /// Nobody listens any more.
    Over,
    Failed(AgentError),
}

impl From<TurnOver> for RestoreStop {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

impl From<AgentError> for RestoreStop {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

/// Works on the turn of a command.
pub(super) async fn run(
    task: RestoreTask,
    turn: TurnRun,
    services: TurnServices,
    events: impl EventSink,
) -> Result<(), AgentError> {
    match restore(task, &turn, &services, &events).await {
        Ok(()) | Err(RestoreStop::Over) => Ok(()),
        Err(RestoreStop::Failed(error)) => Err(error),
    }
}

async fn restore(
    task: RestoreTask,
    turn: &TurnRun,
    services: &TurnServices,
    events: &dyn EventSink,
) -> Result<(), RestoreStop> {
    if task == RestoreTask::ChooseTurns {
        return choose_turns(turn, services, events).await;
    }
    let files = open_files(turn, services).await?;
    let command = RestoreCommand::of(&task);
    let Some((target, plan)) = find_changes(&task, turn, services, &files).await? else {
        if let Some(text) = words::nothing_to_do(command) {
            let text = text.to_owned();
            events.send(AgentEvent::Notice { text }).await?;
        }
        return Ok(());
    };
    if plan.files.is_empty() {
        let text = words::impossible(&plan);
        return Ok(events.send(AgentEvent::Notice { text }).await?);
    }
    let decision = ask(command, &target, &plan, events).await?;
    let plan = match decision {
        RestoreDecision::Keep => {
            let text = words::unchanged_text(command).to_owned();
            return Ok(events.send(AgentEvent::Notice { text }).await?);
        }
        RestoreDecision::Restore => plan.without_foreign_changes(),
        RestoreDecision::RestoreAll => plan,
    };
    let restored = apply::restore(command, &target, plan, &files, events).await?;
    let text = words::report(command, &target, &restored);
    Ok(events.send(AgentEvent::Notice { text }).await?)
}

/// Asks how many turns are to be taken back. The kernel does that, and this turn goes with them.
async fn choose_turns(
    turn: &TurnRun,
    services: &TurnServices,
    events: &dyn EventSink,
) -> Result<(), RestoreStop> {
    let reader = TurnReader::new(services.journal.clone(), turn.history.chat);
    let names = reader.read_names(turn.history.before_n).await?;
    if names.is_empty() {
        let text = words::NO_TURNS.to_owned();
        return Ok(events.send(AgentEvent::Notice { text }).await?);
    }
    let labels = names.iter().enumerate();
    let options = labels.map(|(index, name)| {
        json!({"id": (index + 1).to_string(), "label": words::rewind_label(index + 1, name)})
    });
    let keep = json!({"id": KEEP, "label": words::REWIND_KEEP});
    let options = options.chain([keep]).collect();
    let chosen = choose(words::REWIND_MESSAGE, words::REWIND_QUESTION, options, events).await?;
    let turns = chosen.and_then(|chosen| chosen.parse().ok());
    let event = match turns {
        Some(turns) => AgentEvent::Rewind { turns },
        None => AgentEvent::Notice { text: words::NOT_REWOUND.to_owned() },
    };
    Ok(events.send(event).await?)
}

/// The session's files, as far as it may work with them now (G-23).
async fn open_files(turn: &TurnRun, services: &TurnServices) -> Result<Files, AgentError> {
    let confinement = services.bodies.confinement().clone();
    let directories = turn.working_directories.clone();
    let opened = run_blocking(move |_| Workspace::open(&directories, &confinement)).await?;
    let workspace = opened.map_err(|error| AgentError {
        error_type: "workingDirectoryNotAllowed".to_owned(),
        message: error.to_string(),
        resumable: false,
    })?;
    Ok(Files { workspace, bodies: services.bodies.clone() })
}

/// The turn whose changes are to be taken back, or the first of several, and what that would do to files as they are now;
/// `None` if there is nothing to do.
async fn find_changes(
    task: &RestoreTask,
    turn: &TurnRun,
    services: &TurnServices,
    files: &Files,
) -> Result<Option<(FileTurn, RestorePlan)>, AgentError> {
    let mut reader = TurnReader::new(services.journal.clone(), turn.history.chat);
    if let RestoreTask::Rewind { turn_ids, through_n, numbers } = task {
        let all = reader.read_shown_or_not(*through_n, *numbers).await?;
        let is_cut = |turn: &&FileTurn| turn_ids.contains(&turn.id) && !turn.edits.is_empty();
        let cut: Vec<&FileTurn> = all.iter().filter(is_cut).collect();
        let Some(first) = cut.first() else {
            return Ok(None); // they changed no file after all
        };
        let changes = plan::changes_of(&cut, &all);
        let plan = files.plan(changes).await?;
        return Ok((!plan.is_empty()).then(|| ((*first).clone(), plan)));
    }
    let mut read: Vec<FileTurn> = Vec::new();
    let mut tried = 0;
    let mut before_n = turn.history.before_n;
    loop {
        let page = reader.read_before(before_n).await?;
        read.extend(page.turns);
        let candidates = match task {
            RestoreTask::Redo => turns::redo_candidates(&read),
            RestoreTask::Undo | RestoreTask::ChooseTurns | RestoreTask::Rewind { .. } => {
                turns::undo_candidates(&read)
            }
        };
        for index in candidates.iter().skip(tried) {
            // Newest first: all that came after a turn is read before it is.
            let (target, since) = (&read[*index], &read[..=*index]);
            let plan = files.plan(plan::changes_of(&[target], since)).await?;
            if !plan.is_empty() {
                return Ok(Some((target.clone(), plan)));
            }
            // Its files are as they were before it: there is nothing to take back.
            tried += 1;
        }
        match page.next {
            Some(next) => before_n = next,
            None => return Ok(None),
        }
    }
}

/// Shows what would change, and asks whether it should.
async fn ask(
    command: RestoreCommand,
    target: &FileTurn,
    plan: &RestorePlan,
    events: &dyn EventSink,
) -> Result<RestoreDecision, TurnOver> {
    let options = words::options(plan).into_iter().map(|(decision, label)| {
        let id = match decision {
            RestoreDecision::Restore => RESTORE,
            RestoreDecision::RestoreAll => RESTORE_ALL,
            RestoreDecision::Keep => KEEP,
        };
        json!({"id": id, "label": label})
    });
    let message = words::list(command, target, plan);
    let question = words::question(command);
    let chosen = choose(&message, question, options.collect(), events).await?;
    Ok(match chosen.as_deref() {
        Some(RESTORE) => RestoreDecision::Restore,
        Some(RESTORE_ALL) => RestoreDecision::RestoreAll,
        _ => RestoreDecision::Keep,
    })
}

/// Asks one question; the id of the option that was chosen, if one was.
async fn choose(
    message: &str,
    question: &str,
    options: Vec<Value>,
    events: &dyn EventSink,
) -> Result<Option<String>, TurnOver> {
    let question = json!({
        "kind": "single-select",
        "id": QUESTION,
        "message": question,
        "required": true,
        "options": options,
    });
    let request =
        InputRequest { message: Some(message.to_owned()), url: None, questions: vec![question] };
    let asked = AgentEvent::InputRequested { ask: ASK, request };
    let AgentReply::Answered { response, answers, .. } = events.ask(asked).await? else {
        return Err(TurnOver); // replies are routed by what they answer
    };
    let chosen = answers
        .get(QUESTION)
        .and_then(|answer| answer["value"]["value"].as_str())
        .filter(|_| response == ChatInputResponseKind::Accept);
    Ok(chosen.map(str::to_owned))
}

/// Does what waits for a disk on a thread that may; it is cancelled when nobody waits for it any more.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce(&Cancellation) -> T + Send + 'static,
) -> Result<T, AgentError> {
    let cancellation = Cancellation::default();
    let _cancel_on_drop = CancelOnDrop(cancellation.clone());
    let done = task::spawn_blocking(move || work(&cancellation)).await;
    done.map_err(|died| AgentError {
        error_type: "restoreFailed".to_owned(),
        message: format!("restoring files failed because of a defect: {died}"),
        resumable: true,
    })
}
