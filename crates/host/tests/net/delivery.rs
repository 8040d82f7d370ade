//! Frames on their way out: slow readers, large messages, order.

use std::sync::Arc;

use bytes::Bytes;
use host::ServerLimits;
use kernel::{Frame, Input, LateResponse, LateResponseBody};

use crate::support::{Host, text};

#[tokio::test]
async fn a_reader_that_stops_is_cut_while_another_gets_every_frame() {
    let limits = ServerLimits { outbox_bytes_max: 1 << 20, ..ServerLimits::default() };
    let mut host = Host::start(limits).await;
    let (mut stuck, stuck_peer, stuck_link) = host.client().await;
    let (mut quick, _, quick_link) = host.client().await;
    let body = "x".repeat(60_000);
    let mut count = 0u32;
    // Goes on until the host gives the stuck one up; the quick one receives each frame before the next is pushed.
    let cut = loop {
        let frame = text(format!("{count} {body}"));
        stuck_link.push(frame.clone(), 0);
        quick_link.push(frame, 0);
        assert!(quick.read_text().await.starts_with(&format!("{count} ")));
        count += 1;
        if let Ok(item) = host.inbox.try_recv() {
            break item;
        }
    };
    let cut = cut.into_input();
    assert!(matches!(cut, Some(Input::Disconnected { peer }) if peer == stuck_peer));
    let mut next = 0;
    let close = loop {
        let (first, payload) = stuck.read().await;
        if first == 0x88 {
            break payload;
        }
        assert!(payload.starts_with(format!("{next} ").as_bytes()), "in order, none missing");
        next += 1;
    };
    assert!(next < count);
    assert_eq!(u16::from_be_bytes([close[0], close[1]]), 1008);
    assert_eq!(&close[2..], b"reading too slowly; reconnect");
    quick_link.push(text("still here"), 0);
    assert_eq!(quick.read_text().await, "still here");
}

#[tokio::test]
async fn a_slow_reader_of_one_large_message_is_not_cut_while_it_takes_some_of_it() {
    let limits = ServerLimits { outbox_bytes_max: 1 << 20, ..ServerLimits::default() };
    let mut host = Host::start(limits).await;
    let (mut client, _, link) = host.client().await;
    let large = 16 << 20;
    link.push(text("x".repeat(large)), 0);
    let small = "y".repeat(1_000);
    // Each time it took a fragment, more is there for it.
    let mut taken = 0;
    let mut pushed = 0;
    while taken < large {
        link.push(text(&small), 0);
        pushed += 1;
        let (first, payload) = client.read().await;
        assert_ne!(first, 0x88, "cut after {taken} bytes");
        taken += payload.len();
    }
    assert!(pushed > 8, "in several pieces");
    for _ in 0..pushed {
        assert_eq!(client.read_text().await, small);
    }
}

#[tokio::test]
async fn a_large_message_leaves_in_fragments_and_is_whole_again() {
    let mut host = Host::start(ServerLimits::default()).await;
    let (mut client, _, link) = host.client().await;
    let envelopes: Vec<Bytes> =
        (0..40_000).map(|n| Bytes::from(format!(r#"{{"n":{n},"text":"{n:0>100}"}}"#))).collect();
    let body = LateResponseBody::ReconnectReplay {
        replay: Arc::new(kernel::Replayed::new(envelopes)),
        missing: Vec::new(),
    };
    let frame = Frame::Response(Arc::new(LateResponse {
        id: wire::Id::Null,
        generation: wire::Generation::V1_0,
        body,
    }));
    link.push(frame.clone(), 0);
    link.push(text("next"), 0);
    let mut whole = Vec::new();
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|first| first & 0x80 == 0) {
        let (first, payload) = client.read().await;
        assert!(payload.len() <= ServerLimits::default().fragment_bytes);
        kinds.push(first);
        whole.extend(payload);
    }
    assert!(kinds.len() > 4);
    assert_eq!((kinds[0], kinds[1], kinds[kinds.len() - 1]), (0x01, 0x00, 0x80));
    assert_eq!(whole, frame.to_bytes());
    assert_eq!(client.read_text().await, "next");
}

#[tokio::test]
async fn many_frames_of_all_sizes_and_windows_come_in_order() {
    let mut host =
        Host::start(ServerLimits { fragment_bytes: 5_000, ..ServerLimits::default() }).await;
    let (mut client, _, link) = host.client().await;
    let sizes = [0, 1, 100, 125, 126, 255, 256, 257, 4_000, 5_000, 5_001, 70_000];
    let count = 2_000;
    let make = move |n: usize| format!("{n}:{}", "y".repeat(sizes[n % sizes.len()]));
    let pushes = tokio::spawn(async move {
        for n in 0..count {
            link.push(text(make(n)), if n % 7 == 0 { 0 } else { 3 });
            if n % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        link
    });
    for n in 0..count {
        let mut whole = Vec::new();
        loop {
            let (first, payload) = client.read().await;
            whole.extend(payload);
            if first & 0x80 != 0 {
                break;
            }
        }
        assert!(whole == make(n).as_bytes(), "frame {n}");
    }
    drop(pushes.await.unwrap());
}
