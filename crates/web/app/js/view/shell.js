// The frame around all screens: one, two or three columns, tabs on a phone, the state of the connection.
// Promises: the state of the connection is always on screen; every screen has an address, and a change of the address is the only
// way to another screen. Must not know: what is in a screen.

import { fill, h, icon, loadStyles, onFrame, setAttribute, setData, setText, show } from '../ui/dom.js';
import { formatRoute, isSamePlace, readRoute } from './route.js';
import { mountSessions } from './sessions.js';
import { watchConnection } from './connection.js';

/** @typedef {import('./route.js').Route} Route */
/**
 * @typedef {object} Mounted
 * @property {(route: Route) => void} update
 * @property {() => void} unmount
 *
 * @typedef {object} ViewContext
 * @property {any} store
 * @property {Route} route
 * @property {(route: Route, how?: {replace?: boolean}) => void} navigate
 *
 * @typedef {(container: HTMLElement, context: ViewContext) => Mounted} Mount
 */

/** How each screen is loaded. What a first visit does not need comes when it is asked for. @type {Record<string, () => Promise<Mount>>} */
const SCREENS = {
  sessions: async () => mountSessions,
  inbox: async () => (await import('./inbox.js')).mountInbox,
  session: styled(async () => (await import('./session.js')).mountSession),
  new: styled(async () => (await import('./new_session.js')).mountNewSession),
  settings: styled(async () => (await import('./settings.js')).mountSettings),
  changes: styled(async () => (await import('./changes.js')).mountChanges),
  prompt: styled(async () => (await import('./prompt.js')).mountPrompt),
  terminal: styled(async () => (await import('./terminal.js')).mountTerminal),
  details: styled(async () => (await import('./details.js')).mountDetails),
};

/** A screen that is not drawn before the styles of chats and dialogs are there. @param {() => Promise<Mount>} load */
function styled(load) {
  return async () => (await Promise.all([load(), loadStyles()]))[0];
}

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
      main.show(route.terminal ? `${route.screen} ${route.terminal}` : route.screen, SCREENS[route.screen], context());
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

/** What stands in the middle while no session is chosen. @type {Mount} */
function mountNothing(container, { navigate }) {
  container.append(h('div.empty', null,
    h('span.splash-mark', { 'aria-hidden': 'true' }),
    h('p.muted', null, 'Choose a session on the left, or start one.'),
    h('button.button.primary', { on: { click: () => navigate({ screen: 'new' }) } }, 'New session')));
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
    const button = h('button.panel-tab', { role: 'tab', 'aria-controls': 'panel-body', data: { name }, text: label, on: { click: () => choose(name) } });
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

/**
 * A place on the page that holds one screen at a time. One that is left is unmounted; one that loads late does not replace one that
 * was asked for after it; one that cannot load says so and can be tried again.
 * @param {HTMLElement} container
 */
function createSlot(container) {
  /** @type {{name: string, mounted: Mounted | null} | null} */
  let current = null;
  let attempt = 0;

  /**
   * Shows a screen, or tells the one that is there where it is now.
   * @param {string} name screens with one name are one screen
   * @param {() => Promise<Mount>} load
   * @param {ViewContext} context
   */
  async function show(name, load, context) {
    if (current?.name === name) {
      current.mounted?.update(context.route);
      return;
    }
    clear();
    /** @type {{name: string, mounted: Mounted | null}} */
    const own = { name, mounted: null };
    current = own;
    const ours = ++attempt;
    latest = context;
    try {
      const mount = await load();
      if (ours !== attempt) return; // another screen was asked for meanwhile
      fill(container);
      own.mounted = mount(container, latest);
    } catch (error) {
      if (ours !== attempt) return; // nobody looks at it any more
      reportError(error);
      current = null;
      fill(container, failure(() => show(name, load, latest)));
    }
  }

  /** @type {any} */
  let latest = null;

  function clear() {
    attempt += 1;
    current?.mounted?.unmount();
    current = null;
    fill(container);
  }

  return { show, clear, name: () => current?.name ?? null };
}

/** @param {() => void} retry */
function failure(retry) {
  return h('div.empty', { role: 'alert' },
    h('h2', null, 'This screen did not load'),
    h('p.muted', null, 'The host may be restarting, or this page is older than the host.'),
    h('div.row', null,
      h('button.button', { on: { click: retry } }, 'Try again'),
      h('button.button', { on: { click: () => location.reload() } }, 'Reload')));
}
