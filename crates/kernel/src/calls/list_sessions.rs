//! `listSessions`: newest first, page by page, from the journal's index (H-119).

use serde_json::{Value, json};
use wire::published::commands::ListSessionsParams;
use wire::rpc::code;
use wire::{Id, Object, RpcError, Timestamp, compat};

use crate::Kernel;
use crate::io::PeerId;
use crate::load::{Flow, Memo};
use crate::record::{Answer, ChannelId, Query, SummaryRecord};

impl Kernel {
    pub(crate) fn list_sessions(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &ListSessionsParams,
        memo: &Memo,
    ) -> Flow<()> {
        let most = self.limits.list_page_max;
        let limit = match params.limit {
            None => most,
            Some(limit) if limit > 0 => u32::try_from(limit).unwrap_or(most).min(most),
            Some(_) => {
                return self.answer_error(
                    peer,
                    id,
                    &RpcError::new(code::INVALID_PARAMS, "`limit` must be above 0"),
                );
            }
        };
        let after = match params.cursor.as_deref().map(parse_cursor) {
            None => None,
            Some(Some(after)) => Some(after),
            Some(None) => {
                return self.answer_error(
                    peer,
                    id,
                    &RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"),
                );
            }
        };
        // One more than asked for tells whether there is a next page.
        let query = Query::Sessions {
            after,
            limit: limit.saturating_add(1),
        };
        let rows = match memo.find(|asked| *asked == query) {
            None => return Flow::Ask(vec![query]),
            Some((_, Err(failed))) => return Flow::Failed(failed.clone()),
            Some((_, Ok(Answer::Sessions(rows)))) => rows,
            Some((_, Ok(_))) => return Flow::Ready(()),
        };
        let page = &rows[..rows.len().min(limit as usize)];
        let items: Vec<Value> = page
            .iter()
            .filter_map(|row| self.listed(peer, row))
            .collect();
        let mut result = json!({"items": items});
        if let (true, Some(last)) = (rows.len() > page.len(), page.last()) {
            result["nextCursor"] = json!(format!("{}.{}", last.modified.0, last.session.0));
        }
        self.respond(peer, id, &result);
        Flow::Ready(())
    }

    /// A row as it is now: what changed since it was read was already told, and must not be taken back.
    fn listed(&self, peer: PeerId, row: &SummaryRecord) -> Option<Value> {
        if self.disposed.contains(&row.session) {
            return None;
        }
        let live = self
            .channels
            .get(&row.uri)
            .filter(|channel| channel.id == row.session);
        let live = live
            .and_then(|_| self.session(&row.uri))
            .map(|session| session.published.clone());
        let stored = || serde_json::from_slice::<Object>(&row.json).ok();
        let mut summary = live.filter(|summary| !summary.is_empty()).or_else(stored)?;
        if let Some(ready) = self.ready(peer) {
            compat::down_summary(ready.generation, &mut summary);
        }
        Some(Value::Object(summary))
    }
}

fn parse_cursor(text: &str) -> Option<(Timestamp, ChannelId)> {
    let (modified, session) = text.split_once('.')?;
    Some((
        Timestamp(modified.parse().ok()?),
        ChannelId(session.parse().ok()?),
    ))
}
