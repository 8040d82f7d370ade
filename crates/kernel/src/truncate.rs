//! Truncation: what comes after a turn is forgotten by everyone, the agent included (H-237, H-239, H-240, G-18).

use std::sync::Arc;

use serde_json::Value;
use wire::reduce::Reduced;
use wire::state::{ActiveTurn, TurnList};
use wire::{Action, ChannelUri};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::io::PeerId;
use crate::load::{Flow, Load, Memo, turns_of};
use crate::record::{Answer, Query, Record, TurnPage};
use crate::speak::Sender;

impl Kernel {
    /// The turn that stays last must be known, and lie in memory or in a page that ends with it.
    pub(crate) fn need_cut(&self, uri: &ChannelUri, action: &Action, memo: &Memo) -> Load<()> {
        let Some(turn_id) = action.text("turnId") else {
            return Flow::Ready(());
        };
        let n = match self.find_turn(uri, turn_id, memo) {
            Flow::Ready(Some(n)) => n,
            Flow::Ready(None) => return Flow::Ready(()),
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        match self.page_ending_at(uri, n) {
            Some(query) if memo.find(|asked| *asked == query).is_none() => Flow::Ask(vec![query]),
            Some(_) | None => Flow::Ready(()),
        }
    }

    /// The question for the page that ends with turn `n`, if someone lacks it: memory, or a connection's window.
    fn page_ending_at(&self, uri: &ChannelUri, n: u64) -> Option<Query> {
        let (chat, channel) = (self.chat(uri)?, self.channels.get(uri)?);
        let lacking = chat.first_n() > n || !self.watchers_above(uri, n).is_empty();
        lacking.then_some(Query::Turns {
            chat: channel.id,
            before_n: n + 1,
            turns_max: self.limits.page_turns,
            bytes_max: self.limits.page_bytes as u64,
        })
    }

    /// Connections whose window begins after turn `n`.
    fn watchers_above(&self, uri: &ChannelUri, n: u64) -> Vec<PeerId> {
        let watchers = self.watchers.get(uri).map(Vec::as_slice).unwrap_or(&[]);
        let lacks = |peer: &PeerId| {
            let subscription = self
                .peers
                .get(peer)
                .and_then(|peer| peer.subscriptions.get(uri));
            subscription.is_some_and(|watched| watched.oldest_n.is_some_and(|oldest| oldest > n))
        };
        watchers
            .iter()
            .map(|watcher| watcher.peer)
            .filter(lacks)
            .collect()
    }

    pub(crate) fn validate_truncated(
        &self,
        uri: &ChannelUri,
        action: Action,
        memo: &Memo,
    ) -> Result<Permit, Refusal> {
        let Some(turn_id) = action.present("turnId") else {
            return Ok(Permit(action)); // all of it
        };
        match self.cut(uri, turn_id, memo) {
            Flow::Ready(Some(_)) => Ok(Permit(action)),
            Flow::Failed(failed) => Err(Refusal(failed.to_string())),
            Flow::Ready(None) | Flow::Ask(_) => Err(Refusal::because(
                "`turnId` names no completed turn of this chat",
            )),
        }
    }

    /// The turn that stays last, and the page that ends with it if someone needs one.
    fn cut(
        &self,
        uri: &ChannelUri,
        turn_id: &Value,
        memo: &Memo,
    ) -> Load<Option<(u64, Option<TurnPage>)>> {
        let n = match self.find_turn(uri, turn_id.as_str().unwrap_or(""), memo) {
            Flow::Ready(Some(n)) => n,
            Flow::Ready(None) => return Flow::Ready(None),
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        let Some(query) = self.page_ending_at(uri, n) else {
            return Flow::Ready(Some((n, None)));
        };
        match memo.find(|asked| *asked == query) {
            // A page from before another cut does not end where this one should.
            Some((_, Ok(Answer::Turns(page)))) => match page.turns.last() {
                Some(last) if last.n == n => Flow::Ready(Some((n, Some(page.clone())))),
                Some(_) | None => Flow::Ready(None),
            },
            Some((_, Err(failed))) => Flow::Failed(failed.clone()),
            Some((_, Ok(_))) => Flow::Ready(None),
            None => Flow::Ask(vec![query]),
        }
    }

    pub(crate) fn truncate(
        &mut self,
        uri: &ChannelUri,
        action: Action,
        sender: &Sender,
        memo: &Memo,
    ) {
        let mut kept = None;
        if let Some(turn_id) = action.present("turnId") {
            let Flow::Ready(Some(cut)) = self.cut(uri, turn_id, memo) else {
                return;
            };
            kept = Some(cut);
        }
        self.cut_back(uri, action, Some(sender), kept);
    }

    /// Cuts everything off after the turn that is kept, or everything. The page ends with that turn, for those who lack it.
    pub(crate) fn cut_back(
        &mut self,
        uri: &ChannelUri,
        action: Action,
        sender: Option<&Sender>,
        kept: Option<(u64, Option<TurnPage>)>,
    ) {
        let (mut from_n, mut kept_n) = (0, None);
        if let Some((n, page)) = kept {
            (from_n, kept_n) = (n + 1, Some(n));
            if let Some(page) = page {
                // Whoever lacks the turn gets it before it hears of the cut, or its reducer would not know the turn.
                for peer in self.watchers_above(uri, n) {
                    self.send_page(peer, uri, &page);
                }
                self.keep_page(uri, n, page);
            }
        }
        let dropped = self
            .chat_state(uri)
            .and_then(|state| state.active_turn.as_ref())
            .map(ActiveTurn::as_if_cancelled);
        if self.act(uri, action, sender) == Reduced::Unchanged {
            return;
        }
        self.stop_run(uri);
        self.worker_gone(uri, "the worker's turn was cut off");
        let (at, id) = (self.seq, self.channels.get(uri).map(|channel| channel.id));
        let Some(chat) = self.chat_mut(uri) else {
            return;
        };
        // Everyone saw the turn that ran: its row is hidden like the others, and its id never used again (H-170).
        let dropped = dropped.map(|turn| {
            chat.next_n += 1;
            (chat.next_n - 1, turn)
        });
        let hidden = chat.next_n > from_n;
        chat.ns.truncate(chat.state.turns.len());
        chat.older &= from_n > 0;
        chat.accepted = None;
        chat.begun = None;
        chat.compacted
            .take_if(|compacted| compacted.from_n > from_n);
        chat.cut(at, kept_n);
        let session = chat.session.clone();
        let last = chat.state.turns.last().map(|turn| turn.id.clone());
        let checkpoint = chat
            .checkpoint
            .take_if(|(turn, _)| last.as_ref() != Some(turn));
        if let Some(id) = id {
            if let Some((n, turn)) = dropped {
                self.out.records.push(Record::Turn { chat: id, n, turn });
            }
            if hidden {
                self.out.records.push(Record::HideTurns {
                    chat: id,
                    from_n,
                    at,
                });
            }
            if let Some((turn_id, _)) = checkpoint {
                self.out.records.push(Record::Checkpoint {
                    chat: id,
                    turn_id,
                    data: None,
                });
            }
        }
        self.touch_modified(&session);
        self.chat_followed(uri);
    }

    /// Puts a page that ends with turn `n` before what is in memory. What lies between is about to be cut off.
    fn keep_page(&mut self, uri: &ChannelUri, n: u64, page: TurnPage) {
        let Some(chat) = self.chat_mut(uri).filter(|chat| chat.first_n() > n) else {
            return;
        };
        let older = page.older;
        let (ns, mut turns) = turns_of(page);
        turns.extend(chat.state.turns.as_slice().iter().cloned());
        chat.ns.splice(0..0, ns);
        chat.older = older;
        Arc::make_mut(&mut chat.state).turns = Arc::new(TurnList::new(turns));
        self.undo.touch(uri);
    }
}
