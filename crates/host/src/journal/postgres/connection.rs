//! Connections to PostgreSQL: a bounded number of each purpose, made when needed and made again when they are lost.
//!
//! Promises: there are never more than the pool's size; a connection that was lost, or left in the middle of something, is
//! never used again; statements are prepared once in a connection's life; nobody waits for ever: not for a connection, and not for
//! an answer.
//! Must not know: what is asked.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};
use tokio_util::task::AbortOnDropHandle;

use super::answer_wait::AnswerWait;
use super::connection_trust::ConnectionTrust;
use super::timeline::{TimelineError, TimelineWatch};
use crate::task;

/// Before it is tried again to reach a server that is away.
const RECONNECT_MS: u64 = 50;
/// One attempt to reach the server has so long, also when there is no time left for another.
const CONNECT_WAIT_MIN: Duration = Duration::from_millis(500);

/// How long a connection that others use is waited for: they are served one after the other, each in its bounds.
pub(crate) const TURN_WAIT: Duration = Duration::from_secs(20);

/// A value of a statement.
pub(crate) type BoundValue = Box<dyn ToSql + Sync + Send>;

/// A statement with its values.
pub(crate) struct BoundStatement {
    pub sql: &'static str,
    pub values: Vec<BoundValue>,
}

impl BoundStatement {
    pub(crate) fn new(sql: &'static str, values: Vec<BoundValue>) -> Self {
        Self { sql, values }
    }
}

/// Values for a statement, boxed.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::journal::postgres::connection::BoundValue),*] };
}
pub(crate) use values;

/// A number as PostgreSQL has it. Saturates: `u64::MAX` stands for "no bound" in questions, and no counter gets there.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Connections for one purpose.
pub(crate) struct ConnectionPool {
    config: Config,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connected>>>,
    answer_wait: Duration,
    watch: Arc<TimelineWatch>,
    trust: Arc<ConnectionTrust>,
}

/// A connection, and the statements it knows.
struct Connected {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    generation: u64,
    /// What carries its bytes.
    task: AbortHandle,
}

impl ConnectionPool {
    pub(super) fn new(
        config: Config,
        size: usize,
        answer_wait: Duration,
        watch: &Arc<TimelineWatch>,
        trust: &Arc<ConnectionTrust>,
    ) -> Self {
        Self {
            config,
            permits: Arc::new(Semaphore::new(size)),
            idle: Arc::default(),
            answer_wait,
            watch: Arc::clone(watch),
            trust: Arc::clone(trust),
        }
    }

    /// A connection, new if need be: until then it is tried to reach the server, at least once. Its turn comes within
    /// [`TURN_WAIT`]: that others use it says nothing about the server.
    pub(crate) async fn get(&self, until: Instant) -> Result<PooledConnection, String> {
        let permit = self.permit().await?;
        self.connect_with(permit, until).await
    }

    /// The same for what nobody stands waiting for: `patience` counts from its turn on.
    pub(super) async fn get_in_turn(&self, patience: Duration) -> Result<PooledConnection, String> {
        let permit = self.permit().await?;
        self.connect_with(permit, Instant::now() + patience).await
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, String> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = timeout(TURN_WAIT, permit)
            .await
            .map_err(|_| "all connections are in use".to_owned())?;
        permit.map_err(|closed| closed.to_string())
    }

    async fn connect_with(
        &self,
        permit: OwnedSemaphorePermit,
        until: Instant,
    ) -> Result<PooledConnection, String> {
        loop {
            while let Some(connected) = self.pop_idle() {
                if connected.is_usable(&self.trust) {
                    return Ok(self.pooled(connected, permit));
                }
                connected.task.abort();
            }
            let least = Instant::now() + CONNECT_WAIT_MIN;
            let connecting = timeout_at(until.max(least), self.connect());
            let failed = match connecting.await {
                Ok(Ok(connected)) => return Ok(self.pooled(connected, permit)),
                Ok(Err(why)) => why,
                Err(_) => "the server does not answer".to_owned(),
            };
            if Instant::now() >= until {
                return Err(failed);
            }
            tokio::time::sleep(Duration::from_millis(RECONNECT_MS)).await;
        }
    }

    fn pop_idle(&self) -> Option<Connected> {
        self.idle.lock().pop()
    }

