//! What searching promises, on a real journal and a real index.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kernel::{
    Batch, BootWork, ChannelId, ChannelRecord, Head, Record, Seq, StoredKind, SummaryRecord,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use wire::state::{ChatState, SessionState, Turn};
use wire::{ChannelUri, Timestamp};

use super::*;
use crate::journal::{Journal, Sqlite};

struct World {
    dir: TempDir,
    journal: Sqlite,
    seq: u64,
}

impl World {
    fn new() -> Self {
        let dir = tempdir().unwrap();
        let journal = Sqlite::open(dir.path()).unwrap();
        Self { dir, journal, seq: 100 }
    }

    fn write(&mut self, records: Vec<Record>) {
        self.seq += 1;
        let seq = Seq(self.seq);
        self.journal.append(&Batch { seq, records }).unwrap();
    }

    /// A session with a chat whose number is one above its own.
    fn session(&mut self, id: u64, title: &str) {
        let summary = summary(id, title);
        let head = self.channel(id, None);
        let chat = self.channel(id + 1, Some(id));
        self.write(vec![head, chat, summary]);
    }

    /// A channel as it is written whenever it changes.
    fn channel(&self, id: u64, parent: Option<u64>) -> Record {
        let state = json!({
            "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [],
            "resource": format!("test:/{id}"), "modifiedAt": "", "chats": [],
        });
        let (kind, head) = match parent {
            None => (
                StoredKind::Session,
                Head::Session(Arc::new(SessionState::from_value(state).unwrap())),
            ),
            Some(_) => {
                (StoredKind::Chat, Head::Chat(Arc::new(ChatState::from_value(state).unwrap())))
            }
        };
        Record::Channel(ChannelRecord {
            id: ChannelId(id),
            uri: ChannelUri::parse(&format!("test:/{id}")).unwrap(),
            kind,
            parent: parent.map(ChannelId),
            head,
            head_seq: Seq(self.seq),
            boot_work: BootWork::default(),
            private: Bytes::new(),
        })
    }

    fn say(&mut self, session: u64, n: u64, asked: &str, answered: &str) {
        let turn = turn_record(session + 1, n, asked, answered);
        let chat = self.channel(session + 1, Some(session));
        self.write(vec![turn, chat]);
    }

    fn cut(&mut self, session: u64, from_n: u64) {
        let hide = Record::HideTurns { chat: ChannelId(session + 1), from_n, at: Seq(self.seq) };
        let chat = self.channel(session + 1, Some(session));
        self.write(vec![hide, chat]);
    }

    fn delete(&mut self, session: u64) {
        self.write(vec![
            Record::Dispose { channel: ChannelId(session), at: Timestamp(1) },
            Record::SummaryGone { session: ChannelId(session) },
        ]);
    }

    fn find(&self, words: &[&str]) -> Vec<(String, String)> {
        find_in(self.dir.path(), words)
    }
}

fn summary(id: u64, title: &str) -> Record {
    let json = json!({"resource": format!("test:/{id}"), "title": title});
    Record::Summary(SummaryRecord {
        session: ChannelId(id),
        uri: ChannelUri::parse(&format!("test:/{id}")).unwrap(),
        modified: Timestamp(id as i64),
        created: Timestamp(0),
        empty: false,
        creator: None,
        json: Bytes::from(json.to_string()),
    })
}

fn turn_record(chat: u64, n: u64, asked: &str, answered: &str) -> Record {
    let turn: Value = json!({
        "id": format!("t{n}"), "state": "complete", "startedAt": format!("2026-11-15T08:00:{n:02}Z"),
        "message": {"text": asked},
        "responseParts": [
            {"kind": "reasoning", "id": "r", "content": "secretthought"},
            {"kind": "markdown", "id": "p", "content": answered},
        ],
    });
    Record::Turn { chat: ChannelId(chat), n, turn: Arc::new(Turn::from_value(&turn).unwrap()) }
}

/// Where words are found: the session, and the turn or the title.
fn find_in(dir: &Path, words: &[&str]) -> Vec<(String, String)> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let hits = SearchIndex::open(dir).unwrap().search(&words, 20).unwrap();
    let place = |hit: SearchHit| {
        let at = hit.turn.map_or("title".to_owned(), |turn| turn.id);
        (hit.session, at)
    };
    hits.into_iter().map(place).collect()
}

