//! How large a batch is, and whether it is housekeeping: what decides by which connection it goes and how long it may take there.
//!
//! Promises: a size is measured, not guessed, wherever a record can be large.
//! Must not know: connections, how a record becomes statements.

use kernel::{Batch, DocumentPiece, MessageRecord, ModelCallRecord, Record, Rendered};

/// Names, numbers and whatever else is short in a record.
const SMALL: usize = 256;

/// About what a batch sends to the server. Heads are encoded for it: it is asked once for each batch.
pub(super) fn sent_bytes(batch: &Batch) -> usize {
    batch.records.iter().map(sent_by).sum()
}

/// What of it counts towards what a space may record in a second: what becomes longer with it. Heads and the pieces of requests to
/// models are written again and again, and a space that has large ones is not to wait for that.
pub(super) fn recorded_bytes(batch: &Batch) -> usize {
    let sizes = batch.records.iter().map(|record| match record {
        Record::Action { envelope, .. } => envelope.len(),
        Record::Turn { turn, .. } => turn.json.len(),
        _ => SMALL,
    });
    sizes.sum()
}

/// Whether it removes what is old: many rows at once, in statements that may take seconds each.
pub(super) fn is_housekeeping(batch: &Batch) -> bool {
    let mut records = batch.records.iter();
    records.any(|record| matches!(record, Record::Sweep { .. } | Record::Trim { .. }))
}

fn sent_by(record: &Record) -> usize {
    match record {
        Record::Action { envelope, .. } => envelope.len(),
        Record::Turn { turn, .. } => turn.json.len(),
        Record::Channel(channel) => SMALL + channel.private.len() + channel.head.encode().len(),
        Record::Message(message) => SMALL + message_bytes(message),
        Record::Frozen(frozen) => SMALL + frozen.json.len(),
        Record::Lowered(lowered) => SMALL + lowered.blocks.len() + lowered.diagnostics.len(),
        Record::ModelOutput(output) => SMALL + output.json.len(),
        Record::FileChanges(changes) => SMALL + changes.json.len(),
        Record::ModelCall(call) => SMALL + call_bytes(call),
        Record::ModelCallEnd(end) => SMALL + end.json.len(),
        Record::Render(rendered) => SMALL + render_bytes(rendered),
        Record::Summary(summary) => SMALL + summary.json.len(),
        Record::Checkpoint { data, .. } => SMALL + data.as_ref().map_or(0, |data| data.len()),
        Record::MessageStarted { .. }
        | Record::MessageGone { .. }
        | Record::Fork { .. }
        | Record::HideTurns { .. }
        | Record::Dispose { .. }
        | Record::Reference { .. }
        | Record::PartReference { .. }
        | Record::SummaryGone { .. }
        | Record::Client(_)
        | Record::ClientGone { .. }
        | Record::Floor { .. }
        | Record::FloorGone { .. }
        | Record::Trim { .. }
        | Record::Sweep { .. } => SMALL,
    }
}

fn message_bytes(message: &MessageRecord) -> usize {
    let parts = message.parts.iter().map(|part| SMALL + part.json.len());
    message.metadata.len() + parts.sum::<usize>()
}

fn call_bytes(call: &ModelCallRecord) -> usize {
    let pieces = call.body.iter().chain(&call.details);
    let sizes = pieces.map(|piece| match piece {
        DocumentPiece::Short(bytes) => bytes.len(),
        DocumentPiece::Shared { bytes, .. } => SMALL + bytes.len(),
        // The body itself lies elsewhere already.
        DocumentPiece::Body { .. } => SMALL,
    });
    sizes.sum()
}

fn render_bytes(rendered: &Rendered) -> usize {
    let before = rendered.before.iter().map(|section| section.content.len());
    let rewritten = rendered.rewritten.values().map(String::len);
    before.chain(rewritten).sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kernel::{ChannelId, Seq};
    use wire::{Digest, Timestamp};

    use super::*;

    const LARGE: usize = 1 << 20;

    fn batch(record: Record) -> Batch {
        let (seq, records) = (Seq(1), vec![record]);
        Batch { seq, records }
    }

    #[test]
    fn what_is_large_in_a_record_counts() {
        let bytes = Bytes::from(vec![b'x'; LARGE]);
        let checkpoint = Record::Checkpoint {
            chat: ChannelId(1),
            turn_id: "t".to_owned(),
            data: Some(bytes.clone()),
        };
        let piece = DocumentPiece::Shared { digest: Digest::new([1; 32]), bytes: bytes.clone() };
        let call = Record::ModelCall(Box::new(ModelCallRecord {
            chat: ChannelId(1),
            key: 1,
            turn_id: "t".to_owned(),
            at: Timestamp(1),
            purpose: "turn".to_owned(),
            round: 0,
            api: "scripted".to_owned(),
            model: "scripted".to_owned(),
            body_bytes: 1,
            body_digest: Digest::new([2; 32]),
            body: vec![piece],
            details: Vec::new(),
            calls_max: 10,
            bytes_max: 10,
        }));
        let message = Record::Message(MessageRecord {
            id: "msg_1".to_owned(),
            session: ChannelId(1),
            chat: ChannelId(2),
            turn_id: None,
            metadata: Bytes::new(),
            parts: vec![kernel::PartRecord {
                id: "prt_1".to_owned(),
                kind: "text".to_owned(),
                json: bytes.clone(),
            }],
            at: Timestamp(1),
        });
        let mut channel = crate::journal::contract::chat(1, "a");
        if let Record::Channel(channel) = &mut channel {
            channel.private = bytes;
        }
        for record in [checkpoint, call, message, channel] {
            let batch = batch(record);
            assert!(sent_bytes(&batch) >= LARGE, "{batch:?}");
            assert!(recorded_bytes(&batch) < LARGE, "{batch:?}");
        }
    }

    #[test]
    fn the_head_of_a_channel_counts() {
        let channel = crate::journal::contract::chat(1, "a");
        let Record::Channel(record) = &channel else {
            panic!("{channel:?}");
        };
        let head = record.head.encode().len();
        assert_eq!(sent_bytes(&batch(channel.clone())), SMALL + record.private.len() + head);
    }

    #[test]
    fn what_removes_many_rows_is_housekeeping() {
        let sweep = Record::Sweep {
            disposed_before: Timestamp(1),
            clients_before: Timestamp(1),
            clients_max: 1,
        };
        let trim = Record::Trim { through: Seq(1) };
        assert!(is_housekeeping(&batch(sweep)) && is_housekeeping(&batch(trim)));
        assert!(!is_housekeeping(&Batch::default()));
    }
}
