//! `createTerminal` and `disposeTerminal`: a terminal for a client, or for a chat (H-270).

use serde_json::{Value, json};
use wire::action::to_value;
use wire::published::commands::{CreateTerminalParams, DisposeTerminalParams};
use wire::published::state::TerminalClaim;
use wire::rpc::code;
use wire::{ChannelUri, Id, RpcError, compat, file_uri};

use super::uri::{self, bad};
use crate::io::{PeerId, TerminalStart};
use crate::load::need_channels;
use crate::pause::{HandlerAnswers, RequestStop};
use crate::state::{Kernel, Step};
use crate::terminal::{self, COLUMNS_MAX, NewTerminal, ROWS_MAX};

/// What a terminal is called that nobody named.
const TITLE: &str = "Terminal";

pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &CreateTerminalParams,
    answers: &HandlerAnswers,
) -> Result<NewTerminal, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    uri::check_names_terminal(kernel, &uri)?;
    let session = match &params.claim {
        TerminalClaim::Client(_) => None,
        TerminalClaim::Session(claim) => Some(uri::parse("claim.session", &claim.session)?),
    };
    let mut wanted = vec![(uri.clone(), 1)];
    wanted.extend(session.iter().map(|session| (session.clone(), 1)));
    let exist = need_channels(kernel, &wanted, answers)?;
    if exist.first() == Some(&true) {
        let message = format!("{uri} exists already");
        return Err(RpcError::new(code::ALREADY_EXISTS, message).into());
    }
    let (claim, chat) = check_claim(kernel, peer, &params.claim, session)?;
    let directory = match (&params.cwd, &chat) {
        (Some(cwd), _) => match file_uri::path_of(cwd) {
            Some(_) => Some(cwd.clone()),
            None => return Err(bad("`cwd` must be a `file:` URI of this machine").into()),
        },
        (None, Some((session, _))) => {
            let state = kernel.session(session).state();
            state.working_directories.as_ref().and_then(|all| all.first()).cloned()
        }
        (None, None) => None,
    };
    let running = |entry: &Value| entry["lifecycle"]["status"] == "running";
    let listed = terminal::listed_terminals(kernel);
    let most = kernel.limits().terminals_max;
    if listed.len() >= most {
        let ended = listed.iter().filter(|entry| !running(entry)).count();
        let message = format!(
            "there are {most} terminals already (terminals_max), {ended} of them over: dispose of one first"
        );
        return Err(RpcError::new(code::INTERNAL_ERROR, message).into());
    }
    uri::check_writable(kernel)?;
    let name = params.name.as_deref().filter(|name| !name.is_empty());
    let size =
        |asked: Option<i64>, default: i64, most: i64| asked.unwrap_or(default).clamp(1, most);
    Ok(NewTerminal {
        uri,
        title: name.unwrap_or(TITLE).to_owned(),
        claim,
        chat,
        start: TerminalStart {
            directory,
            columns: size(params.cols, 80, COLUMNS_MAX),
            rows: size(params.rows, 24, ROWS_MAX),
        },
    })
}

/// A client claims for itself, or makes a terminal for a chat of a session. The claim as it is recorded, and that chat.
fn check_claim(
    kernel: &Kernel,
    peer: PeerId,
    claim: &TerminalClaim,
    session: Option<ChannelUri>,
) -> Result<(Value, Option<(ChannelUri, ChannelUri)>), RpcError> {
    let own = kernel.ready(peer).map(|ready| ready.client_id.as_str());
    match (claim, session) {
        (TerminalClaim::Client(own_claim), _) => {
            if own == Some(own_claim.client_id.as_str()) {
                Ok((to_value(claim), None))
            } else {
                Err(bad("`claim.clientId` must be that of this connection"))
            }
        }
        (TerminalClaim::Session(claim), Some(session)) => {
            let Some(found) = kernel.find_session(&session) else {
                return Err(uri::not_found(kernel, &session));
            };
            let (state, mut claim) = (found.state(), claim.clone());
            if claim.chat == compat::DEFAULT_CHAT {
                claim.chat = state.default_chat.clone().unwrap_or_default();
            }
            if state.chat(&claim.chat).is_none() {
                return Err(bad("`claim.chat` is not a chat of `claim.session`"));
            }
            let chat = uri::parse("claim.chat", &claim.chat)?;
            let claim = to_value(&TerminalClaim::Session(claim));
            Ok((claim, Some((session, chat))))
        }
        (TerminalClaim::Session(_), None) => Err(bad("`claim.session` is missing")),
    }
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, new: NewTerminal) {
    terminal::create(step, new);
    step.respond(peer, id, &Value::Null);
}

/// The terminal, which can be disposed of.
pub(super) fn gather_disposal(
    kernel: &Kernel,
    peer: PeerId,
    params: &DisposeTerminalParams,
    answers: &HandlerAnswers,
) -> Result<ChannelUri, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    need_channels(kernel, &[(uri.clone(), 1)], answers)?;
    let found = kernel.find_plain(&uri);
    let Some(state) = found.and_then(|found| found.state().terminal()) else {
        return Err(uri::not_found(kernel, &uri).into());
    };
    let own = kernel.ready(peer).map(|ready| ready.client_id.as_str());
    // Nothing runs in one that has ended: whoever held it holds nothing.
    let holder = state.holder().filter(|_| state.is_running());
    let holder = holder.filter(|holder| own != Some(holder));
    if holder.is_some_and(|holder| kernel.peers().is_connected(holder)) {
        let message = "another client holds this terminal";
        return Err(RpcError::new(code::PERMISSION_DENIED, message).into());
    }
    uri::check_writable(kernel)?;
    Ok(uri)
}

pub(super) fn apply_disposal(step: &mut Step, peer: PeerId, id: &Id, uri: &ChannelUri) {
    terminal::dispose(step, uri);
    step.respond(peer, id, &json!(null));
}
