// What a session is made of and what its chat used, for the third column: agent, folders, who is here, tokens, cost. Must not know: turns.

import { fill, h, onFrame } from '../ui/dom.js';
import { tellValue } from '../ui/form.js';
import { writeOutName } from '../ui/visible.js';
import { ageInWords, pathOf, textOf } from './format.js';
import { modifiedAt, stateInWords } from './summary.js';
import { contextPercent, describeUsage } from './usage.js';

/** @type {import('./shell.js').Mount} */
export function mountDetails(container, { store, route: first }) {
  let route = first;
  const list = h('dl.details-list');
  fill(container, h('div.scroller', null, list));
  /** @type {any} */
  let session = null;
  /** @type {any} */
  let chat;
  /** @type {string | undefined} */
  let chatUri;
  let releaseChat = () => {};
  const row = (/** @type {string} */ name, /** @type {any} */ ...values) => (values.flat().filter(Boolean).length > 0 ? [h('dt', null, name), h('dd', { dir: 'auto' }, values)] : []);

  function openChat() {
    const uri = route.chat ?? session?.defaultChat;
    if (!uri || uri === chatUri) return; // not known yet, or open already
    releaseChat();
    chatUri = uri;
    chat = undefined;
    releaseChat = store.watch(uri, (/** @type {any} */ state, /** @type {any[]} */ changes) => {
      chat = state;
      if (changes.some((change) => change.kind !== 'append' && change.kind !== 'part')) onFrame(draw);
    });
  }

  /** @param {any} agent */
  function drawUsage(agent) {
    const usages = [...(chat?.turns ?? []), chat?.activeTurn].map((turn) => turn?.usage).filter(Boolean);
    const all = describeUsage(usages);
    const percent = contextPercent(usages, agent?.models ?? []);
    return [
      row('Last turn', usages.length > 1 && describeUsage(usages.slice(-1))),
      row('In all', all && all + (chat?.turnsNextCursor === undefined ? '' : ' (without earlier turns)')),
      row('Context', percent !== null && `${percent} % used`),
    ];
  }

  function draw() {
    const summary = store.sessions().find((/** @type {any} */ one) => one.resource === route.session) ?? session;
    if (!session || !summary) return; // on its way
    const agent = (store.root()?.agents ?? []).find((/** @type {any} */ one) => one.provider === session.provider);
    const clients = (session.activeClients ?? []).map((/** @type {any} */ one) => writeOutName(textOf(one.displayName) || textOf(one.clientId)));
    const workers = (session.chats ?? []).filter((/** @type {any} */ one) => one.origin?.kind === 'tool').length;
    const config = Object.entries(session.config?.schema?.properties ?? {}).map(([key, property]) => [textOf(/** @type {any} */ (property).title) || key, property, session.config.values?.[key]]);
    fill(list,
      row('State', stateInWords(summary)),
      row('Agent', writeOutName(textOf(agent?.displayName) || session.provider)),
      row('Folders', (session.workingDirectories ?? []).map((/** @type {string} */ uri) => h('div.mono', null, pathOf(uri)))),
      row('Chats', String((session.chats ?? []).length - workers)),
      row('Workers', workers > 0 && String(workers)),
      row('Here now', clients.map((/** @type {string} */ name) => h('div', null, name))),
      row('Used', ageInWords(modifiedAt(summary))),
      drawUsage(agent),
      config.filter(([, , value]) => value !== undefined).map(([name, property, value]) => row(String(name), tellValue(property, value))));
  }
  const release = store.watch(route.session, (/** @type {any} */ state) => {
    session = state;
    openChat();
    onFrame(draw);
  });
  const releaseSessions = store.onSessions(() => onFrame(draw));
  return {
    update(next) {
      route = next;
      openChat();
      onFrame(draw);
    },
    unmount() {
      release();
      releaseSessions();
      releaseChat();
    },
  };
}
