//! Somebody at a browser: follows redirects, keeps cookies, and fills in the forms of an authorisation server's own pages.

use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A sign-in needs about six.
const STEPS_MAX: usize = 20;

/// An answer over HTTP.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known == name)?;
        Some(value)
    }
}

#[derive(Default)]
pub(super) struct Browser {
    cookies: BTreeMap<String, String>,
    /// The forms that were filled in.
    pub(super) forms: Vec<String>,
}

impl Browser {
    /// Visits a page and does what it asks for, until it is sent to an address that begins like this; that address.
    pub(super) async fn sign_in(&mut self, page: &str, back: &str) -> String {
        let mut url = page.to_owned();
        for _ in 0..STEPS_MAX {
            let mut answer = self.request("GET", &url, "").await;
            if answer.status == 200 {
                let (action, form) = self.fill_in(&answer.body);
                answer = self.request("POST", &resolve(&url, &action), &form).await;
            }
            let location = answer
                .header("location")
                .unwrap_or_else(|| panic!("{url}: {} {}", answer.status, answer.body));
            url = resolve(&url, location);
            if url.starts_with(back) {
                return url;
            }
        }
        panic!("the pages come to no end; the last is {url}");
    }

    /// Where a form goes, and what is in it.
    fn fill_in(&mut self, page: &str) -> (String, String) {
        let after = |mark: &str| {
            let (_, rest) = page.split_once(mark)?;
            rest.split('"').next().map(str::to_owned)
        };
        let action = after("action=\"").expect("a form goes somewhere");
        let prompt = after("name=\"prompt\" value=\"").expect("a form of this server");
        let form = format!("prompt={prompt}&login=ann&password=anything");
        self.forms.push(prompt);
        (action, form)
    }

    async fn request(&mut self, method: &str, url: &str, form: &str) -> Answer {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = format!("Cookie: {}\r\n", cookies.join("; "));
        let answer = request(method, url, &cookies, form).await;
        let set = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
        for (_, cookie) in set {
            let pair = cookie.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }
}

/// One request of plain HTTP; a form where there is a body.
pub(super) async fn request(method: &str, url: &str, headers: &str, form: &str) -> Answer {
    let rest = url.strip_prefix("http://").expect("plain HTTP");
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    // The older version: the body comes as it is, and ends with the connection.
    let request = format!(
        "{method} /{path} HTTP/1.0\r\nHost: {address}\r\n{headers}Content-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it answers");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    Answer {
        status: status.and_then(|status| status.parse().ok()).expect("a status"),
        headers: headers.collect(),
        body: body.to_owned(),
    }
}

/// An address as it is named on a page.
fn resolve(page: &str, named: &str) -> String {
    if !named.starts_with('/') {
        return named.to_owned();
    }
    let rest = page.strip_prefix("http://").unwrap_or(page);
    let address = rest.split('/').next().unwrap_or_default();
    format!("http://{address}{named}")
}
