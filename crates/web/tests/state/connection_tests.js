import { createStore } from '../../app/js/state/store.js';
import { CHAT, Host, approve, equal, pass, settle, storage, waitingChat } from './world.js';

async function open(host, more = {}) {
  const store = createStore({
    url: 'ws:/host/ahp', token: 'secret', clientId: 'me', storage: storage(), checkToken: async () => 'unreachable',
    isPageCurrent: async () => true, ...more,
  });
  const statuses = [];
  store.onConnection(({ status }) => statuses.push(status));
  await settle();
  return { store, statuses };
}

async function openChat(host, more) {
  host.states[CHAT] ??= waitingChat();
  const opened = await open(host, more);
  opened.changes = [];
  opened.store.watch(CHAT, (_, changes) => opened.changes.push(...changes));
  await settle();
  return opened;
}

export async function the_token_is_in_a_subprotocol_and_in_no_address() {
  const host = new Host();
  const { store } = await open(host);
  equal(host.socket.protocols, ['ahp', 'tkn.secret']);
  equal(host.socket.url, 'ws:/host/ahp');
  equal([store.connection.status, store.root()], ['live', { agents: [] }]);
}

export async function what_is_done_without_a_connection_is_sent_when_it_is_back() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isUp = false;
  host.drop();
  await settle();
  equal(store.connection.status, 'waiting');
  const sent = store.dispatch(CHAT, { type: 'chat/isReadChanged', isRead: true });
  equal([store.state(CHAT).status & 32, store.confirmed(CHAT).status & 32, sent.status], [32, 0, 'sent']);
  await pass(20_000);
  equal(host.dispatched(), []);
  host.isUp = true;
  store.connection.retryNow();
  await settle();
  equal(store.connection.status, 'live');
  equal(host.sent.find(({ method }) => method === 'reconnect').params.subscriptions, ['ahp-root://', CHAT]);
  equal(host.dispatched().map(({ clientSeq }) => clientSeq), [1]);
  host.act(CHAT, sent.action, { origin: { clientId: 'me', clientSeq: 1 } });
  equal([(await sent.done).status, store.confirmed(CHAT).status & 32], ['confirmed', 32]);
}

export async function a_frozen_connection_is_given_up_two_seconds_after_somebody_looks() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isFrozen = true;
  await pass(5_000);
  store.look();
  await pass(1_900);
  equal([store.connection.status, host.sockets.length], ['live', 1]);
  host.isFrozen = false;
  host.answers.ping = () => null;
  await pass(2_000);
  equal([store.connection.status, host.sockets.length, host.sockets[0].isClosed], ['live', 2, true]);
}

export async function a_host_that_is_silent_after_an_action_is_asked_whether_it_is_there() {
  const host = new Host();
  const { store, statuses } = await openChat(host);
  host.isFrozen = true;
  await pass(1_000);
  const sent = store.dispatch(CHAT, approve);
  await pass(2_900);
  equal(host.sent.at(-1).method, 'dispatchAction');
  await pass(200);
  equal(host.sent.at(-1).method, 'ping');
  host.isFrozen = false;
  await pass(6_000);
  equal([statuses.includes('waiting'), host.sockets.length, sent.status], [true, 2, 'sent']);
  // Nothing happened on the chat meanwhile: it is sent again, and only then answered.
  equal(host.dispatched().map(({ clientSeq }) => clientSeq), [1, 1]);
}

