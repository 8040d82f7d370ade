//! A blocking client: the driver's own connection, and that of whoever opens chats one after the other.
//!
//! Must not know: which server it talks to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::frames::{Scanner, Seen};
use crate::protocol;

const READ_BYTES: usize = 256 * 1_024;
/// Longer than anything here takes: a server that is silent for so long has failed.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Socket {
    stream: TcpStream,
    scanner: Scanner,
    buffer: Vec<u8>,
}

impl Socket {
    fn connect(address: &str, token: Option<&str>) -> Result<Self> {
        let mut stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.write_all(protocol::upgrade(address, token).as_bytes())?;
        let mut head = Vec::new();
        while protocol::head_end(&head).is_none() {
            let mut byte = [0];
            stream.read_exact(&mut byte).context("no answer to the upgrade")?;
            head.push(byte[0]);
        }
        if !head.starts_with(b"HTTP/1.1 101") {
            bail!("the upgrade was refused: {}", String::from_utf8_lossy(&head));
        }
        Ok(Self { stream, scanner: Scanner::new(usize::MAX), buffer: vec![0; READ_BYTES] })
    }

    /// Connects and introduces itself.
    pub(crate) fn join(address: &str, client_id: &str) -> Result<Self> {
        Self::join_with(address, None, client_id)
    }

    /// The same with a token.
    pub(crate) fn join_with(address: &str, token: Option<&str>, client_id: &str) -> Result<Self> {
        let mut socket = Self::connect(address, token)?;
        socket.send(&protocol::initialize(client_id, &[]))?;
        socket.answer(protocol::HELLO_ID)?;
        Ok(socket)
    }

    pub(crate) fn send(&mut self, text: &str) -> Result<()> {
        Ok(self.stream.write_all(&protocol::frame(text))?)
    }

    /// The result of a request; what else comes meanwhile is dropped.
    pub(crate) fn request(&mut self, id: u32, method: &str, params: &Value) -> Result<Value> {
        self.send(&protocol::request(id, method, params))?;
        self.answer(id)
    }

    pub(crate) fn answer(&mut self, id: u32) -> Result<Value> {
        let mut answer = None;
        self.scanner.set_head_max(usize::MAX);
        let beginning = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        self.read_until(|head, _| {
            if head.starts_with(beginning.as_bytes()) {
                answer = Some(head.to_vec());
            }
            answer.is_some()
        })?;
        let mut answer: Value = serde_json::from_slice(&answer.unwrap_or_default())?;
        if let Some(error) = answer.get("error") {
            bail!("the server answered with an error: {error}");
        }
        Ok(answer["result"].take())
    }

    /// Sends a request with [`protocol::ASK_ID`] and says how large its answer was; the answer is read and discarded.
    pub(crate) fn ask_and_discard(&mut self, text: &str) -> Result<usize> {
        self.send(text)?;
        self.scanner.set_head_max(256);
        let mut size = None;
        let mut failed = false;
        self.read_until(|head, bytes| {
            if head.starts_with(protocol::ANSWERED) {
                size = Some(bytes);
                failed = head[protocol::ANSWERED.len()..].starts_with(br#""error""#);
            }
            size.is_some()
        })?;
        if failed {
            bail!("the server refused what it was asked");
        }
        Ok(size.unwrap_or(0))
    }

    /// All messages that come with the next bytes, at least one.
    pub(crate) fn messages(&mut self) -> Result<Vec<Vec<u8>>> {
        self.scanner.set_head_max(usize::MAX);
        let mut come = Vec::new();
        let (mut pinged, mut closed) = (false, false);
        while come.is_empty() {
            let read = self.stream.read(&mut self.buffer);
            let count = read.context("nothing comes")?;
            self.scanner.feed(&self.buffer[..count], |seen| match seen {
                Seen::Message { head, .. } => come.push(head.to_vec()),
                Seen::Ping => pinged = true,
                Seen::Close => closed = true,
            });
            if std::mem::take(&mut pinged) {
                self.stream.write_all(protocol::PONG)?;
            }
            if count == 0 || closed {
                bail!("the server closed the connection");
            }
        }
        Ok(come)
    }

    /// Takes what has come already, so that the server never finds this reader slow.
    pub(crate) fn drain(&mut self) -> Result<()> {
        self.stream.set_nonblocking(true)?;
        self.scanner.set_head_max(0);
        loop {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => self.scanner.feed(&self.buffer[..count], |_| {}),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.stream.set_nonblocking(false)?)
    }

    fn read_until(&mut self, mut is_it: impl FnMut(&[u8], usize) -> bool) -> Result<()> {
        let (mut done, mut closed, mut pinged) = (false, false, false);
        while !done {
            let count = self.stream.read(&mut self.buffer).context("no answer in time")?;
            self.scanner.feed(&self.buffer[..count], |seen| match seen {
                Seen::Message { head, bytes } => done = done || is_it(head, bytes),
                Seen::Ping => pinged = true,
                Seen::Close => closed = true,
            });
            if std::mem::take(&mut pinged) {
                self.stream.write_all(protocol::PONG)?;
            }
            if (count == 0 || closed) && !done {
                bail!("the server closed the connection");
            }
        }
        Ok(())
    }
}
