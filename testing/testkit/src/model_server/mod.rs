//! A model server with a script: real HTTP on a real socket, real event streams, and every mishap a server can have.
//!
//! Promises: answers go out in the order they were queued, one a request; every request is recorded whole; nothing waits for
//! time to pass, only for a [`Gate`].
//! Must not know: who asks.

mod answer;
mod connection;
mod gate;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use answer::{Answer, Call};
pub use gate::Gate;

/// Long enough for any machine; nothing is awaited that does not come.
const DEADLINE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedRequest {
    /// Requests with the same number came over the same connection.
    pub connection: usize,
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl CapturedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(header, _)| header == name);
        header.map(|(_, value)| value.as_str())
    }

    /// The body, for comparing it whole.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body of a request is JSON")
    }
}

/// Runs until it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    script: Arc<Script>,
    accepting: JoinHandle<()>,
}

/// What the connections of a server share.
#[derive(Default)]
struct Script {
    plan: Mutex<Plan>,
    seen: watch::Sender<Seen>,
}

#[derive(Default)]
struct Plan {
    /// The only key that is accepted; any, or none, if absent.
    key: Option<String>,
    models: Vec<String>,
    /// Answers to `GET /models` that come before the list.
    lists: VecDeque<Answer>,
    answers: VecDeque<Answer>,
    /// Answers for requests whose body holds a text.
    particular: Vec<(String, Answer)>,
    /// Answers whatever is asked, if it is there.
    rule: Option<Rule>,
    /// What is read at other addresses, by path.
    documents: Vec<(String, Answer)>,
}

/// What a server answers to a request.
type Rule = Box<dyn Fn(&CapturedRequest) -> Answer + Send>;

#[derive(Default)]
struct Seen {
    requests: Vec<CapturedRequest>,
    /// How many answers were left before they were over.
    abandoned: usize,
}

impl ModelServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of this machine");
        let address = listener.local_addr().expect("a bound socket has an address");
        let script = Arc::new(Script::default());
        let served = Arc::clone(&script);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            let mut number = 0;
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(connection::serve(socket, number, Arc::clone(&served)));
                number += 1;
            }
        });
        Self { address, script, accepting }
    }

    /// The base URL.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Queues answers: one for each request to come.
    pub fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.plan().answers.extend(answers);
    }

    /// Queues answers for requests whose body holds a text: they are looked at first, and do not disturb the order of
    /// the others.
    pub fn answers_to(&self, text: &str, answers: impl IntoIterator<Item = Answer>) {
        let answers = answers.into_iter().map(|answer| (text.to_owned(), answer));
        self.plan().particular.extend(answers);
    }

    /// Answers every question by a rule from now on, instead of answers that are queued.
    pub fn behaves(&self, rule: impl Fn(&CapturedRequest) -> Answer + Send + 'static) {
        self.plan().rule = Some(Box::new(rule));
    }

    /// What `GET /models` lists.
    pub fn has_models<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        self.plan().models = names.into_iter().map(str::to_owned).collect();
    }

    /// What anybody gets who asks at this path, instead of what would be there.
    pub fn has_document(&self, path: &str, answer: Answer) {
        self.plan().documents.push((path.to_owned(), answer));
    }

    /// Queues answers to `GET /models`; afterwards it lists the models again.
    pub fn answers_lists(&self, answers: impl IntoIterator<Item = Answer>) {
        self.plan().lists.extend(answers);
    }

    /// From now on requests without this key are refused.
    pub fn accepts_key(&self, key: &str) {
        self.plan().key = Some(key.to_owned());
    }

    /// All requests so far, in the order they came.
    pub fn requests(&self) -> Vec<CapturedRequest> {
        self.script.seen.borrow().requests.clone()
    }

    /// The requests, once there are so many.
    pub async fn asked(&self, times: usize) -> Vec<CapturedRequest> {
        self.until("requests", |seen| seen.requests.len() >= times).await;
        self.requests()
    }

    /// Waits until so many answers were left by whoever asked, before they were over.
    pub async fn abandoned(&self, times: usize) {
        self.until("abandoned answers", |seen| seen.abandoned >= times).await;
    }

    /// Answers that were not requested yet.
    pub fn answers_left(&self) -> usize {
        let plan = self.plan();
        plan.answers.len() + plan.particular.len()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let mut seen = self.script.seen.subscribe();
        let waited = tokio::time::timeout(DEADLINE, seen.wait_for(|seen| is_so(seen))).await;
        let in_time = waited.is_ok_and(|seen| seen.is_ok());
        assert!(in_time, "the model server waits for {what} that do not come");
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.script.plan.lock().expect("no holder of the lock panics")
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Script {
    /// Records a request and finds its answer.
    fn take(&self, request: CapturedRequest) -> Answer {
        let answer = self.plan.lock().expect("no holder of the lock panics").answer(&request);
        self.seen.send_modify(|seen| seen.requests.push(request));
        answer
    }

    fn abandon(&self) {
        self.seen.send_modify(|seen| seen.abandoned += 1);
    }
}

impl Plan {
    fn answer(&mut self, request: &CapturedRequest) -> Answer {
        let path = request.path.split('?').next().unwrap_or_default();
        if let Some(key) = &self.key
            && request.header("authorization") != Some(&format!("Bearer {key}"))
        {
            return Answer::error(401, "Incorrect API key provided");
        }
        let mut documents = self.documents.iter();
        if let Some((_, answer)) = documents.find(|(known, _)| known == path) {
            return answer.clone();
        }
        match (request.method.as_str(), path) {
            ("GET", "/v1/models") => match self.lists.pop_front() {
                Some(answer) => answer,
                None => Answer::models(&self.models),
            },
            ("POST", path) if answers_at(path) => {
                if let Some(rule) = &self.rule {
                    return rule(request);
                }
                let body = String::from_utf8_lossy(&request.body);
                let particular = self.particular.iter().position(|(text, _)| body.contains(text));
                let answer = match particular {
                    Some(index) => Some(self.particular.remove(index).1),
                    None => self.answers.pop_front(),
                };
                answer.unwrap_or_else(|| {
                    Answer::error(400, "the script has no answer for this request")
                })
            }
            _ => Answer::error(404, "no such address"),
        }
    }
}

/// Where questions are asked, in any of the wire formats.
fn answers_at(path: &str) -> bool {
    let questions = ["/chat/completions", "/messages", "/responses"];
    let mut bases = questions.iter().filter_map(|end| path.strip_suffix(end));
    bases.any(|base| base == "/v1" || base.starts_with("/openai/"))
        || path.contains("/models/")
            && [":streamGenerateContent", ":streamRawPredict"].iter().any(|end| path.ends_with(end))
}
