//! What every blob store promises, as one suite that each of them is held to.

use std::sync::Arc;

use wire::Timestamp;

use super::{
    BlobError, BlobSettings, Blobs, FileBlobs, Found, MemoryBlobs, ObjectBodies, digest_of,
};
use crate::journal::PostgresNode;
use crate::journal::postgres::test_server::{TestServer, run_sql};

macro_rules! contract {
    ($($store:ident),*; $($server:ident),*; $promises:tt) => {
        $(contract!(@ $store $promises);)*
        $(contract!(@server $server $promises);)*
    };
    // A server is started once for all promises.
    (@server $server:ident { $($promise:ident),* }) => {
        #[test]
        fn $server() {
            let Some(server) = TestServer::start() else { return };
            $(
                eprintln!("{}", stringify!($promise));
                $promise(&mut Fixture::$server(&server));
            )*
        }
    };
    (@ $store:ident { $($promise:ident),* }) => {
        mod $store {
            $(
                #[test]
                fn $promise() {
                    super::$promise(&mut super::Fixture::$store());
                }
            )*
        }
    };
}

contract! {
    memory, files;
    postgres, objects;
    {
        a_stored_body_is_read_back_after_reopening, a_body_lies_there_once,
        a_body_that_was_never_stored_is_missing, no_more_is_read_than_was_asked_for, damage_is_reported,
        a_body_ages_from_when_it_was_last_put, a_body_stored_again_is_not_removed,
        a_removed_body_is_gone_and_can_be_stored_again, buckets_divide_all_bodies,
        one_body_can_be_put_by_many_at_once, an_unsynced_body_is_read_and_ages_like_any_other,
        a_body_made_durable_is_there_after_a_crash, what_is_not_there_cannot_be_made_durable,
        many_can_put_one_body_either_way_and_make_it_durable
    }
}

/// A store under test.
struct Fixture {
    store: Box<dyn Blobs>,
    /// Opens the same contents again.
    open: Box<dyn FnMut() -> Box<dyn Blobs>>,
    damage: Box<dyn Fn(&wire::Digest)>,
}

impl Fixture {
    fn memory() -> Self {
        let memory = MemoryBlobs::new();
        let damaged = memory.clone();
        Self::opened_by(
            Box::new(move || {
                memory.lose_unsynced();
                Box::new(memory.clone())
            }),
            Box::new(move |digest| damaged.damage(digest)),
        )
    }

