//! What every journal promises, as one suite that each backend is held to.
//!
//! Promises: each promise is a test of its own for each backend, and opening again is part of most of them. Behind
//! `faulty_*` every write fails once before it succeeds.
//! Must not know: tables, maps or any other insides.

mod changes;
mod clients;
mod forks;
mod list;
mod log;
mod messages;
mod outputs;
mod postgres;
mod references;
mod turns;
mod twin;
mod whole;

use std::sync::Arc;

use bytes::Bytes;
use kernel::{
    Answer, Batch, Boot, BootWork, ChannelId, ChannelRecord, Head, LogSlice, Query, Record, Seq,
    StoredChannel, StoredKind, TurnPage, TurnPosition,
};
use wire::state::{
    AnnotationsState, ChangesetState, ChatState, Outcome, RootState, SessionState, TerminalState,
    Turn,
};
use wire::{ChannelUri, Timestamp};

use super::{Fault, Faults, Faulty, Journal, JournalError, JournalReader, Memory, Sqlite};

macro_rules! contract {
    ($($backend:ident),*; $($server:ident),*; $promises:tt) => {
        $(contract!(@ $backend $promises);)*
        $(contract!(@server $server $promises);)*
    };
    // A server is started once for all promises.
    (@server $server:ident { $($room:ident: $($promise:ident),*;)* }) => {
        #[test]
        fn $server() {
            let Some(books) = postgres::ServerBooks::start() else { return };
            $($(
                eprintln!("{}", stringify!($promise));
                books.$server(&|book| $room::$promise(book));
            )*)*
        }
    };
    (@ $backend:ident { $($room:ident: $($promise:ident),*;)* }) => {
        mod $backend {
            $($(
                #[test]
                fn $promise() {
                    super::$room::$promise(&mut super::JournalUnderTest::$backend());
                }
            )*)*
        }
    };
}

contract! {
    memory, sqlite, faulty_memory, faulty_sqlite;
    postgres, faulty_postgres, postgres_beside_a_twin;
    {
        whole: batches_are_whole, a_record_that_can_never_be_written_is_named,
            a_failed_append_leaves_everything_and_a_later_one_works,
            seq_never_goes_back_over_reopen, boot_work_is_reported_at_boot,
            a_disposed_uri_can_be_used_as_another_channel,
            disposing_of_a_session_disposes_of_its_chats,
            what_belongs_to_a_session_comes_with_it_and_ends_with_it,
            two_live_channels_never_share_a_uri, a_reader_sees_what_was_committed,
            a_channel_comes_with_its_session_and_what_came_after_its_head,
            a_checkpoint_is_replaced_and_removed, a_probe_leaves_no_trace;
        turns: turns_page_newest_first_with_the_crossing_turn_included,
            a_long_chat_opens_by_its_tail, hidden_turns_are_invisible_but_their_ids_are_used,
            a_resumed_turn_is_found_where_it_is_visible, turn_numbers_are_never_used_twice;
        forks: the_context_of_a_side_chat_is_kept_and_not_shown,
            a_fork_copies_nothing_and_goes_on_from_its_last_turn,
            a_fork_survives_truncate_dispose_and_sweep_of_its_source,
            a_fork_of_a_fork_sees_both, a_fork_within_a_fork_s_inherited_turns_sees_only_those,
            truncating_a_fork_leaves_its_source_alone,
            what_was_hidden_before_the_fork_never_belonged_to_it,
            the_last_fork_to_go_takes_the_turns_with_it;
        references: content_is_kept_while_its_channel_is, one_reference_of_many_is_enough,
            a_fork_keeps_what_the_turns_it_sees_refer_to, a_refused_reference_keeps_nothing,
            a_type_is_known_while_someone_tells_it;
        messages: a_message_is_read_as_it_was_written,
            a_message_that_waits_belongs_to_its_turn_when_it_starts, a_part_is_frozen_once,
            a_fork_finds_the_messages_of_the_turns_it_sees, messages_go_with_their_chat,
            bodies_of_messages_are_kept_while_a_turn_shows_them,
            what_a_fork_was_first_to_look_at_outlives_the_fork;
        outputs: outputs_are_read_by_turn_and_round,
            outputs_of_the_newest_turns_are_read_as_far_as_there_is_room,
            a_fork_has_the_outputs_of_its_turns_for_as_long_as_it_shows_them;
        changes: changes_are_read_by_turn_and_replaced,
            a_fork_has_the_changes_of_its_turns_for_as_long_as_it_shows_them;
        log: the_log_is_in_seq_order_across_channels_with_their_own_floors,
            a_log_over_its_bound_says_so, trimmed_actions_are_out_of_reach,
            trimming_keeps_what_a_head_does_not_hold_yet,
            actions_of_all_sizes_are_replayed_and_loaded_in_order;
        clients: clients_and_floors_round_trip, a_client_that_is_gone_takes_its_floors_along,
            clients_are_evicted_by_age, clients_over_the_maximum_go_oldest_first;
        list: the_list_pages_through_equal_times, a_summary_is_replaced_and_removed, what_is_not_listed_is_only_swept,
            empty_sessions_wait_for_their_creators;
    }
}

