//! One connection to the model server: requests in, answers out, one after the other.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::answer::{Answer, Framing, Pieces, Step};
use super::{CapturedRequest, Script};

pub(super) async fn serve(socket: TcpStream, number: usize, script: Arc<Script>) {
    let _ = socket.set_nodelay(true);
    let (reading, mut writer) = socket.into_split();
    let mut reader = Reader { socket: reading, bytes: Vec::new(), connection: number };
    while let Ok(Some(request)) = reader.request().await {
        let answer = script.take(request);
        let written = tokio::select! {
            written = write(&answer, &mut writer) => written,
            () = reader.until_closed() => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        match written {
            Ok(Afterwards::Open) => {}
            Ok(Afterwards::Close) => return,
            Err(_) => {
                script.abandon();
                return;
            }
        }
    }
}

struct Reader {
    socket: OwnedReadHalf,
    bytes: Vec<u8>,
    connection: usize,
}

impl Reader {
    /// The next request, or none if the connection is closed.
    async fn request(&mut self) -> io::Result<Option<CapturedRequest>> {
        let end = loop {
            if let Some(end) = self.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if self.socket.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..end + 4);
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
        let mut request = CapturedRequest {
            connection: self.connection,
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            headers: lines.filter_map(header).collect(),
            body: Vec::new(),
        };
        let length =
            request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while self.bytes.len() < length {
            if self.socket.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
        request.body = self.bytes.drain(..length).collect();
        Ok(Some(request))
    }

    /// What comes meanwhile is the next request.
    async fn until_closed(&mut self) {
        while !matches!(self.socket.read_buf(&mut self.bytes).await, Ok(0) | Err(_)) {}
    }
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_lowercase(), value.trim().to_owned()))
}

/// What becomes of the connection.
enum Afterwards {
    Open,
    Close,
}

async fn write(answer: &Answer, socket: &mut OwnedWriteHalf) -> io::Result<Afterwards> {
    if let Some(gate) = &answer.begins_after {
        gate.pass().await;
    }
    let steps = answer.steps();
    let framing = match answer.framing {
        Framing::NoResponse => return Ok(Afterwards::Close),
        Framing::Chunked => "transfer-encoding: chunked".to_owned(),
        Framing::UntilClose => "connection: close".to_owned(),
        Framing::Length => format!("content-length: {}", length(&steps)),
    };
    let mut head = format!("HTTP/1.1 {} Scripted\r\n{framing}\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes()).await?;
    for step in steps {
        match step {
            Step::Writes(bytes) => write_piece(answer, &bytes, socket).await?,
            Step::Waits(gate) => gate.pass().await,
            Step::Cuts => return Ok(Afterwards::Close),
            Step::KeepsAlive(gate) => {
                let opened = gate.pass();
                tokio::pin!(opened);
                // Often enough for any limit; that it is done at all is what matters.
                let every = std::time::Duration::from_millis(20);
                while tokio::time::timeout(every, &mut opened).await.is_err() {
                    write_piece(answer, b": still busy\n\n", socket).await?;
                }
            }
            Step::WritesForever(bytes) => loop {
                write_piece(answer, &bytes, socket).await?;
                tokio::task::yield_now().await;
            },
        }
    }
    if answer.framing == Framing::Chunked {
        socket.write_all(b"0\r\n\r\n").await?;
    }
    Ok(match answer.framing {
        Framing::Chunked | Framing::Length => Afterwards::Open,
        Framing::UntilClose | Framing::NoResponse => Afterwards::Close,
    })
}

fn length(steps: &[Step]) -> usize {
    let lengths = steps.iter().map(|step| match step {
        Step::Writes(bytes) => bytes.len(),
        Step::Waits(_) | Step::Cuts | Step::WritesForever(_) | Step::KeepsAlive(_) => 0,
    });
    lengths.sum()
}

async fn write_piece(answer: &Answer, bytes: &[u8], socket: &mut OwnedWriteHalf) -> io::Result<()> {
    let size = match answer.pieces {
        Pieces::AsWritten => bytes.len().max(1),
        Pieces::Bytes => 1,
    };
    for piece in bytes.chunks(size) {
        match answer.framing {
            Framing::Chunked => {
                let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
                framed.extend_from_slice(piece);
                framed.extend_from_slice(b"\r\n");
                socket.write_all(&framed).await?;
            }
            Framing::Length | Framing::UntilClose | Framing::NoResponse => {
                socket.write_all(piece).await?
            }
        }
    }
    Ok(())
}
