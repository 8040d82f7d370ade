import { createStore } from '../../app/js/state/store.js';
import { Drafts } from '../../app/js/state/draft.js';
import { TurnWindow } from '../../app/js/state/turn_window.js';
import { reduceChat } from '../../app/js/wire/reduce/chat.js';
import { CHAT, Host, approve, equal, pass, settle, storage, waitingChat } from './world.js';

const open = async () => {
  const store = createStore({
    url: 'ws:/host/ahp', clientId: 'me', storage: storage(), checkToken: async () => 'unreachable', isPageCurrent: async () => true,
  });
  await settle();
  return store;
};

const summary = (number, status = 1) => ({
  resource: `x:/${number}`, title: `${number}`, status, modifiedAt: `2026-01-01T00:00:${String(number % 60).padStart(2, '0')}Z`,
});

const session = (number, inputNeeded) => ({
  provider: 'x', title: `session ${number}`, status: 24, lifecycle: 'ready', activeClients: [],
  chats: [{ resource: CHAT, title: 'worker', status: 24, modifiedAt: '2026-01-01T00:00:00Z' }], inputNeeded,
});

const confirmation = { kind: 'toolConfirmation', id: 'n1', chat: CHAT, turnId: 't1', toolCall: { toolCallId: 'c1', status: 'pending-confirmation', confirmationTitle: { markdown: 'Run rm' } } };

export async function what_is_heard_while_the_list_is_on_its_way_counts() {
  const host = new Host();
  host.answers.listSessions = () => {
    const params = { channel: 'ahp-root://', session: 'x:/1', changes: { title: 'renamed' } };
    Promise.resolve().then(() => host.tell({ method: 'root/sessionSummaryChanged', params }));
    host.tell({ method: 'root/sessionRemoved', params: { session: 'x:/2' } });
    return { items: [summary(1), summary(2), summary(3)] };
  };
  const store = await open();
  equal(store.sessions().map(({ title }) => title), ['3', 'renamed']);
  host.tell({ method: 'root/sessionAdded', params: { summary: summary(9) } });
  equal(store.sessions().map(({ title }) => title), ['9', '3', 'renamed']);
}

export async function that_nothing_is_there_is_not_said_before_the_host_said_so() {
  const host = new Host();
  const pages = [];
  host.answers.listSessions = () => new Promise((give) => pages.push(give));
  const store = await open();
  const known = () => [store.connection.status, store.isListRead, store.isInboxRead];
  equal(known(), ['live', false, false]);
  pages[0]({ items: [summary(50)], nextCursor: 'more' });
  await settle();
  equal(known(), ['live', true, false], 'an old session may wait');
  let tell = () => {};
  host.states['x:/1'] = session(1, [confirmation]);
  const { subscribe } = host.answers;
  host.answers.subscribe = (params) => new Promise((give) => { tell = () => give(subscribe(params)); });
  pages[1]({ items: [summary(1, 24)] });
  await settle();
  equal([known(), store.inbox().length], [['live', true, false], 0], 'what it waits for is on its way');
  tell();
  await settle();
  equal([known(), store.inbox().length], [['live', true, true], 1]);
}

export async function a_session_that_is_not_in_the_list_and_changes_is_looked_for() {
  const host = new Host();
  const store = await open();
  host.answers.listSessions = () => ({ items: [summary(5)] });
  host.tell({ method: 'root/sessionSummaryChanged', params: { session: 'x:/5', changes: { status: 24 } } });
  await pass(400);
  equal(store.sessions().map(({ resource }) => resource), ['x:/5']);
}

export async function sessions_that_wait_are_found_behind_the_first_page() {
  const host = new Host();
  host.answers.listSessions = ({ cursor }) =>
    cursor === undefined ? { items: [summary(50)], nextCursor: 'more' } : { items: [summary(2), summary(1, 24)] };
  host.states['x:/1'] = session(1, [confirmation]);
  const store = await open();
  equal([store.sessions().map(({ title }) => title), store.hasMoreSessions], [['50', '1'], true]);
  equal(store.inbox().map(({ kind, title, sessionTitle, chatTitle }) => [kind, title, sessionTitle, chatTitle]), [
    ['confirm', 'Run rm', 'session 1', 'worker'],
  ]);
  await store.loadMoreSessions();
  equal([store.sessions().length, store.hasMoreSessions], [3, false]);
}

