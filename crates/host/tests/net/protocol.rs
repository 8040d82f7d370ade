//! The WebSocket protocol as clients see it.

use host::ServerLimits;
use kernel::Input;
use tokio::io::AsyncWriteExt;

use crate::support::{Client, Host, masked, notification, text};

fn small() -> ServerLimits {
    ServerLimits { frame_in_bytes: 1_000, json_depth_max: 8, ..ServerLimits::default() }
}

#[tokio::test]
async fn texts_binaries_and_fragments_are_messages() {
    let mut host = Host::start(small()).await;
    let (mut client, peer, _link) = host.client().await;
    client.notify("text").await;
    client.frame(0x82, notification("binary")).await;
    let whole = notification("fragments");
    client.frame(0x01, &whole[..10]).await;
    client.frame(0x89, b"between").await;
    client.frame(0x00, &whole[10..20]).await;
    client.frame(0x80, &whole[20..]).await;
    assert_eq!(host.receive().await, "text");
    assert_eq!(host.receive().await, "binary");
    match host.input().await {
        Input::Received { peer: from, received } => {
            assert_eq!((from, received.bytes), (peer, whole.len()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(client.read().await, (0x8A, b"between".to_vec()));
}

#[tokio::test]
async fn an_invalid_message_is_answered_and_the_socket_stays_open() {
    let mut host = Host::start(small()).await;
    let (mut client, _, _link) = host.client().await;
    client.frame(0x81, "{").await;
    client.frame(0x81, "[[[[[[[[[]]]]]]]]]").await;
    client.notify("after").await;
    for expected in [-32700, -32600] {
        match host.input().await {
            Input::Malformed { malformed, .. } => assert_eq!(malformed.error.code, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(host.receive().await, "after");
}

#[tokio::test]
async fn faults_have_their_close_codes() {
    let mut host = Host::start(small()).await;
    for (bytes, code) in [
        (vec![0x81, 0x02, b'{', b'}'], 1002),
        (masked(0xC1, b"{}"), 1002),
        (masked(0x83, b"{}"), 1002),
        (masked(0x09, b""), 1002),
        (masked(0x80, b"{}"), 1002),
        (masked(0x89, &[0; 126]), 1002),
        (masked(0x88, b"\x03"), 1002),
        (masked(0x81, b"\"\xFF\""), 1007),
        (masked(0x81, &[b' '; 1_001]), 1009),
        ([masked(0x01, &[b' '; 600]), masked(0x80, &[b' '; 600])].concat(), 1009),
    ] {
        let (mut client, peer, _link) = host.client().await;
        client.bytes(&bytes).await;
        host.receive_gone(peer).await;
        assert_eq!(client.read_close().await.0, code);
    }
}

#[tokio::test]
async fn a_close_is_answered_with_its_code() {
    let mut host = Host::start(small()).await;
    for (close_payload, expected) in
        [(&b"\x03\xE8bye"[..], &b"\x03\xE8"[..]), (b"\x0F\xA1", b"\x0F\xA1"), (b"", b"")]
    {
        let (mut client, peer, _link) = host.client().await;
        client.notify("before").await;
        client.frame(0x88, close_payload).await;
        assert_eq!(host.receive().await, "before");
        host.receive_gone(peer).await;
        assert_eq!(client.read().await, (0x88, expected.to_vec()));
    }
}

#[tokio::test]
async fn the_host_closes_after_its_pushed_frames() {
    let mut host = Host::start(small()).await;
    let (mut client, peer, link) = host.client().await;
    link.push(text("the refusal"), 60_000);
    link.close(1002, "no common version");
    link.push(text("late"), 0);
    assert_eq!(client.read_text().await, "the refusal");
    assert_eq!(client.read_close().await, (1002, "no common version".to_owned()));
    host.receive_gone(peer).await;
}

#[tokio::test]
async fn bytes_behind_the_head_are_the_first_frames() {
    let mut host = Host::start(small()).await;
    let mut socket = tokio::net::TcpStream::connect(host.addr).await.unwrap();
    let head = format!(
        "GET /?tkn={} HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        crate::support::TOKEN,
        crate::support::UPGRADE
    );
    let early = masked(0x81, notification("early").as_bytes());
    socket.write_all(&[head.as_bytes(), &early].concat()).await.unwrap();
    let (_, _link) = host.joined().await;
    assert_eq!(host.receive().await, "early");
}

#[tokio::test]
async fn every_way_out_is_reported_once() {
    let mut host = Host::start(small()).await;
    let (client, lost, _link) = host.client().await;
    drop(client);
    host.receive_gone(lost).await;

    let (_client, dropped, link) = host.client().await;
    drop(link);
    host.receive_gone(dropped).await;

    let (_client, aborted, _link) = host.client().await;
    host.task.abort();
    host.receive_gone(aborted).await;
    assert!(host.inbox.recv().await.is_none(), "and nothing after it");
}

#[tokio::test]
async fn a_stop_closes_with_1001_after_pushed_frames() {
    let mut host = Host::start(small()).await;
    let (mut client, peer, link) = host.client().await;
    link.push(text("last"), 60_000);
    host.stop.cancel();
    assert_eq!(client.read_text().await, "last");
    assert_eq!(client.read_close().await.0, 1001);
    host.receive_gone(peer).await;
    drop(client);
    host.task.await.unwrap();
    assert!(host.inbox.recv().await.is_none());
}

/// Virtual time runs ahead whenever nothing else happens, so a silent client meets its alarms at once.
#[tokio::test(start_paused = true)]
async fn silence_is_pinged_and_then_cut() {
    let mut host = Host::start(small()).await;
    let (mut client, peer, _link) = host.client().await;
    let start = tokio::time::Instant::now();
    assert_eq!(client.read().await, (0x89, vec![]));
    assert_eq!(start.elapsed().as_secs(), 30);
    client.frame(0x8A, "").await;
    assert_eq!(client.read().await, (0x89, vec![]), "a pong buys another period");
    assert_eq!(client.read_close().await.0, 1001);
    host.receive_gone(peer).await;
    assert_eq!(start.elapsed().as_secs(), 90);
}

#[tokio::test]
async fn a_paused_peer_is_not_read_until_it_is_resumed() {
    let mut host = Host::start_with_inbox(small(), 1).await;
    let (mut client, _, link) = host.client().await;
    client.notify("one").await;
    assert_eq!(host.receive().await, "one");
    link.pause();
    client.notify("two").await;
    // A whole other conversation passes meanwhile.
    let (mut other, _, _other_link) = host.client().await;
    other.notify("other").await;
    assert_eq!(host.receive().await, "other");
    link.push(text("still written"), 0);
    assert_eq!(client.read_text().await, "still written");
    assert!(host.inbox.is_empty());
    link.resume();
    assert_eq!(host.receive().await, "two");
}

#[tokio::test]
async fn a_kernel_that_is_behind_stops_reading_but_not_writing() {
    let mut host = Host::start_with_inbox(small(), 1).await;
    let (mut client, _, link) = host.client().await;
    let sent = 50_000;
    let (mut reading, mut writing) = client.socket.into_split();
    let frame = masked(0x81, notification("n").as_bytes());
    let flood = tokio::spawn(async move {
        for _ in 0..sent {
            writing.write_all(&frame).await.unwrap();
        }
        writing
    });
    link.push(text("through"), 0);
    let mut received = [0; 9];
    tokio::io::AsyncReadExt::read_exact(&mut reading, &mut received).await.unwrap();
    assert_eq!(&received[2..], b"through");
    for _ in 0..sent {
        assert_eq!(host.receive().await, "n");
    }
    client = Client { socket: reading.reunite(flood.await.unwrap()).unwrap() };
    client.notify("last").await;
    assert_eq!(host.receive().await, "last");
}

#[tokio::test]
async fn a_large_message_that_does_not_end_gives_its_room_back() {
    let limits = ServerLimits {
        frame_in_bytes: 2 << 20,
        // Room for one message of this size.
        inbound_bytes_max: 2 << 20,
        message_in_timeout_ms: 500,
        ..ServerLimits::default()
    };
    let mut host = Host::start(limits).await;
    let (mut stalled, peer, _stalled_link) = host.client().await;
    let (mut other, _, _other_link) = host.client().await;
    // The first of several fragments; afterwards it shows that it is there, and sends no more of the message.
    stalled.frame(0x01, vec![b' '; 100_000]).await;
    stalled.frame(0x89, b"still here").await;
    let padded = format!("{}{}", " ".repeat(100_000), notification("whole"));
    other.frame(0x81, &padded).await;
    let mut closed = stalled.read().await;
    if closed.0 == 0x8A {
        closed = stalled.read().await;
    }
    let (first, payload) = closed;
    let reason = String::from_utf8_lossy(&payload[2..]);
    assert_eq!((first, &payload[..2]), (0x88, &1008_u16.to_be_bytes()[..]));
    assert!(reason.contains("message_in_timeout_ms"), "{reason}");
    host.receive_gone(peer).await;
    assert_eq!(host.receive().await, "whole");
    // Its message came in time: when that of another, which began later, has taken too long, it is still there.
    let (mut stalled, peer, _stalled_link) = host.client().await;
    stalled.frame(0x01, vec![b' '; 100_000]).await;
    assert_eq!(stalled.read_close().await.0, 1008);
    host.receive_gone(peer).await;
    other.notify("after").await;
    assert_eq!(host.receive().await, "after");
}
