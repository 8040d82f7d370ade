//! What was really written, and whether what was done had its record first.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Batch, ChannelId, Record};
use serde_json::Value;

/// Follows every batch that reached the journal.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The live channel of a URI.
    channels: BTreeMap<String, ChannelId>,
    /// Chats with an open turn.
    open: BTreeMap<ChannelId, String>,
    /// How often a turn was started or resumed in a chat, and how often an agent was.
    starts: BTreeMap<ChannelId, u64>,
    runs: BTreeMap<ChannelId, u64>,
    /// Client actions that were recorded, by client and its own number.
    pub origins: BTreeSet<(String, i64)>,
    pub seq: u64,
    pub violations: Vec<String>,
}

impl Ledger {
    pub fn written(&mut self, batch: &Batch) {
        for record in &batch.records {
            match record {
                Record::Channel(channel) => {
                    self.channels.insert(channel.uri.to_string(), channel.id);
                }
                Record::Action {
                    seq,
                    channel,
                    envelope,
                } => self.action(seq.0, *channel, envelope),
                Record::Dispose { channel, .. } => {
                    self.open.remove(channel);
                }
                _ => {}
            }
        }
        if batch.seq.0 < self.seq {
            self.violations.push(format!(
                "the journal's seq goes back from {} to {}",
                self.seq, batch.seq.0
            )); // H-062
        }
        self.seq = self.seq.max(batch.seq.0);
    }

    fn action(&mut self, seq: u64, channel: ChannelId, envelope: &[u8]) {
        if seq <= self.seq {
            self.violations
                .push(format!("seq {seq} is recorded after {}", self.seq)); // H-061
        }
        self.seq = self.seq.max(seq);
        let envelope: Value = serde_json::from_slice(envelope).expect("an envelope is JSON");
        if let (Some(client), Some(number)) = (
            envelope["origin"]["clientId"].as_str(),
            envelope["origin"]["clientSeq"].as_i64(),
        ) && !self.origins.insert((client.to_owned(), number))
        {
            self.violations.push(format!("recorded twice: {envelope}"));
        }
        let turn = envelope["action"]["turnId"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        match envelope["action"]["type"].as_str().unwrap_or("") {
            "chat/turnStarted" | "chat/turnResume" => {
                *self.starts.entry(channel).or_default() += 1;
                if let Some(running) = self.open.insert(channel, turn) {
                    self.violations
                        .push(format!("a turn starts while {running} runs: {envelope}")); // H-170
                }
            }
            "chat/turnComplete" | "chat/turnCancelled" | "chat/error" => {
                let running = self.open.remove(&channel);
                if running.as_ref() != Some(&turn) {
                    self.violations
                        .push(format!("a turn ends that does not run: {envelope}")); // H-174
                }
            }
            _ => {}
        }
    }

    /// An agent is being started: is the turn it works on in the journal?
    pub fn runs(&mut self, chat: &str) {
        let id = self.channels.get(chat).copied().unwrap_or_default();
        let runs = self.runs.entry(id).or_default();
        *runs += 1;
        if *runs > self.starts.get(&id).copied().unwrap_or(0) {
            self.violations
                .push(format!("an agent runs in {chat} without a recorded turn"));
        }
    }
}