export async function what_was_on_its_way_is_not_taken_for_an_answer() {
  const host = new Host();
  const { store, statuses } = await openChat(host);
  host.isFrozen = true;
  await pass(1_000);
  store.look();
  await pass(100);
  // It left the host before it hung.
  host.act(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one' });
  await pass(1_950);
  equal([store.connection.status, host.sockets.length], ['live', 1]);
  await pass(2_000);
  equal([statuses.includes('waiting'), host.sockets[0].isClosed], [true, true]);
}

export async function what_is_heard_at_the_moment_of_asking_is_not_taken_for_an_answer() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isFrozen = true;
  host.act(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one' });
  store.look();
  await pass(2_100);
  equal(host.sockets[0].isClosed, true);
}

export async function a_long_message_that_holds_the_answer_up_does_not_end_the_connection() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isFrozen = true;
  store.look();
  for (let part = 0; part < 5; part += 1) {
    await pass(1_500);
    host.act(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one' });
  }
  host.isFrozen = false;
  await pass(10_000);
  equal([store.connection.status, host.sockets.length], ['live', 1]);
}

export async function a_host_that_refuses_to_be_asked_is_there() {
  const host = new Host();
  const { store } = await openChat(host);
  host.answers.ping = () => {
    throw { code: -32601, message: 'not served' };
  };
  store.look();
  await pass(10_000);
  equal([store.connection.status, host.sent.filter(({ method }) => method === 'ping').length], ['live', 1]);
}

export async function an_action_that_is_not_answered_counts_more_than_what_else_is_heard() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isFrozen = true;
  store.dispatch(CHAT, approve);
  await pass(100);
  host.act(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one' });
  await pass(3_000);
  equal(host.sent.at(-1).method, 'ping');
  await pass(2_000);
  equal(host.sockets[0].isClosed, true);
}

export async function a_token_that_counts_no_more_ends_it() {
  const host = new Host();
  host.isUp = false;
  const { store } = await open(host, { checkToken: async () => 'refused' });
  equal(store.connection.status, 'signed-out');
  await pass(60_000);
  equal(host.sockets.length, 1, 'attempts');
}

export async function a_client_id_that_was_taken_is_taken_back_only_when_asked() {
  const host = new Host();
  const { store } = await open(host);
  host.drop(1_008, 'another connection took this client id');
  await pass(60_000);
  equal([store.connection.status, host.sockets.length], ['other-tab', 1]);
  store.connection.retryNow();
  await settle();
  equal([store.connection.status, host.sockets.length], ['live', 2]);
}

export async function attempts_become_rare_and_never_end() {
  const host = new Host();
  host.isUp = false;
  const { store } = await open(host);
  await pass(120_000);
  const early = host.sockets.length;
  await pass(100_000);
  const late = host.sockets.length - early;
  equal([store.connection.status, early > 12, late >= 10, late < 60], ['waiting', true, true, true], `${early}, ${late}`);
  host.isUp = true;
  await pass(10_000);
  equal(store.connection.status, 'live');
}

export async function what_comes_before_the_states_is_not_lost() {
  const host = new Host();
  const { store } = await openChat(host);
  host.answers.reconnect = () => {
    // The host goes on while it answers.
    const missed = host.envelope(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one ' });
    const next = host.envelope(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'two' });
    host.tell({ method: 'action', params: next });
    return { type: 'replay', actions: [missed], missing: [] };
  };
  host.drop();
  await pass(200);
  equal(store.state(CHAT).activeTurn.responseParts[0].content, 'one two');
}

export async function a_watcher_that_acts_when_it_is_told_loses_nothing_of_a_replay() {
  const host = new Host();
  const { store, changes } = await openChat(host);
  store.watch(CHAT, () => {
    // As a page does that shows the chat: what is on screen is read.
    if (!store.isPending(CHAT, () => true) && !(store.state(CHAT).status & 32)) store.dispatch(CHAT, { type: 'chat/isReadChanged', isRead: true });
  });
  await settle();
  host.act(CHAT, { type: 'chat/isReadChanged', isRead: true }, { origin: { clientId: 'me', clientSeq: 1 } });
  host.act(CHAT, { type: 'chat/isReadChanged', isRead: false });
  host.act(CHAT, { type: 'chat/isReadChanged', isRead: true }, { origin: { clientId: 'me', clientSeq: 2 } });
  await settle();
  changes.length = 0;
  host.answers.reconnect = () => ({
    type: 'replay', missing: [],
    actions: [
      { type: 'chat/isReadChanged', isRead: false },
      { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one' },
      { type: 'chat/turnComplete', turnId: 't1', duration: 5 },
    ].map((action) => host.envelope(CHAT, action)),
  });
  host.drop();
  await pass(200);
  equal([store.connection.status, store.state(CHAT).activeTurn], ['live', undefined]);
  equal(changes.some(({ kind }) => kind === 'list' || kind === 'all' || kind === 'turn'), true, JSON.stringify(changes));
}

export async function watchers_behind_one_that_acts_are_told_what_is_so_now() {
  const host = new Host();
  const { store } = await openChat(host);
  let isArmed = false;
  store.watch(CHAT, () => {
    if (!isArmed) return;
    isArmed = false;
    store.dispatch(CHAT, { type: 'chat/isReadChanged', isRead: true });
  });
  const heard = [];
  store.watch(CHAT, (state) => heard.push(state.status & 32));
  await settle();
  isArmed = true;
  host.act(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'one' });
  equal(heard.at(-1), 32);
}

export async function a_host_that_forgot_the_client_is_introduced_to_anew() {
  const host = new Host();
  const { store, changes } = await openChat(host);
  host.answers.reconnect = () => {
    throw { code: -32008, message: 'this host does not know the client' };
  };
  host.states[CHAT] = { ...waitingChat(), title: 'another' };
  host.drop();
  await pass(200);
  equal([store.connection.status, store.state(CHAT).title, changes.at(-1)], ['live', 'another', { kind: 'all' }]);
}

export async function a_message_that_cannot_be_read_starts_over() {
  const host = new Host();
  const { store } = await openChat(host);
  host.tell({ method: 'action', params: { channel: CHAT } });
  await pass(200);
  equal([store.connection.status, host.sockets.length], ['live', 2]);
}

export async function a_page_of_another_version_is_said_after_the_host_is_back() {
  const host = new Host();
  const { store } = await open(host, { isPageCurrent: async () => false });
  equal(store.connection.status, 'live');
  host.drop();
  await pass(200);
  equal([store.connection.status, store.connection.isLive], ['new-version', true]);
}

export async function an_approval_is_confirmed_by_its_echo_alone() {
  const host = new Host();
  const { store, changes } = await openChat(host);
  const sent = store.dispatch(CHAT, approve);
  equal([sent.status, store.isPending(CHAT, ({ toolCallId }) => toolCallId === 'c1')], ['sent', true]);
  equal(store.state(CHAT).activeTurn.responseParts[1].toolCall.status, 'running', 'shown ahead');
  equal(store.confirmed(CHAT).activeTurn.responseParts[1].toolCall.status, 'pending-confirmation');
  equal(changes.at(-1), { kind: 'part', turnId: 't1', partId: 'c1' });
  host.act(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'x' });
  equal([sent.status, changes.at(-1).kind], ['sent', 'append'], 'something else happened');
  host.act(CHAT, approve, { origin: { clientId: 'me', clientSeq: 1 } });
  equal([await sent.done, store.isPending(CHAT, () => true)], [{ status: 'confirmed' }, false]);
}