/// A journal under test, with the few operations that the promises are written in.
struct JournalUnderTest {
    reader: Option<Box<dyn JournalReader>>,
    journal: Option<Box<dyn Journal>>,
    /// Opens the same contents again.
    open: Box<dyn FnMut() -> Box<dyn Journal>>,
    faults: Option<Faults>,
    seq: u64,
}

impl JournalUnderTest {
    fn opened_by(mut open: Box<dyn FnMut() -> Box<dyn Journal>>, faults: Option<Faults>) -> Self {
        let journal = open();
        Self {
            reader: Some(journal.reader().unwrap()),
            journal: Some(journal),
            open,
            faults,
            seq: 0,
        }
    }

    fn memory() -> Self {
        let memory = Memory::new();
        Self::opened_by(Box::new(move || Box::new(memory.clone())), None)
    }

    fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::opened_by(Box::new(move || Box::new(Sqlite::open(dir.path()).unwrap())), None)
    }

    fn faulty_memory() -> Self {
        Self::memory().made_faulty()
    }

    fn faulty_sqlite() -> Self {
        Self::sqlite().made_faulty()
    }

    fn made_faulty(mut self) -> Self {
        self.reader = None;
        self.journal = None;
        let faults = Faults::default();
        let (mut open, switch) = (self.open, faults.clone());
        let open = move || Box::new(Faulty::with(open(), switch.clone())) as Box<dyn Journal>;
        Self::opened_by(Box::new(open), Some(faults))
    }

    fn reopen(&mut self) {
        // The lock of the first has to be given back before the second is opened.
        self.reader = None;
        self.journal = None;
        let journal = (self.open)();
        self.reader = Some(journal.reader().unwrap());
        self.journal = Some(journal);
    }

    fn try_write(&mut self, records: Vec<Record>) -> Result<(), JournalError> {
        self.seq += 1;
        let batch = Batch { seq: Seq(self.seq), records };
        let journal = self.journal.as_mut().unwrap();
        if let Some(faults) = &self.faults {
            faults.then(if self.seq.is_multiple_of(2) { Fault::Refuse } else { Fault::Tear });
            assert!(matches!(journal.append(&batch), Err(JournalError::Unwritable(_))));
        }
        journal.append(&batch)
    }

    fn write(&mut self, records: impl IntoIterator<Item = Record>) {
        self.try_write(records.into_iter().collect()).unwrap();
    }

    fn boot(&mut self) -> Boot {
        self.journal.as_mut().unwrap().boot().unwrap()
    }

    fn ask(&mut self, query: Query) -> Answer {
        self.reader.as_mut().unwrap().read(&query).unwrap()
    }

    fn find_channel(&mut self, name: &str) -> Option<Box<StoredChannel>> {
        self.find_channel_within(name, 1_000, u64::MAX)
    }

    fn find_channel_within(
        &mut self,
        name: &str,
        turns_max: u32,
        bytes_max: u64,
    ) -> Option<Box<StoredChannel>> {
        match self.ask(Query::Channel { uri: uri(name), turns_max, bytes_max }) {
            Answer::Channel(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn channel(&mut self, name: &str) -> StoredChannel {
        *self.find_channel(name).unwrap()
    }

    fn page(&mut self, chat: u64, before_n: u64, turns_max: u32, bytes_max: u64) -> TurnPage {
        match self.ask(Query::Turns { chat: ChannelId(chat), before_n, turns_max, bytes_max }) {
            Answer::Turns(page) => page,
            other => panic!("{other:?}"),
        }
    }

    fn context(&mut self, chat: u64, through_n: u64) -> TurnPage {
        match self.ask(Query::Context {
            chat: ChannelId(chat),
            through_n,
            turns_max: 100,
            bytes_max: 100_000,
        }) {
            Answer::Turns(page) => page,
            other => panic!("{other:?}"),
        }
    }

    /// The ids of all visible turns.
    fn turns(&mut self, chat: u64) -> Vec<String> {
        ids(&self.page(chat, u64::MAX, u32::MAX, u64::MAX))
    }

    fn find_turn(&mut self, chat: u64, id: &str) -> Option<TurnPosition> {
        match self.ask(Query::FindTurn { chat: ChannelId(chat), turn_id: id.to_owned() }) {
            Answer::FindTurn(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn log(&mut self, floors: &[(u64, u64)], through: u64, bytes_max: u64) -> LogSlice {
        let floors =
            floors.iter().map(|(channel, floor)| (ChannelId(*channel), Seq(*floor))).collect();
        match self.ask(Query::Log { floors, through: Seq(through), bytes_max }) {
            Answer::Log(slice) => slice,
            other => panic!("{other:?}"),
        }
    }

    fn log_seqs(&mut self, floors: &[(u64, u64)], through: u64) -> Vec<(u64, u64)> {
        let slice = self.log(floors, through, u64::MAX);
        assert!(!slice.overflowed);
        slice.actions.iter().map(|(seq, channel, _)| (seq.0, channel.0)).collect()
    }
}

fn ids(page: &TurnPage) -> Vec<String> {
    page.turns.iter().map(|turn| turn.id.clone()).collect()
}

fn numbers(page: &TurnPage) -> Vec<u64> {
    page.turns.iter().map(|turn| turn.n).collect()
}

fn uri(name: &str) -> ChannelUri {
    ChannelUri::parse(&format!("test:/{name}")).unwrap()
}

fn channel(id: u64, name: &str, kind: StoredKind, parent: Option<u64>) -> ChannelRecord {
    let value = serde_json::json!({
        "agents": [], "provider": "scripted", "title": name, "status": 1, "lifecycle": "ready",
        "activeClients": [], "chats": [], "resource": name, "modifiedAt": "",
    });
    let head = match kind {
        StoredKind::Root => Head::Root(Arc::new(RootState::from_value(value).unwrap())),
        StoredKind::Session => Head::Session(Arc::new(SessionState::from_value(value).unwrap())),
        StoredKind::Chat => Head::Chat(Arc::new(ChatState::from_value(value).unwrap())),
        StoredKind::Changeset => Head::Plain(ChangesetState::computing().into()),
        StoredKind::Annotations => Head::Plain(AnnotationsState::default().into()),
        StoredKind::Terminal => Head::Plain(TerminalState::new(name, value).into()),
    };
    ChannelRecord {
        id: ChannelId(id),
        uri: uri(name),
        kind,
        parent: parent.map(ChannelId),
        head,
        head_seq: Seq(id),
        boot_work: BootWork::default(),
        private: Bytes::from(format!("private {name}")),
    }
}

pub(crate) fn session(id: u64, name: &str) -> Record {
    Record::Channel(channel(id, name, StoredKind::Session, None))
}

pub(crate) fn chat(id: u64, name: &str) -> Record {
    Record::Channel(channel(id, name, StoredKind::Chat, None))
}

fn action(channel: u64, seq: u64) -> Record {
    let envelope = Bytes::from(format!("action {seq:03}"));
    Record::Action { seq: Seq(seq), channel: ChannelId(channel), envelope }
}

/// A turn whose JSON has ten bytes.
pub(crate) fn turn(chat: u64, n: u64, id: &str) -> Record {
    let json = Bytes::from(format!("{id:>10}"));
    let turn = Turn { id: id.to_owned(), outcome: Outcome::Error { resumable: true }, json };
    Record::Turn { chat: ChannelId(chat), n, turn: Arc::new(turn) }
}

fn hide(chat: u64, from_n: u64, at: u64) -> Record {
    Record::HideTurns { chat: ChannelId(chat), from_n, at: Seq(at) }
}

pub(crate) fn fork(chat: u64, source: u64, through_n: u64, as_of: u64) -> Record {
    let (chat, source) = (ChannelId(chat), ChannelId(source));
    Record::Fork { chat, source, through_n, as_of: Seq(as_of) }
}

pub(crate) fn dispose(channel: u64, at: i64) -> Record {
    Record::Dispose { channel: ChannelId(channel), at: Timestamp(at) }
}

/// A sweep of channels only.
pub(crate) fn sweep(disposed_before: i64) -> Record {
    Record::Sweep {
        disposed_before: Timestamp(disposed_before),
        clients_before: Timestamp(0),
        clients_max: u32::MAX,
    }
}

fn root() -> Record {
    let uri = ChannelUri::root();
    Record::Channel(ChannelRecord { uri, ..channel(0, "root", StoredKind::Root, None) })
}