export async function at_most_fifty_sessions_are_watched_for_the_inbox() {
  const host = new Host();
  const items = Array.from({ length: 80 }, (_, number) => summary(number, 24));
  host.answers.listSessions = () => ({ items });
  for (const { resource } of items) {
    host.states[resource] = session(1, [confirmation]);
  }
  const store = await open();
  equal([store.inbox().length, host.sent.filter(({ method }) => method === 'subscribe').length], [50, 50]);
  host.tell({ method: 'root/sessionSummaryChanged', params: { session: store.inbox()[0].sessionUri, changes: { status: 1 } } });
  await settle();
  equal(store.inbox().length, 50, 'the next one takes its place');
}

export async function an_answer_is_sent_from_a_chat_that_is_watched_and_stays_until_the_host_says_so() {
  const host = new Host();
  host.answers.listSessions = () => ({ items: [summary(1, 24)] });
  host.states['x:/1'] = session(1, [confirmation]);
  host.states[CHAT] = waitingChat();
  const store = await open();
  const [item] = store.inbox();
  const sent = await store.answer(item, approve);
  const methods = host.sent.filter(({ params }) => params?.channel === CHAT).map(({ method }) => method);
  equal([methods, sent.status, store.inbox().length], [['subscribe', 'dispatchAction'], 'sent', 1]);
  host.act(CHAT, approve, { origin: { clientId: 'me', clientSeq: 1 } });
  equal([(await sent.done).status, store.inbox().length], ['confirmed', 1]);
  host.act('x:/1', { type: 'session/inputNeededRemoved', id: 'n1' });
  equal(store.inbox(), []);
}

const text = (value) => ({ text: value, origin: { kind: 'user' } });

function draftsOf(kept = storage()) {
  const sent = [];
  const drafts = new Drafts({ storage: kept, dispatch: (chat, action) => sent.push(action.draft?.text ?? null) });
  return { drafts, sent, kept };
}

export async function a_draft_is_kept_at_once_and_sent_when_the_typing_rests() {
  const { drafts, sent, kept } = draftsOf();
  drafts.set(CHAT, text('h'));
  await pass(400);
  drafts.set(CHAT, text('hello'));
  await pass(400);
  equal([sent, draftsOf(kept).drafts.get(CHAT).message.text], [[], 'hello']);
  await pass(200);
  equal(sent, ['hello']);
  drafts.clear(CHAT);
  equal([sent, draftsOf(kept).drafts.get(CHAT).message], [['hello', null], undefined]);
}

export async function a_foreign_draft_never_replaces_what_was_typed_here() {
  const { drafts, sent } = draftsOf();
  drafts.hear(CHAT, text('theirs'), false);
  equal(drafts.get(CHAT), { message: text('theirs') }, 'nothing was typed here');
  drafts.set(CHAT, text('mine'));
  drafts.hear(CHAT, text('theirs, longer'), false);
  equal(drafts.get(CHAT), { message: text('mine'), foreign: text('theirs, longer') });
  await pass(1_000);
  equal(sent, [], 'nobody chose yet');
  drafts.keepMine(CHAT);
  equal([sent, drafts.get(CHAT)], [['mine'], { message: text('mine') }]);
  drafts.hear(CHAT, text('theirs again'), false);
  drafts.useForeign(CHAT);
  equal(drafts.get(CHAT), { message: text('theirs again') });
}

export async function an_echo_is_not_foreign_and_a_draft_that_is_gone_elsewhere_leaves_mine() {
  const { drafts, sent } = draftsOf();
  drafts.set(CHAT, text('a'));
  await pass(600);
  drafts.set(CHAT, text('ab'));
  drafts.hear(CHAT, text('a'), true);
  equal(drafts.get(CHAT), { message: text('ab') });
  await pass(600);
  drafts.hear(CHAT, undefined, false);
  equal(drafts.get(CHAT), { message: text('ab') });
  await pass(600);
  equal(sent, ['a', 'ab', 'ab']);
}

export async function a_reload_that_finds_its_own_draft_on_the_host_asks_nothing() {
  const { kept } = draftsOf();
  const before = draftsOf(kept);
  before.drafts.set(CHAT, text('typed'));
  const { drafts } = draftsOf(kept);
  drafts.hear(CHAT, text('typed'), false);
  equal(drafts.get(CHAT), { message: text('typed') });
}