    async fn connect(&self) -> Result<Connected, String> {
        let generation = self.trust.generation();
        let connected = self.config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| describe(&error))?;
        // It ends with its client, or when the server goes: the client's calls fail then. Given up in the middle of the check it
        // would wait for the answer to that.
        let task = task::spawn(async move { drop(connection.await) });
        let task = AbortOnDropHandle::new(task);
        let checked = self.watch.check(client).await;
        // Also if it cannot be used: whoever makes sure of the server may have it.
        let task = task.detach();
        Ok(Connected {
            client: checked.map_err(|why| explain_timeline(why).words())?,
            statements: HashMap::new(),
            generation,
            task: task.abort_handle(),
        })
    }

    fn pooled(&self, connected: Connected, permit: OwnedSemaphorePermit) -> PooledConnection {
        let wait = AnswerWait {
            limit: self.answer_wait,
            generation: connected.generation,
            trust: Arc::clone(&self.trust),
        };
        PooledConnection {
            connected: Some(connected),
            idle: Arc::clone(&self.idle),
            is_busy: false,
            is_waiting: false,
            wait,
            _permit: permit,
        }
    }
}

impl Connected {
    fn is_usable(&self, trust: &ConnectionTrust) -> bool {
        !self.client.is_closed() && trust.is_trusted(self.generation)
    }
}

/// A connection in use; back in its pool when dropped, unless something of it is unfinished.
pub(crate) struct PooledConnection {
    connected: Option<Connected>,
    idle: Arc<Mutex<Vec<Connected>>>,
    /// Between the first and the last statement of something that belongs together.
    is_busy: bool,
    /// A statement was sent whose answer has not come; it stays so if its waiter gave up.
    is_waiting: bool,
    wait: AnswerWait,
    _permit: OwnedSemaphorePermit,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(connected) = self.connected.take() else {
            return; // only this takes it
        };
        let is_left_open = self.is_busy || self.is_waiting;
        if !is_left_open && connected.is_usable(&self.wait.trust) {
            self.idle.lock().push(connected)
        } else {
            // Not by taking leave, which waits for answers: the server rolls back what was begun.
            connected.task.abort()
        }
    }
}

/// Why a statement did not succeed.
#[derive(Debug)]
pub(crate) enum StatementError {
    /// The server refused it; nothing of it is there.
    Refused(Error),
    /// The connection was lost: nobody knows.
    Lost(String),
}

impl From<Error> for StatementError {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(refusal) if !ends_session(refusal) => Self::Refused(error),
            Some(_) | None => Self::Lost(describe(&error)),
        }
    }
}

/// Whether the session is over with this answer: whatever was under way in it may have been done or not.
fn ends_session(refusal: &DbError) -> bool {
    let is_fatal = match refusal.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        // A server before 9.6, or something in between that answers for it: in whatever language it speaks, errors of these
        // words are no others.
        None => matches!(refusal.severity(), "FATAL" | "PANIC"),
    };
    let code = refusal.code().code();
    // 57P: the server is going down. 08: the connection is broken. 40003: the server does not know itself.
    is_fatal || code.starts_with("57P") || code.starts_with("08") || code == "40003"
}

impl StatementError {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Refused(error) => describe(error),
            Self::Lost(why) => why.clone(),
        }
    }

    /// The connection was lost before the answer; or the server ended it, as it took longer than its session allows or as an operator
    /// said so. Nothing of it is there then, but whoever looks it up takes the lease anew, and so ends what may have held it up.
    pub(super) fn is_to_be_looked_up(&self) -> bool {
        matches!(self, Self::Lost(_)) || self.was_cancelled()
    }

    pub(super) fn was_cancelled(&self) -> bool {
        self.code() == "57014"
    }

    /// The five characters that name the kind of error.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Refused(error) => error.code().map_or("", |code| code.code()),
            Self::Lost(_) => "",
        }
    }
}

/// The server's message, which an error shows only through its source.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} ({})", refusal.message(), refusal.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

type StatementRun<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Polls all of them in their order, so that what each sends at its first poll is sent in that order.
async fn join_in_order(mut runs: Vec<StatementRun<'_>>) -> Vec<Result<(), Error>> {
    let mut outcomes: Vec<Option<Result<(), Error>>> = runs.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_waiting = false;
        for (run, outcome) in runs.iter_mut().zip(&mut outcomes) {
            if outcome.is_some() {
                continue; // it is over
            }
            match run.as_mut().poll(context) {
                Poll::Ready(ran) => *outcome = Some(ran),
                Poll::Pending => is_waiting = true,
            }
        }
        if is_waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}

impl PooledConnection {
    fn connected(&mut self) -> Result<&mut Connected, StatementError> {
        let connected = self.connected.as_mut();
        connected.ok_or_else(|| StatementError::Lost("the connection is gone".to_owned()))
    }

    /// Whether nothing is to be expected of it any more: it is closed, or an answer did not come.
    pub(crate) fn is_lost(&self) -> bool {
        let connected = self.connected.as_ref();
        self.is_waiting || connected.is_none_or(|connected| connected.client.is_closed())
    }

    /// How long an answer may take from now on.
    pub(crate) fn limit_answers(&mut self, limit: Duration) {
        self.wait.limit = limit;
    }

