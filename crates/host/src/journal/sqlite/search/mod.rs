//! Search over what was said: an index of its own beside the journal, brought up to date whenever somebody searches (ADR 0050).
//!
//! Promises: every text that a listed session shows is found, and nothing else: not what was deleted or cut off. Nothing that is
//! searched for is an error. The journal is only read, whether or not a host serves it; an index that is missing, damaged or
//! of another format is made anew. It may be cut off at any moment.
//! Must not know: who searches.

mod excerpt;
mod sync;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use wire::Timestamp;

use self::excerpt::{CaseFoldedText, cut_excerpt};
use super::read::list::UNLISTED;
use super::{SqliteReader, make_private_file};
use crate::journal::JournalError;

pub use self::excerpt::TextPiece;

const FILE: &str = "search.sqlite";
/// "GRse": distinguishes an index from any other SQLite file.
const APPLICATION_ID: i32 = 0x4752_7365;
/// Raised whenever what is indexed, or how, changes.
const FORMAT: i32 = 1;
/// How long one search waits for another that is indexing.
const BUSY_MS: u64 = 30_000;
/// The index finds words of at least so many characters; shorter ones are looked for in the texts themselves.
const INDEXED_CHARS_MIN: usize = 3;
/// Words of one search.
const WORDS_MAX: usize = 32;

/// Texts are split into runs of three characters, so that parts of words and languages without spaces are found alike.
const SCHEMA: &str = "
CREATE TABLE chat (
    channel INTEGER PRIMARY KEY,
    uri TEXT NOT NULL,
    session INTEGER NOT NULL,
    head_seq INTEGER NOT NULL,
    last_turn TEXT NOT NULL
);
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    chat INTEGER NOT NULL,
    n INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    started_at TEXT NOT NULL
);
CREATE UNIQUE INDEX document_key ON document (chat, n);
CREATE INDEX document_started ON document (started_at);
CREATE VIRTUAL TABLE content USING fts5 (text, tokenize = 'trigram');
INSERT INTO content (content, rank) VALUES ('secure-delete', 1);
";

/// Why nothing could be searched.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the search index {} cannot be used: {reason}", path.display())]
    Index { path: PathBuf, reason: String },
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub session: String,
    pub title: String,
    pub session_modified: Timestamp,
    /// The chat and turn it was said in; none if the title is what was found.
    pub turn: Option<SearchedTurn>,
    /// What stands there, in pieces: those that were searched for are marked.
    pub excerpt: Vec<TextPiece>,
}

/// A turn that holds what was searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedTurn {
    pub chat: String,
    pub id: String,
    pub started_at: String,
}

/// The index of a data directory, and the journal it is made from.
#[derive(Debug)]
pub struct SearchIndex {
    path: PathBuf,
    index: Connection,
    journal: Connection,
}

/// A session of the list.
struct ListedSession {
    uri: String,
    title: String,
    modified: Timestamp,
}

impl SearchIndex {
    /// Opens the index of a data directory; makes it if there is none that can be used.
    pub fn open(dir: &Path) -> Result<Self, SearchError> {
        let SqliteReader { conn: journal } = SqliteReader::open(dir)?;
        let path = dir.join(FILE);
        let index = match open_index(&path, dir) {
            Err(IndexFault::Damaged) => {
                tracing::info!("the search index is damaged or of another format; it is made anew");
                remove(&path).and_then(|()| open_index(&path, dir))
            }
            opened => opened,
        };
        let index = index.map_err(|error| error.explain(&path))?;
        Ok(Self { path, index, journal })
    }