export async function what_was_typed_after_the_last_sync_is_no_conflict_after_a_reload() {
  const { kept } = draftsOf();
  const before = draftsOf(kept);
  before.drafts.set(CHAT, text('typed'));
  await pass(600);
  before.drafts.set(CHAT, text('typed and more'));
  const { drafts, sent } = draftsOf(kept);
  drafts.hear(CHAT, text('typed'), false);
  equal(drafts.get(CHAT), { message: text('typed and more') });
  await pass(600);
  equal(sent, ['typed and more']);
}

const turn = (number) => ({ id: `t${number}`, message: { text: `${number}` }, responseParts: [], state: 'complete' });

/** A host of many turns, four a page. */
function windowOf(total, most) {
  const all = Array.from({ length: total }, (_, number) => turn(number));
  const world = { renewed: 0, fetched: [] };
  const take = (from) => {
    world.state = { resource: CHAT, status: 1, turns: all.slice(from), turnsNextCursor: `before:t${from}` };
  };
  take(total - 4);
  world.act = (action) => {
    world.state = reduceChat(world.state, action).state;
  };
  world.window = new TurnWindow({
    stateOf: () => world.state,
    replace: (_, state) => {
      world.state = state;
    },
    fetch: async (_, cursor) => {
      world.fetched.push(cursor);
      await settle();
      const end = all.findIndex(({ id }) => `before:${id}` === cursor);
      const from = Math.max(end - 4, 0);
      const action = { type: 'chat/turnsLoaded', turns: all.slice(from, end), ...(from > 0 ? { turnsNextCursor: `before:t${from}` } : {}) };
      world.act(action);
      world.window.takePage(CHAT, action);
    },
    renew: () => {
      world.renewed += 1;
    },
  }, most);
  world.whole = () => world.state.turns.filter(({ isDropped }) => !isDropped).map(({ id }) => id);
  return world;
}

export async function pages_far_from_the_reader_are_dropped_and_fetched_again() {
  const world = windowOf(40, 16);
  while (await world.window.fetchOlder(CHAT)) {
    await world.window.readAt(CHAT, world.state.turns[0].id);
  }
  equal([world.state.turns.length, world.whole().length, world.state.turnsNextCursor], [40, 16, undefined]);
  equal([world.state.turns[0].isDropped, world.state.turns.at(-1).isDropped], [undefined, undefined], 'both ends are there');
  for (const { id } of world.state.turns) {
    await world.window.readAt(CHAT, id);
    equal([world.whole().includes(id), world.whole().length <= 16], [true, true], id);
  }
  equal([world.state.turns.map(({ id }) => id).join(), world.renewed], [Array.from({ length: 40 }, (_, n) => `t${n}`).join(), 0]);
}

export async function a_page_is_asked_for_once() {
  const world = windowOf(12, 100);
  await Promise.all([world.window.fetchOlder(CHAT), world.window.fetchOlder(CHAT)]);
  equal(world.fetched, ['before:t8']);
}

export async function a_cut_to_a_turn_that_was_dropped_is_answered_by_subscribing_anew() {
  const world = windowOf(40, 16);
  while (await world.window.fetchOlder(CHAT)) {
    await world.window.readAt(CHAT, world.state.turns[0].id);
  }
  const { id } = world.state.turns.findLast(({ isDropped }) => isDropped);
  world.act({ type: 'chat/truncated', turnId: id });
  world.window.takeList(CHAT);
  equal(world.renewed, 1);
}

export async function how_a_creation_goes_on_is_told_to_who_listens() {
  const host = new Host();
  host.answers.listSessions = () => ({ items: [] });
  const store = await open();
  const told = [];
  const release = store.onProgress(({ progressToken, progress, total }) => told.push([progressToken, progress, total]));
  host.tell({ method: 'root/progress', params: { channel: 'ahp-root://', progressToken: 'x:/1', progress: 1, total: 3 } });
  release();
  host.tell({ method: 'root/progress', params: { channel: 'ahp-root://', progressToken: 'x:/1', progress: 3, total: 3 } });
  equal(told, [['x:/1', 1, 3]]);
}