fn at(session: u64, place: &str) -> (String, String) {
    (format!("test:/{session}"), place.to_owned())
}

#[test]
fn texts_and_titles_are_found_newest_first() {
    let mut world = World::new();
    world.session(10, "Parser work");
    world.session(20, "Lunch");
    world.say(10, 0, "fix the parser", "Fixed: the Parser had a bug");
    world.say(10, 1, "thanks", "welcome");
    world.say(20, 2, "what is a parser?", "a thing");
    assert_eq!(world.find(&["PARSER"]), [at(10, "title"), at(20, "t2"), at(10, "t0")]);
    assert_eq!(world.find(&["parser", "bug"]), [at(10, "t0")], "all words in one turn");
    assert_eq!(world.find(&["the parser"]), [at(10, "t0")], "as it stands");
    assert_eq!(world.find(&["secretthought"]), [], "what was thought was not said");
    assert_eq!(world.find(&["nowhere"]), []);
    assert_eq!(world.find(&[""]), []);
    world.write(vec![summary(20, "Parser lunch")]);
    assert_eq!(world.find(&["parser"])[..2], [at(20, "title"), at(10, "title")]);
}

#[test]
fn languages_without_spaces_and_short_words_are_found() {
    let mut world = World::new();
    world.session(10, "x");
    world.say(10, 0, "全文検索の実装", "できました");
    world.say(10, 1, "Größe ändern", "ok 👩‍🚀");
    assert_eq!(world.find(&["検索"]), [at(10, "t0")]);
    assert_eq!(world.find(&["文検索の"]), [at(10, "t0")]);
    assert_eq!(world.find(&["GRÖSSE"]), []);
    assert_eq!(world.find(&["größe"]), [at(10, "t1")]);
    assert_eq!(world.find(&["ÄNDERN", "ok"]), [at(10, "t1")]);
    assert_eq!(world.find(&["👩‍🚀"]), [at(10, "t1")]);
}

#[test]
fn what_is_cut_off_or_deleted_is_not_found_any_more() {
    let mut world = World::new();
    world.session(10, "first");
    world.session(20, "second");
    world.say(10, 0, "apples", "");
    world.say(10, 1, "apples again", "");
    world.say(20, 2, "apples elsewhere", "");
    assert_eq!(world.find(&["apples"]).len(), 3);
    world.cut(10, 1);
    assert_eq!(world.find(&["apples"]), [at(20, "t2"), at(10, "t0")]);
    world.say(10, 3, "pears", "");
    assert_eq!(world.find(&["pears"]), [at(10, "t3")]);
    world.delete(20);
    assert_eq!(world.find(&["apples"]), [at(10, "t0")]);
    let index = Connection::open(world.dir.path().join(FILE)).unwrap();
    let texts: i64 = index.query_row("SELECT count(*) FROM content", [], |row| row.get(0)).unwrap();
    assert_eq!(texts, 2, "nothing of it is left in the index");
}

#[test]
fn a_fork_is_found_by_what_it_shows() {
    let mut world = World::new();
    world.session(10, "source");
    world.session(20, "fork");
    world.say(10, 0, "shared words", "");
    world.say(10, 1, "only in the source", "");
    let fork = Record::Fork {
        chat: ChannelId(21),
        source: ChannelId(11),
        through_n: 0,
        as_of: Seq(world.seq),
    };
    let chat = world.channel(21, Some(20));
    world.write(vec![fork, chat]);
    assert_eq!(world.find(&["shared"]).len(), 2);
    assert_eq!(world.find(&["source"]), [at(10, "title"), at(10, "t1")]);
    world.delete(10);
    assert_eq!(world.find(&["shared"]), [at(20, "t0")]);
}