export async function an_approval_that_somebody_else_gave_first_says_so() {
  const host = new Host();
  const { store } = await openChat(host);
  const sent = store.dispatch(CHAT, approve);
  host.act(CHAT, { ...approve, approved: false }, { origin: { clientId: 'other', clientSeq: 4 } });
  host.refuse(CHAT, approve, 'me', 1, 'it does not wait');
  equal(await sent.done, { status: 'answered-elsewhere', reason: 'it does not wait' });
  equal(store.state(CHAT).activeTurn.responseParts[1].toolCall.status, 'cancelled');
}

export async function an_approval_that_was_refused_can_be_given_again() {
  const host = new Host();
  const { store } = await openChat(host);
  const sent = store.dispatch(CHAT, approve);
  host.refuse(CHAT, approve, 'me', 1, 'the disk is full');
  equal(await sent.done, { status: 'refused', reason: 'the disk is full' });
  equal(store.state(CHAT).activeTurn.responseParts[1].toolCall.status, 'pending-confirmation');
}

export async function an_approval_on_a_connection_that_was_lost_is_not_known_if_the_chat_went_on() {
  const host = new Host();
  const { store } = await openChat(host);
  const sent = store.dispatch(CHAT, approve);
  host.answers.reconnect = () => ({
    type: 'replay', missing: [],
    actions: [host.envelope(CHAT, { type: 'chat/delta', turnId: 't1', partId: 'p1', content: 'x' })],
  });
  host.drop();
  await pass(200);
  equal([(await sent.done).status, host.dispatched().length], ['unknown', 1]);
  equal(store.state(CHAT).activeTurn.responseParts[1].toolCall.status, 'pending-confirmation', 'it still waits');
  const again = store.dispatch(CHAT, approve);
  host.act(CHAT, approve, { origin: { clientId: 'me', clientSeq: 2 } });
  equal((await again.done).status, 'confirmed');
}