    /// The tables are there: which server it is counts from now on.
    pub(super) async fn begin_watch(
        &mut self,
        watch: &TimelineWatch,
    ) -> Result<(), StatementError> {
        watch.begin(&mut self.connected()?.client).await.map_err(explain_timeline)
    }

    /// From now on until [`Self::finish`] the connection is not given to anybody else.
    pub(crate) fn begin(&mut self) {
        self.is_busy = true;
    }

    pub(crate) fn finish(&mut self) {
        self.is_busy = false;
    }

    async fn prepare(&mut self, sql: &'static str) -> Result<(), StatementError> {
        let wait = self.wait.clone();
        let connected = self.connected()?;
        if !connected.statements.contains_key(sql) {
            let preparing = connected.client.prepare(sql);
            let statement = wait.await_answer(preparing).await?;
            connected.statements.insert(sql, statement);
        }
        Ok(())
    }

    /// Notes that an answer is waited for, and that it came; a connection whose answer is still to come is not used again.
    fn note_answer<T>(&mut self, answer: Result<T, StatementError>) -> Result<T, StatementError> {
        self.is_waiting = matches!(answer, Err(StatementError::Lost(_)));
        answer
    }

    pub(crate) async fn query(
        &mut self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StatementError> {
        self.is_waiting = true;
        let asked = self.ask(sql, values).await;
        self.note_answer(asked)
    }

    async fn ask(
        &mut self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StatementError> {
        self.prepare(sql).await?;
        let wait = self.wait.clone();
        let connected = self.connected()?;
        match connected.statements.get(sql) {
            Some(statement) => wait.await_answer(connected.client.query(statement, values)).await,
            None => wait.await_answer(connected.client.query(sql, values)).await,
        }
    }

    /// Something without values, such as `COMMIT`.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), StatementError> {
        self.is_waiting = true;
        let wait = self.wait.clone();
        let ran = match self.connected() {
            Ok(connected) => wait.await_answer(connected.client.batch_execute(sql)).await,
            Err(gone) => Err(gone),
        };
        self.note_answer(ran)
    }

    /// Runs statements in one transaction, all sent before the first is answered. The error is that of the first that failed,
    /// with its place.
    pub(crate) async fn run_together(
        &mut self,
        statements: &[BoundStatement],
    ) -> Result<(), (usize, StatementError)> {
        self.begin();
        self.is_waiting = true;
        let ran = self.ask_together(statements).await;
        // Without an answer it stays begun, and nothing more is to be expected of it.
        self.is_waiting = matches!(ran, Err((_, StatementError::Lost(_))));
        if !self.is_waiting {
            self.finish();
        }
        ran
    }

    async fn ask_together(
        &mut self,
        statements: &[BoundStatement],
    ) -> Result<(), (usize, StatementError)> {
        for (index, bound) in statements.iter().enumerate() {
            self.prepare(bound.sql).await.map_err(|error| (index, error))?;
        }
        let wait = self.wait.clone();
        let connected = self.connected().map_err(|error| (0, error))?;
        let (client, prepared) = (&connected.client, &connected.statements);
        let mut runs: Vec<StatementRun<'_>> = vec![Box::pin(client.batch_execute("BEGIN"))];
        for bound in statements {
            let values: Vec<&(dyn ToSql + Sync)> =
                bound.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            runs.push(Box::pin(async move {
                let ran = match prepared.get(bound.sql) {
                    Some(statement) => client.execute(statement, &values).await,
                    None => client.execute(bound.sql, &values).await,
                };
                ran.map(drop)
            }));
        }
        runs.push(Box::pin(client.batch_execute("COMMIT")));
        let ran = wait.wait_for(join_in_order(runs)).await;
        let mut failed = ran.map_err(|silent| (0, silent))?.into_iter().enumerate();
        match failed.find_map(|(index, ran)| Some((index, ran.err()?))) {
            None => Ok(()),
            // One more than its place: `BEGIN` is before it.
            Some((index, error)) => Err((index.saturating_sub(1), StatementError::from(error))),
        }
    }
}

impl PooledConnection {
    /// A statement that is run seldom and is not kept prepared; how many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, StatementError> {
        self.is_waiting = true;
        let wait = self.wait.clone();
        let ran = match self.connected() {
            Ok(connected) => wait.await_answer(connected.client.execute(sql, values)).await,
            Err(gone) => Err(gone),
        };
        self.note_answer(ran)
    }
}

fn explain_timeline(error: TimelineError) -> StatementError {
    let words = match error {
        TimelineError::Standby => "the server follows another and takes no writes",
        TimelineError::Changing => "the server is another than before, and seqs leap",
        TimelineError::Failed(error) => return error.into(),
    };
    StatementError::Lost(words.to_owned())
}