#[test]
fn an_index_that_is_gone_damaged_or_cut_off_is_made_good() {
    let mut world = World::new();
    world.session(10, "x");
    for n in 0..10 {
        world.say(10, n, &format!("needle {n}"), "");
    }
    let path = world.dir.path().join(FILE);
    assert_eq!(world.find(&["needle"]).len(), 10);
    remove(&path).unwrap();
    assert_eq!(world.find(&["needle"]).len(), 10, "gone");
    std::fs::write(&path, "this is no database, not even nearly one".repeat(200)).unwrap();
    assert_eq!(world.find(&["needle"]).len(), 10, "another file");
    let index = Connection::open(&path).unwrap();
    index.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    drop(index);
    assert_eq!(world.find(&["needle"]).len(), 10, "another format");
    let index = Connection::open(&path).unwrap();
    // As if it was killed between two transactions.
    index.execute_batch("DELETE FROM chat; DELETE FROM document WHERE n > 5;").unwrap();
    index
        .execute_batch("DELETE FROM content WHERE rowid NOT IN (SELECT id FROM document);")
        .unwrap();
    drop(index);
    assert_eq!(world.find(&["needle"]).len(), 10, "cut off");
}

#[test]
fn an_index_that_breaks_under_a_search_is_made_anew() {
    let mut world = World::new();
    world.session(10, "x");
    world.say(10, 0, "needle", "");
    let mut open = SearchIndex::open(world.dir.path()).unwrap();
    let index = Connection::open(world.dir.path().join(FILE)).unwrap();
    index.execute_batch("DROP TABLE document;").unwrap();
    drop(index);
    assert_eq!(open.search(&["needle".to_owned()], 9).unwrap().len(), 1);
    assert_eq!(world.find(&["needle"]).len(), 1);
}

#[test]
fn a_journal_that_breaks_is_reported_and_the_index_stays() {
    let mut world = World::new();
    world.session(10, "x");
    world.say(10, 0, "needle", "");
    assert_eq!(world.find(&["needle"]).len(), 1);
    let path = world.dir.path().join(FILE);
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
    let before = inode();
    let mut open = SearchIndex::open(world.dir.path()).unwrap();
    world.say(10, 1, "another needle", "");
    for broken in ["DELETE FROM turn_body", "DROP TABLE summary"] {
        let journal = Connection::open(world.dir.path().join("journal.sqlite")).unwrap();
        journal.execute_batch(broken).unwrap();
        let error = open.search(&["needle".to_owned()], 9).unwrap_err();
        assert!(matches!(error, SearchError::Journal(_)), "{broken}: {error}");
        assert!(error.to_string().contains("journal"), "{error}");
        assert_eq!(inode(), before, "{broken}");
    }
}

#[test]
fn another_journal_in_its_place_is_noticed() {
    let mut world = World::new();
    world.session(10, "x");
    world.say(10, 0, "old words", "");
    assert_eq!(world.find(&["words"]), [at(10, "t0")]);
    let mut other = World::new();
    other.session(10, "y");
    other.say(10, 7, "new words", "");
    std::fs::copy(world.dir.path().join(FILE), other.dir.path().join(FILE)).unwrap();
    assert_eq!(other.find(&["words"]), [at(10, "t7")]);
    assert_eq!(other.find(&["old"]), []);
}

#[test]
fn a_search_beside_a_host_changes_nothing_and_holds_nothing_up() {
    let mut world = World::new();
    world.session(10, "x");
    world.say(10, 0, "first", "");
    let mut index = SearchIndex::open(world.dir.path()).unwrap();
    let find =
        |index: &mut SearchIndex, word: &str| index.search(&[word.to_owned()], 20).unwrap().len();
    assert_eq!(find(&mut index, "first"), 1);
    world.say(10, 1, "second", "");
    assert_eq!(find(&mut index, "second"), 1, "one that stays open sees what came");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_is_searched_for_is_an_error(words in prop::collection::vec(any::<String>(), 0..4)) {
        let mut world = World::new();
        world.session(10, "AND OR NOT");
        world.say(10, 0, "\"quoted\" text* NEAR(a b) col:x ^begin", "");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.find(&words);
        for operators in [["\"", "*"], ["NEAR(", "a AND"], ["text:x", "-y"], ["' OR 1=1 --", "\0"], ["\"quoted\" text*", "^begin"]] {
            world.find(&operators);
        }
        prop_assert_eq!(world.find(&["\"quoted\" text*", "^begin"]).len(), 1);
    }
}
