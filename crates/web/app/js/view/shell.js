// The frame around all screens: one, two or three columns, tabs on a phone, the state of the connection.
// Promises: the state of the connection is always on screen; every screen has an address, and a change of the address is the only
// way to another screen. Must not know: what is in a screen.

import { h, fill, icon, setAttribute, setData, setText, show } from '../ui/dom.js';
import { onFrame } from '../ui/frame.js';
import { formatRoute, isSamePlace, readRoute } from './route.js';
import { mountInbox } from './inbox.js';
import { mountSessions } from './sessions.js';
import { createSlot } from './slot.js';
import { watchConnection } from './connection.js';

/** @typedef {import('./route.js').Route} Route */

/** How each screen is loaded. What a first visit does not need comes when it is asked for. @type {Record<string, () => Promise<import('./slot.js').Mount>>} */
const SCREENS = {
  sessions: async () => mountSessions,
  inbox: async () => mountInbox,
  session: async () => (await import('./session.js')).mountSession,
  new: async () => (await import('./new_session.js')).mountNewSession,
  settings: async () => (await import('./settings.js')).mountSettings,
  changes: async () => (await import('./changes.js')).mountChanges,
  prompt: async () => (await import('./prompt.js')).mountPrompt,
  details: async () => (await import('./details.js')).mountDetails,
};

const TWO_COLUMNS = matchMedia('(min-width: 900px)');
const THREE_COLUMNS = matchMedia('(min-width: 1300px)');

/** The element of that id, which index.html has. @param {string} id @returns {any} */
const place = (id) => document.getElementById(id);

/** @param {{store: any}} given */
export function startShell({ store }) {
  const app = place('app');
  const side = createSlot(place('side'));
  const main = createSlot(place('main'));
  const panel = createPanel(place('panel'));
  /** @type {Route} */
  let route = readRoute(location.hash);
  /** @type {((route: Route) => void)[]} */
  const routeListeners = [];

  /** @param {Route} next @param {{replace?: boolean}} [how] */
  function navigate(next, how = {}) {
    const hash = formatRoute(next);
    if (hash === location.hash) return;
    if (how.replace) history.replaceState({ depth: depth() }, '', hash);
    else history.pushState({ depth: depth() + 1 }, '', hash);
    draw();
  }

  /** Where the page's own history has something to go back to, goes back; else to that place. @param {Route} otherwise */
  function goBack(otherwise) {
    if (depth() > 0) history.back();
    else navigate(otherwise, { replace: true });
  }

  const context = () => ({ store, route, navigate, goBack });

  function draw() {
    const before = route;
    route = readRoute(location.hash);
    const columns = THREE_COLUMNS.matches ? 3 : TWO_COLUMNS.matches ? 2 : 1;
    setData(app, 'screen', route.screen);
    setData(app, 'columns', columns);
    if (columns === 1) side.clear();
    else side.show('sessions', SCREENS.sessions, context());
    drawMain(columns);
    drawPanel(columns);
    drawTabs(route);
    if (!isSamePlace(before, route)) document.getElementById('main')?.scrollTo(0, 0);
    for (const listener of routeListeners) listener(route);
  }

  /** @param {number} columns */
  function drawMain(columns) {
    if (route.screen === 'sessions' && columns > 1) {
      main.show('none', async () => mountNothing, context());
    } else if (columns === 3 && (route.screen === 'changes' || route.screen === 'prompt')) {
      // There they have a column of their own, beside the chat.
      main.show('session', SCREENS.session, context());
    } else {
      main.show(route.screen, SCREENS[route.screen], context());
    }
  }

  /** @param {number} columns */
  function drawPanel(columns) {
    const hasPanel = columns === 3 && route.session !== undefined;
    show(place('panel'), hasPanel);
    if (hasPanel) panel.show(context());
    else panel.clear();
  }

  const drawTabs = createTabs(place('tabs'), store);
  watchConnection(place('banner'), store);
  addEventListener('popstate', draw);
  addEventListener('hashchange', draw);
  TWO_COLUMNS.addEventListener('change', draw);
  THREE_COLUMNS.addEventListener('change', draw);
  draw();
  return {
    navigate,
    goBack,
    /** Goes to an address. @param {string} hash */
    open: (hash) => navigate(readRoute(hash)),
    route: () => route,
    /** @param {(route: Route) => void} listener */
    onRoute(listener) {
      routeListeners.push(listener);
      listener(route);
    },
  };
}

