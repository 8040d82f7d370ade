//! The directories that a session and its chats work in (H-114, H-128, H-146, G-57).
//!
//! A chat without directories of its own works in all of its session's, whatever those become. What a session loses its chats
//! lose, too. Whether a directory may be worked in is found out when it is opened (G-23): a name is recorded as it is.

use serde_json::{Value, json};
use wire::action::SessionAction;
use wire::file_uri;
use wire::state::SessionState;
use wire::{Action, ActionKind, ChannelUri};

use crate::background_task::BackgroundTask;
use crate::channels::Chat;
use crate::customization;
use crate::io::AgentFacts;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::state::{Kernel, Step};

/// What an agent lets clients do with directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectoryRule {
    /// There is one, and it stays.
    One,
    /// Several, all alike.
    Peers,
    /// Several, of which the first stays.
    FixedFirst,
    /// Several, of which the first can be replaced and not removed.
    ReplaceableFirst,
}

impl DirectoryRule {
    pub(crate) fn of(agent: Option<&AgentFacts>) -> Self {
        let capability = agent.and_then(|agent| {
            let several = agent.info.pointer("/capabilities/multipleWorkingDirectories");
            several.filter(|several| several.is_object())
        });
        let Some(capability) = capability else { return Self::One };
        let has = |flag: &str| capability.get(flag) == Some(&Value::Bool(true));
        match (has("primaryReplacement"), has("immutablePrimary")) {
            (true, _) => Self::ReplaceableFirst,
            (false, true) => Self::FixedFirst,
            (false, false) => Self::Peers,
        }
    }

    pub(crate) fn takes_several(self) -> bool {
        self != Self::One
    }
}

/// The directories of a new session that a client wants; only the first counts where there is one (H-114).
pub(crate) fn check_wanted(rule: DirectoryRule, wanted: &[String]) -> Result<Vec<String>, Refusal> {
    let most = if rule.takes_several() { wanted.len() } else { 1 };
    let mut directories: Vec<String> = Vec::new();
    for directory in wanted.iter().take(most) {
        check_name(directory)?;
        if !directories.contains(directory) {
            directories.push(directory.clone());
        }
    }
    Ok(directories)
}

/// What a new chat without directories of its own has: none are named where those of its session can change.
pub(crate) fn inherited(kernel: &Kernel, session: &SessionState) -> Option<Vec<String>> {
    if DirectoryRule::of(kernel.find_agent(&session.provider)).takes_several() {
        None
    } else {
        session.working_directories.clone()
    }
}

/// May a client change the directories of a session like this?
pub(crate) fn check_session(
    rule: DirectoryRule,
    session: &SessionState,
    verb: SessionAction,
    action: &Action,
    limits: &Limits,
) -> Result<(), Refusal> {
    if !rule.takes_several() {
        return Err(only_one());
    }
    let directory = action.text("directory").unwrap_or_default();
    let known = session.working_directories.as_deref().unwrap_or(&[]);
    let is_first = known.first().is_some_and(|first| first == directory);
    match verb {
        SessionAction::WorkingDirectorySet => {
            check_name(directory)?;
            let most = limits.working_directories_max;
            if known.len() >= most && !known.iter().any(|known| known == directory) {
                Err(Refusal(format!(
                    "a session has at most {most} working directories (working_directories_max)"
                )))
            } else {
                Ok(())
            }
        }
        SessionAction::WorkingDirectoryRemoved => match rule {
            DirectoryRule::FixedFirst | DirectoryRule::ReplaceableFirst if is_first => {
                Err(Refusal::because("the first working directory of this agent cannot be removed"))
            }
            _ => Ok(()),
        },
        SessionAction::WorkingDirectoryReplaced => {
            check_name(action.text("replacement").unwrap_or_default())?;
            if !known.iter().any(|known| known == directory) {
                return Err(Refusal::because(
                    "`directory` is none of the session's working directories",
                ));
            }
            match rule {
                DirectoryRule::FixedFirst | DirectoryRule::Peers if is_first => {
                    Err(Refusal::because(
                        "the first working directory of this agent cannot be replaced",
                    ))
                }
                _ => Ok(()),
            }
        }
        other => {
            debug_assert!(false, "{other:?} does not change directories");
            Ok(())
        }
    }
}

/// May a client have a chat work in this directory, or not in it?
pub(crate) fn check_chat(
    kernel: &Kernel,
    chat: &Chat,
    action: &Action,
    adds: bool,
) -> Result<(), Refusal> {
    let session = kernel.session(chat.session()).state();
    if !DirectoryRule::of(kernel.find_agent(&session.provider)).takes_several() {
        return Err(only_one());
    }
    let directory = action.text("directory").unwrap_or_default();
    let mut known = session.working_directories.iter().flatten();
    if !adds || known.any(|known| known == directory) {
        Ok(())
    } else {
        // H-146
        Err(Refusal::because(
            "`directory` is none of the session's working directories; add it there first",
        ))
    }
}

/// The directories of a session changed: its chats follow, and what lies in them is looked for.
pub(crate) fn follow_session(
    step: &mut Step,
    session: &ChannelUri,
    verb: SessionAction,
    action: &Action,
) {
    let directory = action.text("directory").unwrap_or_default();
    if verb != SessionAction::WorkingDirectorySet {
        let replacement = action.text("replacement");
        let chats = step.session(session).state().chats.iter();
        // Most chats work wherever their session does.
        let own: Vec<ChannelUri> = chats
            .filter(|chat| {
                let own = chat.extra.get("workingDirectories").and_then(Value::as_array);
                own.is_some_and(|own| own.iter().any(|own| own == directory))
            })
            .filter_map(|chat| ChannelUri::parse(&chat.resource).ok())
            .collect();
        for chat in own {
            step.start_task(BackgroundTask::LoseDirectory {
                chat,
                directory: directory.to_owned(),
                replacement: replacement.map(str::to_owned),
            });
        }
    }
    customization::survey(step, session);
}

/// A chat's session does not work in a directory any more.
pub(crate) fn lose(step: &mut Step, chat: &ChannelUri, directory: &str, replacement: Option<&str>) {
    let session = step.session_of(chat).state();
    let has = |directory: &str| {
        let mut known = session.working_directories.iter().flatten();
        known.any(|known| known == directory)
    };
    let (is_back, is_replaced) = (has(directory), replacement.filter(|new| has(new)));
    let is_replaced = is_replaced.map(str::to_owned);
    if is_back {
        return; // somebody added it again meanwhile
    }
    let fields = json!({"directory": directory});
    step.act_as_host(chat, ActionKind::ChatWorkingDirectoryRemoved, fields);
    if let Some(replacement) = is_replaced {
        let fields = json!({"directory": replacement});
        step.act_as_host(chat, ActionKind::ChatWorkingDirectorySet, fields);
    }
}

fn check_name(directory: &str) -> Result<(), Refusal> {
    match file_uri::path_of(directory) {
        Some(_) => Ok(()),
        None => Err(Refusal::because("a working directory is an absolute `file:` URI")),
    }
}

fn only_one() -> Refusal {
    Refusal::because("this agent does not take more than one working directory")
}
