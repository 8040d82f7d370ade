//! The way back from the page: a port on loopback that a browser is sent to with a code (RFC 8252), or the address it was sent to,
//! brought by a person whose browser is on another machine.
//!
//! Promises: whatever is not the answer is answered and waited past. Nothing of a request is shown in an answer. Connections that say
//! nothing hold nobody up; they are bounded in number, time and size. A code counts even if its browser does not wait for the answer.
//! If no valid answer came back, the error says what happened to the attempts.
//! Must not know: what a code is redeemed for.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::returned::{ExpectedRedirect, FOREIGN, RedirectAnswer};
use super::{PAGE_MAX, RedirectedAddresses, SignInError};

const REQUEST_BYTES_MAX: usize = 16 << 10;
const REQUEST_MAX: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 16;
const PATH: &str = "/callback";

/// A port that waits for one code.
#[derive(Debug)]
pub(super) struct Redirect {
    uri: String,
    listener: TcpListener,
    brought: mpsc::Receiver<String>,
    bring: RedirectedAddresses,
}

impl Redirect {
    pub(super) async fn listen() -> Result<Self, SignInError> {
        let failed = |error: std::io::Error| SignInError::Port(error.to_string());
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (bring, brought) = mpsc::channel(4);
        Ok(Self { uri: format!("http://{address}{PATH}"), listener, brought, bring })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    pub(super) fn returned_addresses(&self) -> RedirectedAddresses {
        self.bring.clone()
    }

    /// Waits for the code, as long as a person may take.
    pub(super) async fn code(self, expected: ExpectedRedirect) -> Result<String, SignInError> {
        self.code_within(expected, PAGE_MAX).await
    }

    async fn code_within(
        self,
        expected: ExpectedRedirect,
        patience: Duration,
    ) -> Result<String, SignInError> {
        let Self {
            listener,
            mut brought,
            bring: _bring, // so that `brought` goes on when nobody else holds one
            ..
        } = self;
        let expected = Arc::new(expected);
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (found, mut finds) = mpsc::channel(CONNECTIONS_MAX);
        let mut connections: JoinSet<Result<(), String>> = JoinSet::new();
        let mut last_fault = None;
        let too_late = tokio::time::sleep(patience);
        tokio::pin!(too_late);
        let returned = loop {
            tokio::select! {
                returned = finds.recv() => {
                    // `found` is held here.
                    if let Some(returned) = returned {
                        break returned;
                    }
                }
                address = brought.recv() => {
                    let returned = address.map(|address| expected.read(&address));
                    if let Some(returned) = returned.filter(|it| *it != RedirectAnswer::Foreign) {
                        break returned;
                    }
                }
                Some(served) = connections.join_next() => {
                    last_fault = fault_of(served).or(last_fault);
                }
                accepted = accept(&listener, &room) => {
                    let (expected, found) = (Arc::clone(&expected), found.clone());
                    let (stream, permit) = accepted?;
                    connections.spawn(async move {
                        let _permit = permit;
                        serve_in_time(stream, &expected, &found).await
                    });
                }
                () = &mut too_late => return Err(SignInError::TooLate { last_fault }),
            }
        };
        match returned {
            RedirectAnswer::Code(code) => Ok(code),
            RedirectAnswer::Refused(why) => Err(SignInError::Refused(why)),
            RedirectAnswer::Foreign => Err(SignInError::Refused(FOREIGN.to_owned())),
        }
    }
}

/// What went wrong with a connection, for the error of a sign-in that times out.
fn fault_of(served: Result<Result<(), String>, tokio::task::JoinError>) -> Option<String> {
    let fault = match served {
        Ok(Ok(())) => return None,
        Ok(Err(fault)) => fault,
        Err(error) => error.to_string(),
    };
    tracing::debug!(%fault, "a connection to the port of a sign-in failed");
    Some(fault)
}

/// The next connection, once there is room for one.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Result<(TcpStream, tokio::sync::OwnedSemaphorePermit), SignInError> {
    let failed = |why: String| SignInError::Port(why);
    let permit =
        Arc::clone(room).acquire_owned().await.map_err(|error| failed(error.to_string()))?;
    let accepted = listener.accept().await;
    let (stream, _) = accepted.map_err(|error| failed(error.to_string()))?;
    Ok((stream, permit))
}

