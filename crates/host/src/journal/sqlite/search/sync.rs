//! Brings the index up to date with the journal: what is new goes in, what is not shown any more goes out.
//!
//! Promises: only chats that changed since are looked at, and only turns that are new are read. It may be cut off anywhere: the
//! next one goes on from there.

use std::collections::HashMap;

use rusqlite::{Connection, Row, TransactionBehavior, params};
use serde_json::Value;

use super::{IndexFault, SearchFailure};

/// Turns that are indexed in one transaction.
const STEP_TURNS: usize = 200;
/// What is indexed of one turn.
const TEXT_BYTES_MAX: usize = 64 * 1_024;

/// Chats whose session is still there, with what is another when they changed: the seq, and in a journal that was restored from
/// a copy, where the same seq may be given once more, the last turn.
const LIVE_CHATS: &str = "SELECT chat.id, chat.uri, chat.parent, chat.head_seq,
         coalesce((SELECT turn.id FROM turn WHERE turn.channel = chat.id ORDER BY n DESC LIMIT 1), '')
     FROM channel AS chat JOIN channel AS session ON session.id = chat.parent
     WHERE chat.kind = 2 AND chat.disposed_at IS NULL AND session.disposed_at IS NULL";

/// What a chat shows: its own turns, and those that it sees of others as a fork.
const SHOWN_TURNS: &str = "SELECT n, id, body FROM turn INDEXED BY turn_visible
         WHERE channel = ?1 AND hidden_at IS NULL
     UNION ALL
     SELECT turn.n, turn.id, turn.body FROM turn_range JOIN turn
         ON turn.channel = turn_range.source AND turn.n BETWEEN turn_range.first_n AND turn_range.visible_n
             AND (turn.hidden_at IS NULL OR turn.hidden_at > turn_range.as_of)
         WHERE turn_range.chat = ?1
     ORDER BY 1";

#[derive(Debug, Clone, PartialEq, Eq)]
struct ChatVersion {
    uri: String,
    session: i64,
    head_seq: i64,
    last_turn: String,
}

impl ChatVersion {
    /// From the columns after the first.
    fn at(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            uri: row.get(1)?,
            session: row.get(2)?,
            head_seq: row.get(3)?,
            last_turn: row.get(4)?,
        })
    }
}

/// Chats by their number.
type Chats = HashMap<i64, ChatVersion>;

pub(super) fn bring_up_to_date(
    index: &mut Connection,
    journal: &Connection,
) -> Result<(), SearchFailure> {
    let live = chats_in(journal, LIVE_CHATS).map_err(SearchFailure::journal)?;
    let known = chats_in(index, "SELECT channel, uri, session, head_seq, last_turn FROM chat")
        .map_err(SearchFailure::index)?;
    for channel in known.keys().filter(|channel| !live.contains_key(channel)) {
        forget_chat(index, *channel)?;
    }
    for (channel, version) in &live {
        if known.get(channel) != Some(version) {
            index_chat(index, journal, *channel, version)?;
        }
    }
    Ok(())
}

fn chats_in(conn: &Connection, query: &str) -> rusqlite::Result<Chats> {
    let mut statement = conn.prepare_cached(query)?;
    let chats = statement.query_map([], |row| Ok((row.get(0)?, ChatVersion::at(row)?)))?;
    chats.collect()
}

fn forget_chat(index: &mut Connection, channel: i64) -> Result<(), IndexFault> {
    let tx = index.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.prepare_cached(
        "DELETE FROM content WHERE rowid IN (SELECT id FROM document WHERE chat = ?1)",
    )?
    .execute([channel])?;
    tx.prepare_cached("DELETE FROM document WHERE chat = ?1")?.execute([channel])?;
    tx.prepare_cached("DELETE FROM chat WHERE channel = ?1")?.execute([channel])?;
    Ok(tx.commit()?)
}