function depth() {
  return Number(history.state?.depth ?? 0);
}

/** What stands in the middle while no session is chosen. @type {import('./slot.js').Mount} */
function mountNothing(container, { navigate }) {
  container.append(h('div.empty', null,
    h('span.splash-mark', { 'aria-hidden': 'true' }),
    h('p.muted', null, 'Choose a session on the left, or start one.'),
    h('button.button.primary', { type: 'button', on: { click: () => navigate({ screen: 'new' }) } }, 'New session')));
  return { update() {}, unmount: () => fill(container) };
}

/** The third column: changes, prompt, details, one at a time. @param {HTMLElement} container */
function createPanel(container) {
  const tabs = h('div.panel-tabs', { role: 'tablist', 'aria-label': 'Beside the chat' });
  const body = h('div.panel-body', { role: 'tabpanel', id: 'panel-body', tabindex: '-1' });
  container.append(tabs, body);
  const slot = createSlot(body);
  const names = { changes: 'Changes', prompt: 'Prompt', details: 'Details' };
  /** @type {any} */
  let context = null;
  let chosen = 'changes';
  const buttons = Object.entries(names).map(([name, label]) => {
    const button = h('button.panel-tab', { type: 'button', role: 'tab', 'aria-controls': 'panel-body', data: { name }, text: label, on: { click: () => choose(name) } });
    tabs.append(button);
    return button;
  });
  tabs.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return; // no key of a tab list
    const next = buttons[(buttons.findIndex((button) => button.dataset.name === chosen) + step + buttons.length) % buttons.length];
    choose(next.dataset.name);
    next.focus();
  });

  /** @param {string} name */
  function choose(name) {
    chosen = name;
    draw();
  }

  function draw() {
    for (const button of buttons) {
      setAttribute(button, 'aria-selected', String(button.dataset.name === chosen));
      button.tabIndex = button.dataset.name === chosen ? 0 : -1;
    }
    slot.show(`${chosen} ${context.route.session}`, SCREENS[chosen], context);
  }

  return {
    /** @param {any} given */
    show(given) {
      context = given;
      if (given.route.screen === 'changes' || given.route.screen === 'prompt') chosen = given.route.screen;
      draw();
    },
    clear: () => slot.clear(),
  };
}

/** The tabs at the bottom of a phone. @param {HTMLElement} nav @param {any} store @returns {(route: Route) => void} */
function createTabs(nav, store) {
  /** @type {[Route['screen'], string, any][]} */
  const entries = [['sessions', 'Sessions', 'sessions'], ['inbox', 'Inbox', 'inbox'], ['new', 'New', 'plus']];
  const count = h('span.count', { hidden: true });
  const links = entries.map(([screen, label, shape]) =>
    h('a.tab', { href: formatRoute({ screen }), data: { screen } }, icon(shape), h('span', null, label), screen === 'inbox' && count));
  nav.append(...links);
  const drawCount = () => {
    const waiting = store.inbox().length;
    setText(count, waiting);
    setAttribute(count, 'aria-label', `${waiting} waiting`);
    show(count, waiting > 0);
  };
  store.onInbox(() => onFrame(drawCount));
  drawCount();
  return (route) => {
    for (const link of links) setAttribute(link, 'aria-current', link.dataset.screen === route.screen && 'page');
  };
}
