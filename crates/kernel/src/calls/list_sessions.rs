//! `listSessions`: newest first, page by page, from the journal's index (H-119).

use serde_json::{Value, json};
use wire::published::commands::ListSessionsParams;
use wire::{Generation, Object, Timestamp, compat};

use super::uri;
use crate::io::PeerId;
use crate::journal_query::{Answer, Query};
use crate::pause::{HandlerAnswers, RequestStop};
use crate::record::{ChannelId, SummaryRecord};
use crate::state::Kernel;

/// How many sessions are listed for a client that cannot ask for a second page.
const WHOLE_LIST_MAX: u32 = 10_000;

/// The `ListSessionsResult`.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &ListSessionsParams,
    answers: &HandlerAnswers,
) -> Result<Value, RequestStop> {
    let most = kernel.limits().list_page_max;
    let generation = kernel.ready(peer).map(|ready| ready.generation);
    let limit = match params.limit {
        // They have no cursor: what is not in this answer they never see.
        None if generation <= Some(Generation::V0_5_0) => WHOLE_LIST_MAX,
        None => most,
        Some(limit) if limit > 0 => u32::try_from(limit).unwrap_or(most).min(most),
        Some(_) => return Err(uri::bad("`limit` must be above 0").into()),
    };
    let after = match params.cursor.as_deref() {
        None => None,
        Some(cursor) => Some(parse_cursor(cursor).ok_or_else(|| uri::bad("unknown `cursor`"))?),
    };
    // One more than asked for tells whether there is a next page.
    let limit_and_next = limit.saturating_add(1);
    let answer = answers.read(Query::Sessions { after, limit: limit_and_next })?;
    let Answer::Sessions(rows) = answer else {
        unreachable!("answers fit their queries");
    };
    let page = &rows[..rows.len().min(limit as usize)];
    let items: Vec<Value> = page.iter().filter_map(|row| list_item(kernel, peer, row)).collect();
    let mut result = json!({"items": items});
    if let (true, Some(last)) = (rows.len() > page.len(), page.last()) {
        result["nextCursor"] = json!(format!("{}.{}", last.modified.0, last.session.0));
    }
    Ok(result)
}

/// A row as it is now: what changed since it was read was already sent, and must not be taken back.
fn list_item(kernel: &Kernel, peer: PeerId, row: &SummaryRecord) -> Option<Value> {
    let channels = kernel.channels();
    if channels.is_disposed(row.session) {
        return None;
    }
    let live =
        channels.find_session(&row.uri).filter(|_| channels.id_of(&row.uri) == Some(row.session));
    let is_empty = live.map_or(row.empty, |session| session.is_empty());
    let live = live.map(|session| session.published().clone());
    let stored = || serde_json::from_slice::<Object>(&row.json).ok();
    let mut summary = live.filter(|summary| !summary.is_empty()).or_else(stored)?;
    if is_empty {
        // It was announced for a draft that is gone: it stays in the list, and clients may leave it out (G-28).
        summary.insert("_meta".to_owned(), json!({"x-empty": true}));
    }
    if let Some(ready) = kernel.ready(peer) {
        compat::down_summary(ready.generation, &mut summary);
    }
    Some(Value::Object(summary))
}

fn parse_cursor(text: &str) -> Option<(Timestamp, ChannelId)> {
    let (modified, session) = text.split_once('.')?;
    Some((Timestamp(modified.parse().ok()?), ChannelId(session.parse().ok()?)))
}