/// Makes the documents of a chat those of the turns that it shows now. Turns never change: one that is there is right.
fn index_chat(
    index: &mut Connection,
    journal: &Connection,
    channel: i64,
    version: &ChatVersion,
) -> Result<(), SearchFailure> {
    let shown = shown_turns(journal, channel).map_err(SearchFailure::journal)?;
    let documents = documents_of(index, channel)?;
    let is_shown = |n: i64, id: &str| {
        let at = shown.binary_search_by_key(&n, |turn| turn.n);
        at.ok().and_then(|at| shown.get(at)).is_some_and(|turn| turn.id == id)
    };
    let stale: Vec<i64> = documents
        .iter()
        .filter(|(n, (_, turn_id))| !is_shown(**n, turn_id))
        .map(|(_, (id, _))| *id)
        .collect();
    let is_known =
        |turn: &ShownTurn| documents.get(&turn.n).is_some_and(|(_, turn_id)| *turn_id == turn.id);
    let new: Vec<&ShownTurn> = shown.iter().filter(|turn| !is_known(turn)).collect();
    for some in stale.chunks(STEP_TURNS) {
        forget_documents(index, some)?;
    }
    for some in new.chunks(STEP_TURNS) {
        let tx = index
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(SearchFailure::index)?;
        for turn in some {
            let body = body_of(journal, turn).map_err(SearchFailure::journal)?;
            add_document(&tx, channel, turn, &body)?;
        }
        tx.commit().map_err(SearchFailure::index)?;
    }
    // Last: whatever is cut off before is looked at again.
    Ok(note_version(index, channel, version)?)
}

fn forget_documents(index: &mut Connection, ids: &[i64]) -> Result<(), IndexFault> {
    let tx = index.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in ids {
        tx.prepare_cached("DELETE FROM content WHERE rowid = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM document WHERE id = ?1")?.execute([id])?;
    }
    Ok(tx.commit()?)
}

fn note_version(index: &Connection, channel: i64, version: &ChatVersion) -> Result<(), IndexFault> {
    index
        .prepare_cached(
            "INSERT OR REPLACE INTO chat (channel, uri, session, head_seq, last_turn) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            channel,
            version.uri,
            version.session,
            version.head_seq,
            version.last_turn
        ])?;
    Ok(())
}

struct ShownTurn {
    n: i64,
    id: String,
    body: i64,
}

fn shown_turns(journal: &Connection, chat: i64) -> rusqlite::Result<Vec<ShownTurn>> {
    let mut statement = journal.prepare_cached(SHOWN_TURNS)?;
    let turns = statement.query_map([chat], |row| {
        Ok(ShownTurn { n: row.get(0)?, id: row.get(1)?, body: row.get(2)? })
    })?;
    turns.collect()
}

fn body_of(journal: &Connection, turn: &ShownTurn) -> rusqlite::Result<Vec<u8>> {
    let mut body = journal.prepare_cached("SELECT bytes FROM turn_body WHERE id = ?1")?;
    body.query_row([turn.body], |row| row.get(0))
}

/// The documents of a chat by the number of their turn: their id, and the turn's.
fn documents_of(index: &Connection, chat: i64) -> Result<HashMap<i64, (i64, String)>, IndexFault> {
    let mut statement =
        index.prepare_cached("SELECT n, id, turn_id FROM document WHERE chat = ?1")?;
    let documents =
        statement.query_map([chat], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(documents.collect::<rusqlite::Result<_>>()?)
}

fn add_document(
    index: &Connection,
    chat: i64,
    turn: &ShownTurn,
    body: &[u8],
) -> Result<(), IndexFault> {
    // What cannot be read shows nothing that could be searched for.
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let started_at = json["startedAt"].as_str().unwrap_or("");
    let added = index
        .prepare_cached(
            "INSERT INTO document (chat, n, turn_id, started_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![chat, turn.n, turn.id, started_at])?;
    if added == 1 {
        index
            .prepare_cached("INSERT INTO content (rowid, text) VALUES (?1, ?2)")?
            .execute(params![index.last_insert_rowid(), text_of(&json)])?;
    }
    Ok(())
}

/// What was said in a turn: the message with the names of what is attached, and the text of the answer.
fn text_of(turn: &Value) -> String {
    let message = &turn["message"];
    let attachments = message["attachments"].as_array().into_iter().flatten();
    let labels = attachments.filter_map(|attachment| attachment["label"].as_str());
    let parts = turn["responseParts"].as_array().into_iter().flatten();
    let answers = parts.filter_map(|part| match part["kind"].as_str()? {
        "markdown" => part["content"].as_str(),
        "error" => part["error"]["message"].as_str(),
        _ => None,
    });
    let mut text = String::new();
    for piece in message["text"].as_str().into_iter().chain(labels).chain(answers) {
        if !text.is_empty() {
            text.push('\n');
        }
        let left = TEXT_BYTES_MAX.saturating_sub(text.len());
        text.push_str(&piece[..piece.floor_char_boundary(left)]);
        if left == 0 {
            break;
        }
    }
    // The index ends a text where it finds one of these.
    text.replace('\0', " ")
}
