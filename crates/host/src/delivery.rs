//! Hands the frames of a commit to the connections they go to.
//!
//! Promises: every connection gets its frames in step order, all of a commit at once; frames in a row with the same
//! recipients are handed over as one item.
//! Must not know: what the frames mean, when they may be sent.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use kernel::{Frame, OutgoingFrame, PeerId, Recipient, Recipients};

use crate::net::{Link, LinkItem, TextRun, WrittenBy};

/// Capacity for items that stays with a connection between commits.
const ITEMS_CAPACITY: usize = 64;

/// Up to so many connections of a commit are written to here, one after the other, if what they get is small: that takes less
/// than waking their tasks, and they have it sooner. More of them would keep the kernel from its next batch.
const DIRECT_PEERS_MAX: usize = 4;

/// A connection, and what the current commit has for it.
struct LinkedPeer {
    link: Arc<Link>,
    items: Vec<(LinkItem, u32)>,
}

/// Peers are numbered by the host one after the other, so their numbers need no further hashing.
type PeerHasher = BuildHasherDefault<PeerNumber>;

#[derive(Default)]
struct PeerNumber(u64);

impl Hasher for PeerNumber {
    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(false, "a peer's number is one integer");
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The table takes its bucket from the low bits and its tag from the high ones.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// All connections.
#[derive(Default)]
pub(crate) struct Delivery {
    connections: HashMap<PeerId, LinkedPeer, PeerHasher>,
    /// The connections that the current commit has something for.
    addressed: Vec<PeerId>,
    open_run: Option<OpenRun>,
}

/// Texts in a row with the same recipients.
struct OpenRun {
    recipients: Arc<[Recipient]>,
    /// How long the first of them waited.
    waited_ms: u32,
    texts: TextRun,
}

impl Delivery {
    pub(crate) fn add(&mut self, peer: PeerId, link: Arc<Link>) {
        let items = Vec::new();
        self.connections.insert(peer, LinkedPeer { link, items });
    }

    pub(crate) fn remove(&mut self, peer: PeerId) {
        self.connections.remove(&peer);
        if self.connections.is_empty() {
            // With its room: there may be thousands of kernels at rest.
            *self = Self::default();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(crate) fn link(&self, peer: PeerId) -> Option<&Link> {
        let connection = self.connections.get(&peer)?;
        Some(&connection.link)
    }

    /// Takes a frame that is committed; what caused it has waited for `waited_ms`.
    pub(crate) fn put(&mut self, outgoing: OutgoingFrame, waited_ms: u32) {
        match outgoing {
            OutgoingFrame {
                recipients: Recipients::Many(recipients),
                frame: Frame::Text(text),
            } if TextRun::takes(&text) => {
                let open = self.open_run.as_ref();
                let joins = open.is_some_and(|open| {
                    Arc::ptr_eq(&open.recipients, &recipients) && !open.texts.is_full()
                });
                if !joins {
                    self.close_run();
                }
                let open = self.open_run.get_or_insert_with(|| OpenRun {
                    recipients,
                    waited_ms,
                    texts: TextRun::default(),
                });
                open.texts.add(text);
            }
            OutgoingFrame { recipients, frame } => {
                self.close_run();
                let recipients = recipients.as_slice();
                self.address(recipients, waited_ms, &LinkItem::Frame(frame));
            }
        }
    }

    /// Hands over everything that was put: one lock and one wake for each connection.
    pub(crate) fn hand_over(&mut self) {
        self.close_run();
        let by = if self.addressed.len() <= DIRECT_PEERS_MAX {
            WrittenBy::Pusher
        } else {
            WrittenBy::Writer
        };
        for peer in self.addressed.drain(..) {
            if let Some(connection) = self.connections.get_mut(&peer) {
                connection.link.push_all(connection.items.drain(..), by);
                connection.items.shrink_to(ITEMS_CAPACITY);
            }
        }
    }

    /// Closes every connection behind what it was given.
    pub(crate) fn close_all(&self, code: u16, reason: &str) {
        for LinkedPeer { link, .. } in self.connections.values() {
            link.close(code, reason);
        }
    }

    fn close_run(&mut self) {
        if let Some(run) = self.open_run.take() {
            self.address(&run.recipients, run.waited_ms, &run.texts.into_item());
        }
    }

    fn address(&mut self, recipients: &[Recipient], waited_ms: u32, item: &LinkItem) {
        for to in recipients {
            let Some(connection) = self.connections.get_mut(&to.peer) else {
                continue; // it disconnected since the step
            };
            if connection.items.is_empty() {
                self.addressed.push(to.peer);
            }
            // What is left of the window; too little to be worth another timer means now.
            let left_ms = to.window_ms.saturating_sub(waited_ms);
            let worth_it = left_ms * 2 >= to.window_ms;
            let window_ms = if worth_it { left_ms } else { 0 };
            connection.items.push((item.clone(), window_ms));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::Bytes;

    use super::*;

    fn text(text: &str) -> Frame {
        Frame::Text(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[tokio::test]
    async fn everybody_gets_all_frames_in_order_and_those_in_a_row_together() {
        let mut delivery = Delivery::default();
        let mut outboxes = Vec::new();
        for peer in [1, 2] {
            let (link, outbox) = Link::detached(1_000, 1_000_000);
            delivery.add(PeerId(peer), Arc::new(link));
            outboxes.push(outbox);
        }
        let to = |peer| Recipient { peer: PeerId(peer), window_ms: 0 };
        // The third has disconnected.
        let both: Arc<[Recipient]> = Arc::from([to(1), to(2), to(3)]);
        let mut put = |frame: &str, recipients| {
            let frame = text(frame);
            delivery.put(OutgoingFrame { recipients, frame }, 0);
        };
        put("a", Recipients::Many(Arc::clone(&both)));
        put("b", Recipients::Many(Arc::clone(&both)));
        put("only 2", Recipients::One(to(2)));
        put("c", Recipients::Many(Arc::clone(&both)));
        put(&"d".repeat(100_000), Recipients::Many(both));
        delivery.hand_over();
        for (outbox, expected) in
            outboxes.iter().zip([vec!["a+b", "c", "d"], vec!["a+b", "only 2", "c", "d"]])
        {
            let (mut items, mut timer) = (Vec::new(), None);
            poll_fn(|context| outbox.poll_take(context, &mut items, &mut timer)).await;
            let read = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let read = |item: &LinkItem| match item {
                LinkItem::Frame(frame) => {
                    read(&frame.to_bytes()).replace(&"d".repeat(100_000), "d")
                }
                LinkItem::Run(run) => {
                    let texts = run.texts().iter().map(|text| read(text));
                    texts.collect::<Vec<_>>().join("+")
                }
            };
            assert_eq!(items.iter().map(read).collect::<Vec<_>>(), expected);
        }
    }
}
