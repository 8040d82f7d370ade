//! `fetchTurns`: a page of older turns for one connection, as an action before the answer (H-238, H-240, G-18).

use serde_json::json;
use wire::published::commands::FetchTurnsParams;
use wire::rpc::{self, code};
use wire::{ChannelUri, Id, RpcError};

use crate::Kernel;
use crate::io::PeerId;
use crate::load::{Flow, Load, Memo};
use crate::record::{Answer, ChannelId, Query, TurnPage};

impl Kernel {
    pub(crate) fn fetch_turns(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &FetchTurnsParams,
        memo: &Memo,
    ) -> Flow<()> {
        let uri = match self.parse_channel(&params.channel) {
            Ok(uri) => uri,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        match self.need_channel(&uri, memo) {
            Flow::Ready(_) => {}
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        }
        if uri.is_root() || self.session(&uri).is_some() {
            let error = RpcError::new(code::INVALID_PARAMS, "`channel` must be a chat");
            return self.answer_error(peer, id, &error);
        }
        let (Some(chat), Some(channel)) = (self.chat(&uri), self.channels.get(&uri)) else {
            let error = self.not_found(&uri);
            return self.answer_error(peer, id, &error);
        };
        let chat_id = channel.id;
        let subscription = self
            .peers
            .get(&peer)
            .and_then(|state| state.subscriptions.get(&uri));
        let Some(subscription) = subscription else {
            let error = RpcError::new(
                code::INVALID_PARAMS,
                "subscribe to the chat before fetching its turns",
            );
            return self.answer_error(peer, id, &error);
        };
        let before_n = match params.cursor.as_deref() {
            None => subscription.oldest_n.unwrap_or(chat.next_n),
            Some("newest") => chat.next_n,
            Some(cursor) => match self.turn_before(&uri, chat_id, cursor, memo) {
                Flow::Ready(Some(n)) => n,
                Flow::Ready(None) => {
                    return self.answer_error(
                        peer,
                        id,
                        &RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"),
                    );
                }
                Flow::Ask(queries) => return Flow::Ask(queries),
                Flow::Failed(failed) => return Flow::Failed(failed),
            },
        };
        let query = Query::Turns {
            chat: chat_id,
            before_n,
            turns_max: self.limits.page_turns,
            bytes_max: self.limits.page_bytes as u64,
        };
        let page = match memo.find(|asked| *asked == query) {
            None => return Flow::Ask(vec![query]),
            Some((_, Err(failed))) => return Flow::Failed(failed.clone()),
            Some((_, Ok(Answer::Turns(page)))) => page.clone(),
            Some((_, Ok(_))) => return Flow::Ready(()),
        };
        // A page uses a seq, which must be recorded (G-18).
        if let Some(reason) = self.unwritable() {
            return self.answer_error(peer, id, &RpcError::new(code::INTERNAL_ERROR, reason));
        }
        self.send_page(peer, &uri, &page);
        self.respond(peer, id, &json!({}));
        Flow::Ready(())
    }

    /// A cursor describes itself: `before:<turn id>`.
    fn turn_before(
        &self,
        uri: &ChannelUri,
        chat: ChannelId,
        cursor: &str,
        memo: &Memo,
    ) -> Load<Option<u64>> {
        let Some(turn_id) = cursor.strip_prefix("before:") else {
            return Flow::Ready(None);
        };
        if let Some(chat) = self.chat(uri)
            && let Some(place) = chat.state.turns.position(turn_id)
        {
            return Flow::Ready(chat.ns.get(place).copied());
        }
        let query = Query::FindTurn {
            chat,
            turn_id: turn_id.to_owned(),
        };
        match memo.find(|asked| *asked == query) {
            None => Flow::Ask(vec![query]),
            Some((_, Err(failed))) => Flow::Failed(failed.clone()),
            Some((_, Ok(Answer::FindTurn(found)))) => {
                Flow::Ready(found.filter(|found| found.visible).map(|found| found.n))
            }
            Some((_, Ok(_))) => Flow::Ready(None),
        }
    }

    pub(crate) fn send_page(&mut self, peer: PeerId, uri: &ChannelUri, page: &TurnPage) {
        let Some(first) = page.turns.first() else {
            return;
        };
        let mut json = br#"{"type":"chat/turnsLoaded","turns":["#.to_vec();
        for (index, turn) in page.turns.iter().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            json.extend_from_slice(&turn.json);
        }
        json.push(b']');
        if page.older {
            json.extend_from_slice(br#","turnsNextCursor":"#);
            json.extend_from_slice(&rpc::to_json(&format!("before:{}", first.id)));
        }
        json.push(b'}');
        self.act_for_one(peer, uri, &json);
        let first_n = first.n;
        self.remember_watch(peer, uri);
        let subscription = self
            .peers
            .get_mut(&peer)
            .and_then(|state| state.subscriptions.get_mut(uri));
        if let Some(subscription) = subscription {
            subscription.oldest_n = Some(subscription.oldest_n.map_or(first_n, |n| n.min(first_n)));
        }
    }
}