    fn files() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        Self::opened_by(
            Box::new(move || Box::new(FileBlobs::open(dir.path()).unwrap())),
            Box::new(move |digest| {
                let hex = digest.to_hex();
                let path = root.join("blobs/sha256").join(&hex[..2]).join(&hex);
                let mut body = std::fs::read(&path).unwrap();
                body[0] ^= 1;
                std::fs::write(&path, body).unwrap();
            }),
        )
    }

    /// In a database of its own.
    fn postgres(server: &TestServer) -> Self {
        let settings = server.make_database();
        let database = settings.url.rsplit('=').next().unwrap().to_owned();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let node = runtime.block_on(PostgresNode::connect(&settings)).unwrap();
        let open = move || {
            let (journal, _) = runtime.block_on(node.open_space("s")).unwrap();
            Box::new(journal.blobs()) as Box<dyn Blobs>
        };
        let socket = server.socket().to_owned();
        let damage = move |digest: &wire::Digest| {
            let set = "SET bytes = set_byte(bytes, 0, get_byte(bytes, 0) # 1)";
            let hex = digest.to_hex();
            let sql =
                format!("UPDATE greenroom.blob_chunk {set} WHERE digest = decode('{hex}', 'hex')");
            run_sql(&socket, &database, &sql);
        };
        Self::opened_by(Box::new(open), Box::new(damage))
    }

    /// All bodies in an object store, which is a directory here.
    fn objects(server: &TestServer) -> Self {
        let settings = server.make_database();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let blobs = BlobSettings {
            from_bytes: 0,
            ..BlobSettings::at(&format!("file://{}", root.display()))
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let node = runtime.block_on(PostgresNode::connect(&settings)).unwrap();
        node.set_objects(Arc::new(ObjectBodies::open(&blobs).unwrap()));
        let open = move || {
            let _held = &directory;
            let (journal, _) = runtime.block_on(node.open_space("s")).unwrap();
            Box::new(journal.blobs()) as Box<dyn Blobs>
        };
        let damage = move |digest: &wire::Digest| {
            let spaces = std::fs::read_dir(&root).unwrap();
            let mut objects =
                spaces.flat_map(|space| std::fs::read_dir(space.unwrap().path()).unwrap());
            let is_it = |path: &std::path::PathBuf| {
                path.file_name().unwrap().to_string_lossy().starts_with(&digest.to_hex())
            };
            let path =
                objects.find_map(|object| Some(object.unwrap().path()).filter(is_it)).unwrap();
            let mut body = std::fs::read(&path).unwrap();
            body[0] ^= 1;
            std::fs::write(&path, body).unwrap();
        };
        Self::opened_by(Box::new(open), Box::new(damage))
    }

    fn opened_by(
        mut open: Box<dyn FnMut() -> Box<dyn Blobs>>,
        damage: Box<dyn Fn(&wire::Digest)>,
    ) -> Self {
        Self { store: open(), open, damage }
    }

    fn reopen(&mut self) {
        self.store = (self.open)();
    }

    fn put(&self, body: &str, at_ms: i64) -> wire::Digest {
        self.store.put(body.as_bytes(), at(at_ms)).unwrap()
    }

    fn put_unsynced(&self, body: &str, at_ms: i64) -> wire::Digest {
        let digest = digest_of(body.as_bytes());
        self.store.put_unsynced(&digest, body.as_bytes(), at(at_ms)).unwrap();
        digest
    }

    fn read(&self, digest: &wire::Digest) -> Option<String> {
        match self.store.read(digest, u64::MAX - 1).unwrap() {
            Found::Body(body) => Some(String::from_utf8(body).unwrap()),
            Found::Missing => None,
            Found::TooLarge { bytes } => panic!("{bytes} bytes"),
        }
    }

    fn list_older_than(&self, before_ms: i64) -> Vec<wire::Digest> {
        self.store.list_older_than(0..=255, at(before_ms)).unwrap()
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp(1_790_000_000_000 + ms)
}

fn a_stored_body_is_read_back_after_reopening(fixture: &mut Fixture) {
    let long = "long ".repeat(100_000);
    let bodies = ["", "short", long.as_str()];
    let digests = bodies.map(|body| fixture.put(body, 0));
    assert_eq!(digests[1].to_hex()[..8], *"f9b0078b");
    fixture.reopen();
    for (body, digest) in bodies.iter().zip(&digests) {
        assert_eq!(fixture.read(digest).as_deref(), Some(*body));
    }
}

fn a_body_lies_there_once(fixture: &mut Fixture) {
    let first = fixture.put("same", 0);
    assert_eq!(fixture.put("same", 1), first);
    assert_eq!(fixture.list_older_than(9), [first]);
}

fn a_body_that_was_never_stored_is_missing(fixture: &mut Fixture) {
    fixture.put("one", 0);
    assert_eq!(fixture.read(&digest_of(b"another")), None);
}

fn no_more_is_read_than_was_asked_for(fixture: &mut Fixture) {
    let digest = fixture.put("12345", 0);
    let too_large = Ok(Found::TooLarge { bytes: 5 });
    assert_eq!(fixture.store.read(&digest, 4), too_large);
    assert_eq!(fixture.store.read(&digest, 5), Ok(Found::Body(b"12345".to_vec())));
}

fn damage_is_reported(fixture: &mut Fixture) {
    let (whole, damaged) = (fixture.put("whole", 0), fixture.put("damaged", 0));
    (fixture.damage)(&damaged);
    fixture.reopen();
    let read = fixture.store.read(&damaged, 99);
    assert_eq!(read, Err(BlobError::Damaged(damaged)));
    assert_eq!(fixture.read(&whole).as_deref(), Some("whole"));
}

fn a_body_ages_from_when_it_was_last_put(fixture: &mut Fixture) {
    let (old, renewed) = (fixture.put("old", 1_000), fixture.put("renewed", 1_000));
    fixture.put("renewed", 5_000);
    // A clock that went back does not make it older again.
    fixture.put("renewed", 2_000);
    fixture.reopen();
    assert_eq!(fixture.list_older_than(1_000), []);
    assert_eq!(fixture.list_older_than(1_001), [old]);
    assert_eq!(fixture.list_older_than(5_000), [old]);
    let mut both = [old, renewed];
    both.sort();
    assert_eq!(fixture.list_older_than(5_001), both);
}

fn a_body_stored_again_is_not_removed(fixture: &mut Fixture) {
    let digest = fixture.put("body", 1_000);
    assert_eq!(fixture.list_older_than(2_000), [digest]);
    fixture.put("body", 3_000);
    fixture.store.remove(&digest, at(2_000)).unwrap();
    assert_eq!(fixture.read(&digest).as_deref(), Some("body"));
}

fn a_removed_body_is_gone_and_can_be_stored_again(fixture: &mut Fixture) {
    let (digest, other) = (fixture.put("body", 1_000), fixture.put("other", 1_000));
    fixture.store.remove(&digest, at(2_000)).unwrap();
    fixture.store.remove(&digest, at(2_000)).unwrap();
    fixture.reopen();
    assert_eq!(fixture.read(&digest), None);
    assert_eq!(fixture.list_older_than(2_000), [other]);
    assert_eq!(fixture.put("body", 3_000), digest);
    assert_eq!(fixture.read(&digest).as_deref(), Some("body"));
}

fn buckets_divide_all_bodies(fixture: &mut Fixture) {
    let mut all: Vec<_> = (0..40).map(|n| fixture.put(&n.to_string(), 0)).collect();
    all.sort();
    let find = |buckets| fixture.store.list_older_than(buckets, at(1)).unwrap();
    let (low, high) = (find(0..=99), find(100..=255));
    assert!(!low.is_empty() && !high.is_empty());
    assert_eq!([low, high].concat(), all);
}

fn one_body_can_be_put_by_many_at_once(fixture: &mut Fixture) {
    let body = vec![b'x'; 300_000];
    let store = &*fixture.store;
    std::thread::scope(|threads| {
        let puts: Vec<_> = (0..8)
            .map(|n| {
                let body = &body;
                threads.spawn(move || store.put(body, at(n)).unwrap())
            })
            .collect();
        for put in puts {
            assert_eq!(put.join().unwrap(), digest_of(&body));
        }
    });
    assert_eq!(fixture.store.read(&digest_of(&body), 300_000), Ok(Found::Body(body)));
    assert_eq!(fixture.list_older_than(100).len(), 1);
}

fn an_unsynced_body_is_read_and_ages_like_any_other(fixture: &mut Fixture) {
    let (old, renewed) =
        (fixture.put_unsynced("old", 1_000), fixture.put_unsynced("renewed", 1_000));
    fixture.put_unsynced("renewed", 5_000);
    fixture.put_unsynced("renewed", 2_000);
    assert_eq!(fixture.read(&old).as_deref(), Some("old"));
    assert_eq!(fixture.store.read(&old, 2), Ok(Found::TooLarge { bytes: 3 }));
    assert_eq!(fixture.list_older_than(1_000), []);
    assert_eq!(fixture.list_older_than(5_000), [old]);
    for digest in [old, renewed] {
        fixture.store.remove(&digest, at(5_000)).unwrap();
    }
    assert_eq!(fixture.read(&old), None);
    assert_eq!(fixture.read(&renewed).as_deref(), Some("renewed"));
    assert_eq!(fixture.list_older_than(5_001), [renewed]);
}

fn a_body_made_durable_is_there_after_a_crash(fixture: &mut Fixture) {
    let (made, put) = (fixture.put_unsynced("made", 0), fixture.put_unsynced("put", 0));
    let known = fixture.put("known", 0);
    assert_eq!(fixture.put_unsynced("known", 1), known);
    for _ in 0..2 {
        fixture.store.make_durable(&made).unwrap();
    }
    fixture.put("put", 1);
    fixture.store.make_durable(&known).unwrap();
    fixture.reopen();
    for (digest, body) in [(made, "made"), (put, "put"), (known, "known")] {
        assert_eq!(fixture.read(&digest).as_deref(), Some(body));
    }
    let mut all = [made, put, known];
    all.sort();
    assert_eq!(fixture.list_older_than(9), all);
}

fn what_is_not_there_cannot_be_made_durable(fixture: &mut Fixture) {
    let gone = fixture.put_unsynced("gone", 0);
    fixture.store.remove(&gone, at(1)).unwrap();
    assert_eq!(fixture.store.make_durable(&gone), Err(BlobError::Lost(gone)));
}

fn many_can_put_one_body_either_way_and_make_it_durable(fixture: &mut Fixture) {
    let body = "of many";
    let digest = digest_of(body.as_bytes());
    let store = &*fixture.store;
    std::thread::scope(|scope| {
        for worker in 0..4_i64 {
            scope.spawn(move || {
                let put = match worker {
                    0 => store.put_named(&digest, body.as_bytes(), at(worker)),
                    _ => store.put_unsynced(&digest, body.as_bytes(), at(worker)),
                };
                put.unwrap();
                store.make_durable(&digest).unwrap();
            });
        }
    });
    assert_eq!(fixture.list_older_than(3), [], "the last time counts");
    fixture.reopen();
    assert_eq!(fixture.read(&digest).as_deref(), Some(body));
    assert_eq!(fixture.list_older_than(4), [digest]);
}