    /// The newest places that hold all of some words, at most so many. Titles come first.
    pub fn search(
        &mut self,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<SearchHit>, SearchError> {
        let found = match self.try_search(words, limit) {
            Err(SearchFailure::Index(IndexFault::Damaged)) => {
                // Some damage shows only when the page is read.
                tracing::info!("the search index is damaged; it is made anew");
                let dir = self.path.parent().unwrap_or(Path::new(".")).to_owned();
                self.index = remove(&self.path)
                    .and_then(|()| open_index(&self.path, &dir))
                    .map_err(|error| error.explain(&self.path))?;
                self.try_search(words, limit)
            }
            found => found,
        };
        found.map_err(|failure| match failure {
            SearchFailure::Journal(error) => SearchError::Journal(error),
            SearchFailure::Index(unusable) => unusable.explain(&self.path),
        })
    }

    fn try_search(
        &mut self,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<SearchHit>, SearchFailure> {
        let words: Vec<CaseFoldedText> = words
            .iter()
            .map(|word| CaseFoldedText::word(word))
            .filter(|word| !word.is_empty())
            .take(WORDS_MAX)
            .collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        // Everything that is read of the journal is of one moment.
        let moment = self.journal.transaction().map_err(SearchFailure::journal)?;
        sync::bring_up_to_date(&mut self.index, &moment)?;
        let sessions = listed_sessions(&moment).map_err(SearchFailure::journal)?;
        let mut hits = title_hits(&sessions, &words);
        hits.truncate(limit);
        text_hits(&self.index, &sessions, &words, limit, &mut hits)?;
        Ok(hits)
    }
}

fn title_hits(sessions: &HashMap<i64, ListedSession>, words: &[CaseFoldedText]) -> Vec<SearchHit> {
    let mut hits: Vec<SearchHit> = sessions
        .values()
        .filter_map(|session| {
            let excerpt = cut_excerpt(&session.title, words)?;
            Some(session.hit(None, excerpt))
        })
        .collect();
    hits.sort_by(|a, b| {
        b.session_modified.cmp(&a.session_modified).then_with(|| a.session.cmp(&b.session))
    });
    hits
}

/// Adds the turns that hold the words, the newest first.
fn text_hits(
    index: &Connection,
    sessions: &HashMap<i64, ListedSession>,
    words: &[CaseFoldedText],
    limit: usize,
    hits: &mut Vec<SearchHit>,
) -> Result<(), IndexFault> {
    let indexed: Vec<String> = words
        .iter()
        .filter(|word| word.chars() >= INDEXED_CHARS_MIN)
        .map(CaseFoldedText::quoted)
        .collect();
    let found = if indexed.is_empty() {
        "SELECT id FROM document ORDER BY started_at DESC, id DESC"
    } else {
        "SELECT document.id FROM content JOIN document ON document.id = content.rowid
             WHERE content MATCH ?1 ORDER BY document.started_at DESC, document.id DESC"
    };
    let mut found = index.prepare(found)?;
    let mut rows =
        if indexed.is_empty() { found.query([])? } else { found.query([indexed.join(" ")])? };
    let mut seen = HashSet::new();
    while hits.len() < limit
        && let Some(row) = rows.next()?
    {
        let Some((session, turn, text)) = read_document(index, row.get(0)?)? else {
            continue; // another search brought the index up to date meanwhile
        };
        let Some(session) = sessions.get(&session) else {
            continue; // in no list
        };
        // A fork shows the same turn once more.
        if seen.contains(&(session.uri.clone(), turn.id.clone())) {
            continue;
        }
        if let Some(excerpt) = cut_excerpt(&text, words) {
            seen.insert((session.uri.clone(), turn.id.clone()));
            hits.push(session.hit(Some(turn), excerpt));
        }
    }
    Ok(())
}

fn read_document(
    index: &Connection,
    id: i64,
) -> Result<Option<(i64, SearchedTurn, String)>, IndexFault> {
    let mut statement = index.prepare_cached(
        "SELECT chat.session, chat.uri, document.turn_id, document.started_at, content.text
         FROM document JOIN chat ON chat.channel = document.chat
             JOIN content ON content.rowid = document.id
         WHERE document.id = ?1",
    )?;
    let found = statement.query_row([id], |row| {
        let turn = SearchedTurn { chat: row.get(1)?, id: row.get(2)?, started_at: row.get(3)? };
        Ok((row.get(0)?, turn, row.get(4)?))
    });
    Ok(found.optional()?)
}

fn listed_sessions(journal: &Connection) -> rusqlite::Result<HashMap<i64, ListedSession>> {
    let mut statement = journal
        .prepare_cached("SELECT session, uri, modified, json FROM summary WHERE modified > ?1")?;
    let rows = statement.query_map([UNLISTED], |row| {
        let json: Vec<u8> = row.get(3)?;
        let summary: serde_json::Value = serde_json::from_slice(&json).unwrap_or_default();
        let session = ListedSession {
            uri: row.get(1)?,
            title: summary["title"].as_str().unwrap_or("").to_owned(),
            modified: Timestamp(row.get(2)?),
        };
        Ok((row.get(0)?, session))
    })?;
    rows.collect()
}

impl ListedSession {
    fn hit(&self, turn: Option<SearchedTurn>, excerpt: Vec<TextPiece>) -> SearchHit {
        SearchHit {
            session: self.uri.clone(),
            title: self.title.clone(),
            session_modified: self.modified,
            turn,
            excerpt,
        }
    }
}

/// What a search failed for. The index is made anew if it is damaged; the journal never is, and is reported.
#[derive(Debug)]
enum SearchFailure {
    Journal(JournalError),
    Index(IndexFault),
}

impl SearchFailure {
    /// Not a conversion: who reads must say from where.
    fn journal(error: rusqlite::Error) -> Self {
        Self::Journal(JournalError::Unreadable(error.to_string()))
    }

    fn index(error: rusqlite::Error) -> Self {
        Self::Index(error.into())
    }
}

impl From<IndexFault> for SearchFailure {
    fn from(unusable: IndexFault) -> Self {
        Self::Index(unusable)
    }
}

/// Why an index cannot be used.
#[derive(Debug)]
enum IndexFault {
    /// It is to be made anew.
    Damaged,
    Failed(String),
}

impl IndexFault {
    fn explain(self, path: &Path) -> SearchError {
        let reason = match self {
            Self::Damaged => "it is damaged, and so is the one made in its place".to_owned(),
            Self::Failed(reason) => reason,
        };
        SearchError::Index { path: path.to_owned(), reason }
    }
}

/// Of the index, never of the journal.
impl From<rusqlite::Error> for IndexFault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            // A table or a column that should be there is not, or holds what nobody put there.
            Some(ErrorCode::Unknown | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
            | None => Self::Damaged,
            Some(ErrorCode::DatabaseBusy) => {
                Self::Failed("another search is still indexing; try again in a moment".to_owned())
            }
            Some(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for IndexFault {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

fn open_index(path: &Path, dir: &Path) -> Result<Connection, IndexFault> {
    make_private_file(path, dir)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_millis(BUSY_MS))?;
    // NORMAL: what a power cut takes is indexed again.
    conn.execute_batch(
        "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
         PRAGMA auto_vacuum = INCREMENTAL;
         PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA journal_size_limit = 16777216;",
    )?;
    let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    match (number("application_id")?, number("user_version")?) {
        (APPLICATION_ID, FORMAT) => return Ok(conn),
        (0, 0) => {}
        _ => return Err(IndexFault::Damaged),
    }
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Two that find it missing at once make it one after the other.
    let made: i64 = tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if made == 0 {
        tx.execute_batch(SCHEMA)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", FORMAT)?;
    }
    tx.commit()?;
    Ok(conn)
}

fn remove(path: &Path) -> Result<(), IndexFault> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
