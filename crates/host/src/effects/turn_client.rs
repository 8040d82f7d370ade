//! The client that began a turn, as the owner of files that only it has (H-259).
//!
//! Promises: only that client is asked. A use that it denies is asked for once (`resourceRequest`), and tried once more if it is granted. All
//! of it ends in a bounded time, whatever the client does.
//! Must not know: why a file is used.

use std::time::Duration;

use agent_api::{ClientFileCall, ClientFileFailure, ClientFileReply, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::{ClientAnswer, ClientFileBody, ClientFileError, ClientQuestion};
use wire::rpc::code;

use crate::client_plugins::ClientAsker;

/// How long a use may take, with the question to the client's user.
const TIME_MAX: Duration = Duration::from_secs(180);

/// Files belong to the client that sent the message, which need not be the one that resumed the turn.
const NO_CLIENT: &str = "no client began this turn, or it was resumed; files of a client can be used once the user attaches them to a new message";

/// Entries of a directory that are returned.
const ENTRIES_MAX: usize = 10_000;

/// Uses a file of a client.
pub(super) async fn use_file(
    asker: &ClientAsker,
    client_id: Option<&str>,
    call: ClientFileCall,
) -> Result<ClientFileReply, ClientFileFailure> {
    let Some(client_id) = client_id else { return Err(StoreError(NO_CLIENT.to_owned()).into()) };
    let changes = call.changes();
    let mut was_asked = false;
    let trying = try_twice(asker, client_id, call, &mut was_asked);
    let used =
        tokio::time::timeout(TIME_MAX, trying).await.unwrap_or(Err(ClientFileError::Timeout));
    used.map_err(|why| ClientFileFailure {
        why: describe(why),
        maybe_done: changes && was_asked && is_open(why),
    })
}

/// `was_asked` is whether the client was asked to do it and has not denied that.
async fn try_twice(
    asker: &ClientAsker,
    client_id: &str,
    call: ClientFileCall,
    was_asked: &mut bool,
) -> Result<ClientFileReply, ClientFileError> {
    *was_asked = true;
    match ask(asker, client_id, ClientQuestion::Use(call.clone())).await {
        Err(ClientFileError::Refused(code::PERMISSION_DENIED)) => *was_asked = false,
        outcome => return outcome,
    }
    for permission in permissions_for(&call) {
        ask(asker, client_id, permission).await?;
    }
    *was_asked = true;
    ask(asker, client_id, ClientQuestion::Use(call)).await
}

/// What a client is to allow for a call: no more than that needs.
fn permissions_for(call: &ClientFileCall) -> Vec<ClientQuestion> {
    let (first, second) = call.uris();
    let is_source_kept = matches!(call, ClientFileCall::Copy { .. });
    let first = (first, call.changes() && !is_source_kept);
    let second = second.map(|uri| (uri, call.changes()));
    let needed = [Some(first), second].into_iter().flatten();
    let questions =
        needed.map(|(uri, write)| ClientQuestion::Permission { uri: uri.to_owned(), write });
    questions.collect()
}

async fn ask(
    asker: &ClientAsker,
    client_id: &str,
    question: ClientQuestion,
) -> Result<ClientFileReply, ClientFileError> {
    // The room that the answer takes is held until it is decoded.
    let (answer, _hold) = asker.ask(client_id, question).await;
    match answer? {
        ClientAnswer::Done => Ok(ClientFileReply::Done),
        ClientAnswer::Facts(facts) => Ok(ClientFileReply::Facts(facts)),
        ClientAnswer::Entries(entries) => {
            let entries =
                entries.into_iter().take(ENTRIES_MAX).map(|entry| (entry.name, entry.is_directory));
            Ok(ClientFileReply::Entries(entries.collect()))
        }
        ClientAnswer::Body(ClientFileBody::Text(text)) => {
            Ok(ClientFileReply::Content(text.as_bytes().to_vec()))
        }
        ClientAnswer::Body(ClientFileBody::Base64(data)) => {
            let decoded =
                STANDARD.decode(data.as_bytes()).map_err(|_| ClientFileError::Malformed)?;
            Ok(ClientFileReply::Content(decoded))
        }
    }
}

/// Whether what a client was asked for may have been done although this is its answer.
fn is_open(why: ClientFileError) -> bool {
    match why {
        ClientFileError::Timeout
        | ClientFileError::PeerGone
        | ClientFileError::Malformed
        | ClientFileError::TooLarge(_) => true,
        ClientFileError::Refused(_) | ClientFileError::TooMany(_) | ClientFileError::Busy => false,
    }
}

/// Why it was not done, as a text for the model.
fn describe(why: ClientFileError) -> String {
    let ClientFileError::Refused(refused) = why else { return why.to_string() };
    match refused {
        code::METHOD_NOT_FOUND => "the client cannot do that".to_owned(),
        code::PERMISSION_DENIED => "the client does not allow it".to_owned(),
        code::NOT_FOUND => "there is nothing at that address".to_owned(),
        code::ALREADY_EXISTS => "something is there already".to_owned(),
        code::CONFLICT => "it was changed since; read it again".to_owned(),
        other => format!("the client refused it (error {other})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_needs_to_write_its_destination_alone() {
        let (source, destination) = ("x-y:/a".to_owned(), "x-y:/b".to_owned());
        let needs = |call: ClientFileCall| -> Vec<bool> {
            let asked = permissions_for(&call).into_iter();
            let writes = asked.map(|question| match question {
                ClientQuestion::Permission { write, .. } => write,
                other => panic!("no permission: {other:?}"),
            });
            writes.collect()
        };
        let copy =
            ClientFileCall::Copy { source: source.clone(), destination: destination.clone() };
        assert_eq!(needs(copy), [false, true]);
        let moved = ClientFileCall::Move { source: source.clone(), destination };
        assert_eq!(needs(moved), [true, true]);
        assert_eq!(needs(ClientFileCall::Read { uri: source }), [false]);
    }

    #[test]
    fn only_an_answer_tells_that_nothing_was_done() {
        for (why, expected) in [
            (ClientFileError::Timeout, true),
            (ClientFileError::PeerGone, true),
            (ClientFileError::Malformed, true),
            (ClientFileError::Refused(code::CONFLICT), false),
            (ClientFileError::Busy, false),
        ] {
            assert_eq!(is_open(why), expected, "{why}");
        }
    }
}
