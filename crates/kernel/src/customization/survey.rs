//! When the host looks again what there is for a session. What it finds comes back to `publish`.

use wire::ChannelUri;
use wire::state::SessionState;

use crate::client_plugin::{self, offers_of};
use crate::io::{Effect, SurveyRequest};
use crate::state::Step;

/// Where clients may put skills, in a working directory (CU-3).
const WRITABLE: &str = ".agents/skills";

/// Lets the host look what there is for a session now; [`publish`] follows.
pub(crate) fn survey(step: &mut Step, session: &ChannelUri) {
    survey_for(step, session, None);
}

/// The same because of what a client says of itself, or because it came or went, if any plugins of clients are concerned.
pub(crate) fn survey_plugins(step: &mut Step, session: &ChannelUri, said_by: Option<&str>) {
    let in_memory = step.find_session(session);
    // One that is not in memory is looked at when its next turn begins.
    if in_memory.is_some_and(|session| client_plugin::has_any(session.state())) {
        survey_for(step, session, said_by);
    }
}

/// A client is there again: what could not be read of it while it was away is read now.
pub(crate) fn survey_plugins_of(step: &mut Step, client_id: &str) {
    let sessions: Vec<ChannelUri> = step.active_clients().sessions_of(client_id).cloned().collect();
    for session in sessions {
        survey_plugins(step, &session, None);
    }
}

/// An agent says something else of itself: which custom agents its sessions have may depend on it (CU-9). Sessions that nobody
/// looks at are looked at when their next turn begins.
pub(crate) fn survey_sessions_of(step: &mut Step, provider: &str) {
    let sessions = step.channels().sessions_in_memory().into_iter();
    let concerned: Vec<ChannelUri> = sessions
        .filter(|uri| {
            let is_its = step.session(uri).state().provider == provider;
            is_its && !step.peers().watchers(uri).is_empty()
        })
        .collect();
    for session in concerned {
        survey(step, &session);
    }
}

/// A client changed a file: sessions in memory that have something there are looked at again (H-309). Others are when their next turn
/// begins.
pub(crate) fn survey_changed(step: &mut Step, changed: &str) {
    let sessions = step.channels().sessions_in_memory().into_iter();
    let concerned: Vec<ChannelUri> =
        sessions.filter(|uri| holds(step.session(uri).state(), changed)).collect();
    for session in concerned {
        survey(step, &session);
    }
}

/// Whether a file is, holds or lies in something that a session lists, or in the directory that clients may fill.
fn holds(session: &SessionState, changed: &str) -> bool {
    let directories = session.working_directories.iter().flatten();
    let writable = directories.map(|uri| format!("{}/{WRITABLE}", uri.trim_end_matches('/')));
    let listed = session
        .customizations
        .iter()
        .flatten()
        .filter_map(|entry| entry["uri"].as_str().map(str::to_owned));
    let is_below = |below: &[u8], above: &[u8]| {
        let rest = below.strip_prefix(above);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let Some(changed) = wire::file_uri::path_of(changed) else {
        return false; // the host lists files alone
    };
    writable.chain(listed).any(|uri| {
        let path = wire::file_uri::path_of(&uri);
        path.is_some_and(|path| is_below(&changed, &path) || is_below(&path, &changed))
    })
}

fn survey_for(step: &mut Step, session: &ChannelUri, said_by: Option<&str>) {
    let state = step.session(session).state();
    let survey = SurveyRequest {
        session: session.clone(),
        session_id: step.id_of(session),
        provider: state.provider.clone(),
        working_directories: state.working_directories.clone().unwrap_or_default(),
        plugins: offers_of(state),
        said_by: said_by.map(str::to_owned),
    };
    step.effect(Effect::Survey(Box::new(survey)));
}