export async function an_approval_is_not_known_if_the_states_were_replaced_before_its_echo() {
  const host = new Host();
  const { store } = await openChat(host);
  const sent = store.dispatch(CHAT, approve);
  host.answers.reconnect = () => ({ type: 'snapshot', snapshots: ['ahp-root://', CHAT].map((channel) => host.snapshot(channel)) });
  host.drop();
  await pass(200);
  equal([(await sent.done).status, host.dispatched().length], ['unknown', 1]);
  equal(store.state(CHAT).activeTurn.responseParts[1].toolCall.status, 'pending-confirmation', 'it still waits');
}

export async function an_approval_is_not_known_if_a_host_that_was_started_anew_has_forgotten_the_client() {
  const host = new Host();
  const { store } = await openChat(host);
  const sent = store.dispatch(CHAT, approve);
  host.answers.reconnect = () => {
    throw { code: -32008, message: 'this host does not know the client' };
  };
  host.drop();
  await pass(200);
  equal([(await sent.done).status, host.dispatched().length], ['unknown', 1]);
}

export async function an_approval_is_not_known_though_the_replay_has_the_echo_of_something_else() {
  for (const more of [{}, { rejectionReason: 'no' }]) {
    const host = new Host();
    const { store } = await openChat(host);
    const read = store.dispatch(CHAT, { type: 'chat/isReadChanged', isRead: true });
    const sent = store.dispatch(CHAT, approve);
    host.answers.reconnect = () => ({
      type: 'replay', missing: [],
      actions: [host.envelope(CHAT, read.action, { origin: { clientId: 'me', clientSeq: 1 }, ...more })],
    });
    host.drop();
    await pass(200);
    const first = more.rejectionReason === undefined ? 'confirmed' : 'refused';
    equal([(await read.done).status, (await sent.done).status], [first, 'unknown']);
    store.close();
  }
}

export async function an_approval_that_was_refused_in_a_replay_is_not_confirmed_by_what_came_before_it() {
  const host = new Host();
  const { store } = await openChat(host);
  const read = store.dispatch(CHAT, { type: 'chat/isReadChanged', isRead: true });
  const sent = store.dispatch(CHAT, approve);
  const own = (clientSeq) => ({ origin: { clientId: 'me', clientSeq } });
  host.answers.reconnect = () => ({
    type: 'replay', missing: [],
    actions: [host.envelope(CHAT, read.action, own(1)), host.envelope(CHAT, approve, { ...own(2), rejectionReason: 'no' })],
  });
  host.drop();
  await pass(200);
  equal([(await read.done).status, (await sent.done).status], ['confirmed', 'refused']);
}

export async function what_is_taken_unheard_is_confirmed_by_the_next_answer() {
  const host = new Host();
  const { store } = await openChat(host);
  const unheard = store.dispatch('ahp-chat:/elsewhere', { type: 'chat/isReadChanged', isRead: true });
  const heard = store.dispatch(CHAT, { type: 'chat/isReadChanged', isRead: true });
  equal(unheard.status, 'sent');
  host.act(CHAT, heard.action, { origin: { clientId: 'me', clientSeq: 2 } });
  equal([(await unheard.done).status, (await heard.done).status], ['confirmed', 'confirmed']);
}

