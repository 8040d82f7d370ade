//! A line between a browser and a host that has a round trip and a width, for requests and for sockets alike.
//!
//! Browsers can slow requests down by themselves, but not sockets, and they add nothing for connecting. Here a connection takes a
//! round trip before anything passes, everything arrives half a round trip after it was sent, and all connections share the width.
//! Promises: bytes arrive whole and in order; what passes is noted in the order in which the host got it.
//! Must not know: what passes, but for the first line of a request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// About what a packet of TCP holds: more at once would make others wait longer than a line does.
const PIECE: usize = 1_448;
/// Pieces of a connection that are on their way: more than a second of 4 Mbit/s.
const PIECES_MAX: usize = 512;

/// The line; it is cut when it is dropped.
pub struct SlowLine {
    /// Where the browser connects.
    pub address: SocketAddr,
    passed: Arc<Mutex<Vec<String>>>,
    cuts: watch::Sender<u32>,
    accepting: JoinHandle<()>,
}

/// One direction for all connections: when it has sent what it was given.
struct Direction {
    free_at: Mutex<Instant>,
    bytes_per_second: f64,
}

#[derive(Clone)]
struct Ends {
    host: SocketAddr,
    round_trip: Duration,
    to_host: Arc<Direction>,
    to_browser: Arc<Direction>,
    passed: Arc<Mutex<Vec<String>>>,
}

impl SlowLine {
    /// To the host at this origin.
    pub async fn to(origin: &str, round_trip: Duration, bits_per_second: u32) -> Result<Self> {
        let host = origin
            .trim_start_matches("http://")
            .parse()
            .with_context(|| format!("{origin} is no address"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let direction = || {
            Arc::new(Direction {
                free_at: Mutex::new(Instant::now()),
                bytes_per_second: f64::from(bits_per_second) / 8.0,
            })
        };
        let passed: Arc<Mutex<Vec<String>>> = Arc::default();
        let ends = Ends {
            host,
            round_trip,
            to_host: direction(),
            to_browser: direction(),
            passed: Arc::clone(&passed),
        };
        let (cuts, cut) = watch::channel(0);
        let accepting = tokio::spawn(accept(listener, ends, cut));
        Ok(Self { address, passed, cuts, accepting })
    }

    /// Ends all connections: the next visit has to connect.
    pub fn end_connections(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The addresses that the host was asked for until now, in that order.
    pub fn passed(&self) -> Vec<String> {
        let passed = self.passed.lock();
        passed.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for SlowLine {
    fn drop(&mut self) {
        self.accepting.abort();
        self.end_connections();
    }
}

impl Direction {
    /// When these bytes have left, after everything that was given before.
    fn send(&self, bytes: usize) -> Instant {
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(Instant::now()) + takes;
        *free_at
    }
}

async fn accept(listener: TcpListener, ends: Ends, cut: watch::Receiver<u32>) {
    while let Ok((browser, _)) = listener.accept().await {
        let (ends, mut cut) = (ends.clone(), cut.clone());
        cut.mark_unchanged();
        tokio::spawn(async move {
            tokio::select! {
                passed = pass(browser, ends) => {
                    if let Err(error) = passed {
                        eprintln!("the slow line: {error:#}"); // the test fails by what the page does without it
                    }
                }
                _cut = cut.changed() => {}
            }
        });
    }
}

async fn pass(browser: TcpStream, ends: Ends) -> Result<()> {
    let connected_at = Instant::now() + ends.round_trip;
    browser.set_nodelay(true)?;
    let host = TcpStream::connect(ends.host).await?;
    host.set_nodelay(true)?;
    let (from_browser, to_browser) = browser.into_split();
    let (from_host, to_host) = host.into_split();
    let half = ends.round_trip / 2;
    let note = |piece: &[u8]| {
        if let Some(address) = requested(piece) {
            let mut passed = ends.passed.lock().unwrap_or_else(PoisonError::into_inner);
            passed.push(address);
        }
    };
    tokio::try_join!(
        carry(from_browser, to_host, &ends.to_host, connected_at, half, note),
        carry(from_host, to_browser, &ends.to_browser, connected_at, half, |_| {}),
    )?;
    Ok(())
}

/// The address in the first line of a request; of a piece that begins with none, nothing.
fn requested(piece: &[u8]) -> Option<String> {
    let line = piece.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once(' ')?;
    Some(rest.strip_suffix(" HTTP/1.1")?.to_owned())
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: &Direction,
    connected_at: Instant,
    half: Duration,
    mut note: impl FnMut(&[u8]),
) -> Result<()> {
    let (give, mut take) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    let read = async move {
        let mut piece = vec![0; PIECE];
        loop {
            let length = from.read(&mut piece).await?;
            sleep_until(connected_at).await;
            let arrives = direction.send(length) + half;
            if length == 0 || give.send((arrives, piece[..length].to_vec())).await.is_err() {
                return anyhow::Ok(());
            }
        }
    };
    let write = async move {
        while let Some((arrives, piece)) = take.recv().await {
            sleep_until(arrives).await;
            note(&piece);
            to.write_all(&piece).await?;
        }
        to.shutdown().await?;
        anyhow::Ok(())
    };
    tokio::try_join!(read, write)?;
    Ok(())
}
