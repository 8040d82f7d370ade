//! How often a large text is copied while steps handle it: counted by an allocator, in blocks that could hold it.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use serde_json::{Value, json};
use wire::{ActionKind, Id, Incoming, Timestamp};

use crate::fixture_tests::KernelFixture;
use crate::io::{Effect, Input, Output, PeerId, TurnRun};
use crate::limits::EmbedLimits;
use crate::received::Received;
use crate::record::Record;
use crate::role::Role;

const TEXT_BYTES: usize = 1_000_000;

/// Who holds a text that starts a turn: its action, the state of its chat, its part, and the metadata of its row.
const HOLDERS: usize = 4;

/// What it is encoded for: the envelope, the head of its chat, the row of its part, and that of the message.
const ENCODINGS: usize = 4;

/// A text is copied once for each holder, and into each buffer, which then grows once.
const COPIES_MAX: usize = HOLDERS + 2 * ENCODINGS;

/// A result that is stored outside of state is copied once, for the action that is checked.
const RESULT_COPIES_MAX: usize = 1;

struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    /// Blocks of the text's size that this thread allocated.
    static LARGE_BLOCKS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system's allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= TEXT_BYTES {
            LARGE_BLOCKS.with(|blocks| blocks.set(blocks.get() + 1));
        }
        // SAFETY: the caller keeps to what the trait asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is from `alloc`, which is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

/// A peer that may send to the fixture's chat.
fn connect(fixture: &mut KernelFixture) -> PeerId {
    let peer = PeerId(7);
    let role = Role::Owner;
    fixture.kernel.step(Input::Connected { peer, role }, Timestamp(2_000));
    let params = json!({
        "channel": "ahp-root://", "clientId": "ann", "protocolVersions": ["1.0.0"],
        "initialSubscriptions": [fixture.chat.as_str()],
    });
    let request =
        Incoming::Request { id: Id::Number(1.into()), method: "initialize".to_owned(), params };
    let output = receive(fixture, peer, request);
    let reads = output.effects.iter().any(|effect| matches!(effect, Effect::Read { .. }));
    assert!(!reads, "{:?}", output.effects);
    peer
}

fn receive(fixture: &mut KernelFixture, peer: PeerId, message: Incoming) -> Output {
    let inline = EmbedLimits::from(fixture.kernel.limits());
    let received = Received::new(message, 100, inline);
    let output = fixture.kernel.step(Input::Received { peer, received }, Timestamp(3_000));
    fixture.kernel.committed();
    output
}

fn dispatch(fixture: &KernelFixture, seq: i64, action: Value) -> Incoming {
    Incoming::Notification {
        method: "dispatchAction".to_owned(),
        params: json!({"channel": fixture.chat.as_str(), "clientSeq": seq, "action": action}),
    }
}

fn started_turn(output: &Output) -> &TurnRun {
    let mut effects = output.effects.iter();
    let turn = effects.find_map(|effect| match effect {
        Effect::RunTurn(turn) => Some(turn),
        _ => None,
    });
    turn.unwrap()
}

fn start(text: &str) -> Value {
    let message = json!({"text": text, "origin": {"kind": "user"}});
    json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z", "message": message})
}

#[test]
fn a_large_text_is_copied_a_small_number_of_times() {
    let mut fixture = KernelFixture::new();
    let peer = connect(&mut fixture);
    let message = dispatch(&fixture, 1, start(&"x".repeat(TEXT_BYTES)));
    let before = LARGE_BLOCKS.get();
    let output = receive(&mut fixture, peer, message);
    let copies = LARGE_BLOCKS.get() - before;
    assert_eq!(started_turn(&output).message["text"].as_str().map(str::len), Some(TEXT_BYTES));
    assert!((1..=COPIES_MAX).contains(&copies), "{copies} copies");
}

#[test]
fn an_agent_gets_what_the_rows_of_its_message_hold() {
    let mut fixture = KernelFixture::new();
    let peer = connect(&mut fixture);
    let message = dispatch(&fixture, 1, start("hello"));
    let output = receive(&mut fixture, peer, message);
    let composed = started_turn(&output).composed.as_ref().unwrap();
    let mut records = output.records.iter();
    let rows = records.find_map(|record| match record {
        Record::Message(message) => Some(&message.parts),
        _ => None,
    });
    let row = &rows.unwrap()[0];
    let part: Value = serde_json::from_slice(&row.json).unwrap();
    assert_eq!(composed.parts.len(), 1);
    assert_eq!(composed.parts[0].id, row.id);
    assert_eq!(composed.parts[0].part.to_value(), part);
    // It is gone from memory: whoever goes on with the turn reads the rows.
    let chat = fixture.kernel.chat(&fixture.chat);
    let left = chat.private().current_submission.as_ref();
    assert!(left.is_none_or(|left| left.composed.is_none()));
}

/// The names of the bodies that the host is given to store.
fn stored(output: &Output) -> Input {
    let mut effects = output.effects.iter();
    let asked = effects.find_map(|effect| match effect {
        Effect::StoreBodies { ticket, bodies } => Some((*ticket, bodies)),
        _ => None,
    });
    let (ticket, bodies) = asked.unwrap();
    let names = bodies.iter().map(|body| {
        let digest = wire::Digest::new([7; 32]);
        (body.pointer.clone(), digest)
    });
    let stored = Ok(names.collect());
    Input::BodiesStored { ticket, stored }
}

#[test]
fn the_result_of_a_client_is_detached_once() {
    let mut fixture = KernelFixture::new();
    let peer = connect(&mut fixture);
    fixture.start_turn("t");
    let call = json!({"turnId": "t", "toolCallId": "c", "toolName": "look", "displayName": "Look",
        "contributor": {"kind": "client", "clientId": "ann"}});
    fixture.act(ActionKind::ChatToolCallStart, call);
    let ready = json!({"turnId": "t", "toolCallId": "c", "invocationMessage": "Look", "confirmed": "not-needed"});
    fixture.act(ActionKind::ChatToolCallReady, ready);
    let content = json!([{"type": "text", "text": "x".repeat(TEXT_BYTES)}]);
    let result = json!({"success": true, "pastTenseMessage": "Looked", "content": content});
    let action = json!({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "c", "result": result});
    let message = dispatch(&fixture, 1, action);

    let before = LARGE_BLOCKS.get();
    let paused = receive(&mut fixture, peer, message);
    let first = LARGE_BLOCKS.get() - before;
    assert!((1..=RESULT_COPIES_MAX).contains(&first), "{first} copies");
    let stored = stored(&paused);
    let before = LARGE_BLOCKS.get();
    let output = fixture.kernel.step(stored, Timestamp(4_000));
    assert_eq!(LARGE_BLOCKS.get() - before, 0, "the second time nothing is");
    let mut records = output.records.iter();
    let is_recorded = |record: &Record| match record {
        Record::Action { envelope, .. } => {
            let envelope = String::from_utf8_lossy(envelope);
            let name = format!("\"uri\":\"{}\"", wire::Digest::new([7; 32]).uri());
            envelope.contains("chat/toolCallComplete") && envelope.contains(&name)
        }
        _ => false,
    };
    assert!(records.any(is_recorded), "{:?}", output.records);
}