export async function a_chat_is_left_some_time_after_its_last_watcher_unless_an_answer_is_waited_for() {
  const host = new Host();
  host.states[CHAT] = waitingChat();
  const { store } = await open(host);
  const release = store.watch(CHAT, () => {});
  await settle();
  const sent = store.dispatch(CHAT, approve);
  release();
  const left = () => host.sent.filter(({ method }) => method === 'unsubscribe').length;
  await pass(2_000);
  host.act(CHAT, { type: 'chat/activityChanged', activity: 'a' });
  await pass(8_000);
  equal(left(), 0, 'left while an answer was waited for');
  host.act(CHAT, approve, { origin: { clientId: 'me', clientSeq: 1 } });
  equal((await sent.done).status, 'confirmed');
  await pass(6_000);
  equal([left(), store.state(CHAT)], [1, undefined]);
}

export async function a_screen_that_fails_does_not_end_the_connection() {
  const host = new Host();
  const { store } = await openChat(host);
  const heard = [];
  store.watch(CHAT, () => {
    throw new Error('cannot be drawn');
  });
  store.watch(CHAT, (state, [change]) => heard.push(state.activity, change.kind));
  host.act(CHAT, { type: 'chat/activityChanged', activity: 'a' });
  await pass(200);
  equal([heard, store.connection.status, host.sockets.length], [['a', 'all'], 'live', 1]);
}

export async function a_channel_that_is_refused_says_why() {
  const host = new Host();
  const { store } = await open(host);
  let calls = 0;
  store.watch('ahp-chat:/none', (state) => {
    equal(state, undefined);
    calls += 1;
  });
  await settle();
  equal([calls, store.errorOf('ahp-chat:/none').message], [1, 'not found']);
}

const pings = (host) => host.sent.filter(({ method }) => method === 'ping').length;

export async function the_host_is_asked_one_question_at_a_time_however_often_somebody_looks() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isFrozen = true;
  for (let look = 0; look < 5; look += 1) {
    store.look();
    await pass(100);
  }
  equal(pings(host), 1);
  host.isFrozen = false;
  await pass(3_000);
  store.look();
  await settle();
  equal([pings(host), store.connection.status], [2, 'live'], 'and again once it was answered');
}

export async function who_looks_does_not_wait_for_the_patience_of_another() {
  const host = new Host();
  const { store } = await openChat(host);
  host.isFrozen = true;
  await pass(20_000);
  equal(pings(host), 1, 'nothing was heard for long');
  store.look();
  await pass(2_100);
  equal([pings(host), host.sockets[0].isClosed], [2, true]);
}

export async function after_many_reconnects_the_host_is_asked_as_often_as_after_one() {
  const host = new Host();
  const { store } = await openChat(host);
  for (let loss = 0; loss < 5; loss += 1) {
    host.drop();
    await pass(10_000);
    equal(store.connection.status, 'live');
  }
  await pass(20_000);
  const before = pings(host);
  await pass(60_000);
  equal(pings(host) - before, 3);
}

export async function a_connection_that_ends_while_its_last_answer_is_taken_is_not_live() {
  const host = new Host();
  const { initialize } = host.answers;
  host.answers.initialize = (params) => {
    host.answers.initialize = initialize;
    Promise.resolve().then(() => host.drop());
    return initialize(params);
  };
  host.states[CHAT] = waitingChat();
  const { store, statuses } = await open(host);
  equal([store.connection.isLive, statuses.includes('live')], [false, false]);
  await pass(200);
  equal([store.connection.status, host.sockets.length], ['live', 2]);
  const before = pings(host);
  await pass(60_000);
  equal(pings(host) - before, 3, 'of the one connection');
}