/// Serves a connection; one that says nothing in time is closed.
async fn serve_in_time(
    stream: TcpStream,
    expected: &ExpectedRedirect,
    found: &mpsc::Sender<RedirectAnswer>,
) -> Result<(), String> {
    match tokio::time::timeout(REQUEST_MAX, serve(stream, expected, found)).await {
        Ok(served) => served.map_err(|error| format!("a browser’s connection broke off: {error}")),
        Err(_) => {
            Err(format!("a connection sent no whole request within {} s", REQUEST_MAX.as_secs()))
        }
    }
}

/// Answers a request, and hands on what it brought once the browser has its answer, or does not want it.
async fn serve(
    mut stream: TcpStream,
    expected: &ExpectedRedirect,
    found: &mpsc::Sender<RedirectAnswer>,
) -> std::io::Result<()> {
    let head = read_head(&mut stream).await?;
    if head.is_empty() {
        return Ok(());
    }
    let target = target_of(&head);
    let returned = match target {
        Some(target) if target.split('?').next() == Some(PATH) => expected.read(target),
        Some(_) => return answer(&mut stream, "404 Not Found", "There is nothing here.").await,
        None => return answer(&mut stream, "400 Bad Request", "This is no request.").await,
    };
    let (status, text) = match &returned {
        RedirectAnswer::Code(_) => ("200 OK", "greenroom has the answer. You can close this page."),
        RedirectAnswer::Refused(_) => {
            ("200 OK", "The sign-in was refused; greenroom says why. You can close this page.")
        }
        RedirectAnswer::Foreign => (
            "400 Bad Request",
            "This is not the answer to the sign-in that greenroom waits for. Nothing was done.",
        ),
    };
    // A code can be used whether or not its browser waits for the answer.
    let answered = answer(&mut stream, status, text).await;
    if returned != RedirectAnswer::Foreign {
        // Nobody waits any more if another answer was first.
        let _ = found.send(returned).await;
    }
    answered
}

/// The whole head of a request; empty if nothing was sent, as by browsers that connect ahead of need.
async fn read_head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut piece = [0; 2_048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= REQUEST_BYTES_MAX {
            return Err(std::io::Error::other("its request is too long"));
        }
        match stream.read(&mut piece).await? {
            0 if head.is_empty() => break,
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
    }
    Ok(head)
}

/// What a GET asks for.
fn target_of(head: &[u8]) -> Option<&str> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET" && target.starts_with('/')).then_some(target)
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) -> std::io::Result<()> {
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>greenroom</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_are_answered() {
        assert_eq!(target_of(b"GET /x?y HTTP/1.1\r\nHost: h\r\n\r\n"), Some("/x?y"));
        assert_eq!(target_of(b"POST /x HTTP/1.1\r\n"), None);
        assert_eq!(target_of(b"\x16\x03\x01"), None);
        assert_eq!(target_of(b""), None);
    }

    fn expected() -> ExpectedRedirect {
        ExpectedRedirect::for_test("s1")
    }

    #[tokio::test]
    async fn what_became_of_those_who_tried_is_told() {
        let redirect = Redirect::listen().await.unwrap();
        let address =
            redirect.uri().strip_prefix("http://").unwrap().strip_suffix(PATH).unwrap().to_owned();
        // The browser is gone before anybody waits for it: what it sent lies in the socket.
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /callback?code=c").await.unwrap();
        stream.shutdown().await.unwrap();
        let waited = redirect.code_within(expected(), Duration::from_secs(3)).await;
        let Err(SignInError::TooLate { last_fault }) = waited else {
            panic!("{waited:?}");
        };
        let fault = last_fault.unwrap();
        assert!(fault.contains("broke off"), "{fault}");
        let error = SignInError::TooLate { last_fault: Some(fault) };
        assert!(error.to_string().contains("broke off"), "{error}");
    }

    #[tokio::test]
    async fn a_code_counts_whether_or_not_its_browser_waits() {
        let redirect = Redirect::listen().await.unwrap();
        let address =
            redirect.uri().strip_prefix("http://").unwrap().strip_suffix(PATH).unwrap().to_owned();
        let waiting = redirect.code_within(expected(), Duration::from_secs(60));
        let browser = async {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let request = b"GET /callback?code=c&state=s1 HTTP/1.1\r\n\r\n";
            stream.write_all(request).await.unwrap();
        };
        let (waited, ()) = tokio::join!(waiting, browser);
        assert_eq!(waited.unwrap(), "c");
    }
}
