import { createStore } from '../../app/js/state/store.js';
import { beginFirstFlight } from '../../app/js/wire/connection.js';
import { CHAT, Host, equal, pass, settle, storage, waitingChat } from './world.js';

const URL = 'ws:/host/ahp';
const summary = (number) => ({ resource: `x:/${number}`, title: `${number}`, status: 1, modifiedAt: `2026-01-01T00:00:0${number}Z` });
const begin = () => beginFirstFlight(URL, 'secret', Promise.resolve('me'));

/** The store of a page whose modules are there now. */
async function open(first) {
  const store = createStore({
    url: URL, token: 'secret', clientId: 'me', storage: storage(), checkToken: async () => 'unreachable', isPageCurrent: async () => true, first,
  });
  await settle();
  return store;
}

const methods = (host) => host.sent.map(({ method }) => method);
const titles = (store) => store.sessions().map(({ title }) => title);

export async function the_list_is_asked_for_with_the_handshake_and_taken_when_the_page_is_there() {
  const host = new Host();
  host.answers.listSessions = () => ({ items: [summary(1), summary(2)] });
  const first = await begin();
  await settle();
  equal([methods(host), host.socket.protocols], [['initialize', 'listSessions'], ['ahp', 'tkn.secret']]);
  equal(host.sent[0].params.initialSubscriptions, ['ahp-root://']);
  const store = await open(first);
  equal([store.connection.status, titles(store), store.root()], ['live', ['2', '1'], { agents: [] }]);
  equal([methods(host), host.sockets.length], [['initialize', 'listSessions'], 1], 'nothing is asked twice');
}

export async function a_page_that_is_there_before_the_answers_waits_for_them() {
  const host = new Host();
  host.isFrozen = true;
  const first = await begin();
  const store = await open(first);
  store.watch(CHAT, () => {});
  equal([store.connection.status, titles(store)], ['connecting', []], 'nothing is shown that the host did not say');
  host.isFrozen = false;
  host.states[CHAT] = waitingChat();
  host.tell({ id: 1, result: host.answers.initialize(host.sent[0].params) });
  host.tell({ id: 2, result: { items: [summary(1)] } });
  await settle();
  equal([store.connection.status, titles(store), store.state(CHAT).turns], ['live', ['1'], []]);
}

export async function what_is_heard_before_the_page_is_there_counts() {
  const host = new Host();
  host.answers.listSessions = () => ({ items: [summary(1), summary(2), summary(3)] });
  const first = await begin();
  await settle();
  host.tell({ method: 'root/sessionSummaryChanged', params: { session: 'x:/1', changes: { title: 'renamed' } } });
  host.tell({ method: 'root/sessionRemoved', params: { session: 'x:/2' } });
  host.tell({ method: 'root/sessionAdded', params: { summary: summary(9) } });
  host.act('ahp-root://', { type: 'root/agentsChanged', agents: [{ provider: 'x', displayName: 'x', description: '', models: [] }] });
  const store = await open(first);
  equal([titles(store), store.root().agents.length], [['9', '3', 'renamed'], 1]);
}

export async function a_host_that_cannot_be_reached_is_tried_again() {
  const host = new Host();
  host.isUp = false;
  host.answers.listSessions = () => ({ items: [summary(1)] });
  const first = await begin();
  await settle();
  const store = await open(first);
  equal([store.connection.status, host.sockets.length], ['waiting', 1]);
  host.isUp = true;
  await pass(200);
  equal([store.connection.status, titles(store), methods(host)], ['live', ['1'], ['initialize', 'listSessions']]);
}

export async function a_connection_that_ended_before_the_page_was_there_is_not_live() {
  const host = new Host();
  host.answers.listSessions = () => ({ items: [summary(1)] });
  const first = await begin();
  await settle();
  host.drop();
  const store = await open(first);
  equal([store.connection.status, store.connection.isLive], ['waiting', false]);
  await pass(200);
  equal([store.connection.status, titles(store), host.sockets.length], ['live', ['1'], 2]);
}

export async function a_host_that_refuses_the_token_is_believed() {
  const host = new Host();
  host.isUp = false;
  const first = await begin();
  await settle();
  const store = createStore({ url: URL, token: 'secret', clientId: 'me', storage: storage(), checkToken: async () => 'refused', first });
  await settle();
  equal(store.connection.status, 'signed-out');
}
