//! The process: reads lines, keeps the turns that run, hands each request to its method.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::log::{self, Received};
use crate::player::Player;
use crate::script::{AnswerRule, CancelManner, Overlap, Script};
use crate::session::Sessions;
use crate::{Options, methods};

#[derive(Debug)]
pub(crate) struct Agent {
    pub options: Options,
    pub script: Script,
    pub connection: Connection,
    pub sessions: Sessions,
    /// The sessions that are open in this process.
    open: Mutex<BTreeMap<String, Arc<OpenSession>>>,
    /// Methods that this process was asked.
    asked: Mutex<BTreeSet<String>>,
}

/// A session that is open, and the prompts that run or wait in it.
#[derive(Debug, Default)]
pub(crate) struct OpenSession {
    /// Held by the prompt that is played.
    pub turn: tokio::sync::Mutex<()>,
    prompts: Mutex<Vec<Ends>>,
    steering: Mutex<Vec<String>>,
    steered: Notify,
}

/// What ends a prompt from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    pub cancel: CancellationToken,
    /// By the next prompt.
    pub abort: CancellationToken,
}

/// Works until the input ends.
pub(crate) async fn serve(options: Options, script: Script) -> Result<()> {
    std::fs::create_dir_all(&options.state).context("cannot make the state directory")?;
    log::append_start(&options.state)?;
    let agent = Arc::new(Agent {
        connection: Connection::new(script.request_ids),
        sessions: Sessions::open(&options.state)?,
        options,
        script,
        open: Mutex::default(),
        asked: Mutex::default(),
    });
    if agent.script.stays {
        // Having a listener is what keeps the signal from ending the process.
        let mut terminations = signal(SignalKind::terminate())?;
        tokio::spawn(async move { while terminations.recv().await.is_some() {} });
    }
    Player::new(&agent, "").play(&agent.script.on_start).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        agent.receive(&line)?;
    }
    if agent.script.stays {
        std::future::pending::<()>().await;
    }
    Ok(())
}

impl Agent {
    fn receive(self: &Arc<Self>, line: &str) -> Result<()> {
        let frame: Value = serde_json::from_str(line).context("the client sent no JSON")?;
        let method = frame["method"].as_str().map(str::to_owned);
        let invalid = match &method {
            Some(method) => methods::check(method, &frame["params"]).err(),
            None => None,
        };
        let received = Received { pid: std::process::id(), frame, invalid };
        log::append(&self.options.state, "received.jsonl", &received)?;
        let frame = received.frame;
        let Some(method) = method else {
            let answer = match frame.get("error") {
                Some(error) => Err(error.clone()),
                None => Ok(frame["result"].clone()),
            };
            self.connection.take_answer(&frame["id"], answer);
            return Ok(());
        };
        lock(&self.asked).insert(method.clone());
        let session = frame["params"]["sessionId"].as_str().unwrap_or_default();
        if method == "session/cancel" {
            self.cancel(session);
        }
        let Some(id) = frame.get("id").cloned() else { return Ok(()) };
        // Known before anything else is read: a cancel may be the next line.
        let ends = (method == "session/prompt").then(|| self.begin(session));
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            let handled = methods::handle(&agent, &method, &id, &frame["params"], ends).await;
            if let Err(error) = handled {
                agent.give_up(&error).await;
            }
        });
        Ok(())
    }

    /// The script is wrong, or nobody reads any more.
    async fn give_up(&self, error: &anyhow::Error) {
        eprintln!("acp-agent: {error:#}");
        if self.script.stays {
            std::future::pending::<()>().await;
        }
        std::process::exit(70);
    }

    fn begin(&self, session: &str) -> Ends {
        let ends = Ends::default();
        if let Some(open) = self.session(session) {
            let mut prompts = lock(&open.prompts);
            if self.script.overlap != Overlap::Queues {
                prompts.iter().for_each(|earlier| earlier.abort.cancel());
            }
            prompts.push(ends.clone());
        }
        ends
    }

    fn cancel(&self, session: &str) {
        // A cancel for a session that is not open has nothing to end.
        let open = self.session(session);
        if let Some(open) = open
            && self.script.cancel != CancelManner::Ignored
        {
            lock(&open.prompts).iter().for_each(|it| it.cancel.cancel());
        }
    }

    pub(crate) fn session(&self, id: &str) -> Option<Arc<OpenSession>> {
        lock(&self.open).get(id).cloned()
    }

    pub(crate) fn open_session(&self, id: &str) {
        lock(&self.open).entry(id.to_owned()).or_default();
    }

    pub(crate) fn close_session(&self, id: &str) -> bool {
        lock(&self.open).remove(id).is_some()
    }

    /// The rule that decides about a request of this method now; it is counted.
    pub(crate) fn rule(&self, method: &str) -> Result<Option<&AnswerRule>> {
        for (index, rule) in self.script.answers.iter().enumerate() {
            let until = rule.until.as_ref();
            let is_over = until.is_some_and(|until| lock(&self.asked).contains(until));
            if rule.method != method || is_over {
                continue;
            }
            let used = log::count(&self.options.state, &format!("answers-{index}"))?;
            if rule.times.is_none_or(|times| used < times) {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }
}

impl OpenSession {
    pub(crate) fn finish(&self) {
        let mut prompts = lock(&self.prompts);
        if !prompts.is_empty() {
            prompts.remove(0);
        }
    }

    /// Takes a steering message; whether a prompt runs that will see it.
    pub(crate) fn steer(&self, text: String) -> bool {
        if lock(&self.prompts).is_empty() {
            return false;
        }
        lock(&self.steering).push(text);
        self.steered.notify_one();
        true
    }

    pub(crate) async fn steering(&self) -> String {
        loop {
            if let Some(text) = lock(&self.steering).pop() {
                return text;
            }
            self.steered.notified().await;
        }
    }
}

/// Waits for a file of the state directory.
pub(crate) async fn await_file(state: &Path, name: &str) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while !state.join(name).exists() {
        looks.tick().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
