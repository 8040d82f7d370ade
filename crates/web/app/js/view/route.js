// Addresses of screens. Promises: every address that is written can be read back; one that cannot be read leads to the list of
// sessions. Must not know: how screens look.

/**
 * @typedef {object} Route
 * @property {'sessions' | 'inbox' | 'new' | 'settings' | 'session' | 'changes' | 'prompt' | 'terminal'} screen
 * @property {string} [session] the URI of the session
 * @property {string} [chat] the URI of the chat; without one, the session's default chat
 * @property {string} [turn] a turn to go to
 * @property {string} [changes] which changes are shown, by the last part of their address, if not those of a turn
 * @property {string} [call] the model call that the prompt screen shows
 * @property {string} [terminal] the URI of the terminal that is open
 * @property {string} [ask] the request whose sheet is open over the screen, as `askKey` names it
 */

// The common schemes are left out of addresses; any other URI is kept whole.
const SESSION = 'ahp-session:/';
const CHAT = 'ahp-chat:/';
const TERMINAL = 'ahp-terminal:/';
const HAS_SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** @param {string} uri @param {string} scheme */
function shorten(uri, scheme) {
  const rest = uri.startsWith(scheme) ? uri.slice(scheme.length) : '';
  return encodeURIComponent(rest !== '' && !HAS_SCHEME.test(rest) ? rest : uri);
}

/** @param {string} text @param {string} scheme */
function lengthen(text, scheme) {
  const uri = decodeURIComponent(text);
  return HAS_SCHEME.test(uri) ? uri : scheme + uri;
}

/** @param {Route} route @returns {string} what stands behind the address of the page */
export function formatRoute(route) {
  const ask = route.ask ? `?ask=${encodeURIComponent(route.ask)}` : '';
  if (!route.session) return route.screen === 'sessions' ? `#/${ask}` : `#/${route.screen}${ask}`;
  let path = `#/s/${shorten(route.session, SESSION)}`;
  if (route.chat) path += `/c/${shorten(route.chat, CHAT)}`;
  if (route.turn) path += `/t/${encodeURIComponent(route.turn)}`;
  if (route.screen === 'changes' || route.screen === 'prompt') path += `/${route.screen}`;
  if (route.screen === 'changes' && route.changes) path += `/${encodeURIComponent(route.changes)}`;
  if (route.screen === 'terminal' && route.terminal) path += `/terminal/${shorten(route.terminal, TERMINAL)}`;
  if (route.screen === 'prompt' && route.call) path += `/${encodeURIComponent(route.call)}`;
  return path + ask;
}

/** @param {string} hash @returns {Route} */
export function readRoute(hash) {
  try {
    const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
    const route = readPath(path.split('/').filter((part) => part !== ''));
    const ask = new URLSearchParams(query).get('ask');
    return ask ? { ...route, ask } : route;
  } catch {
    return { screen: 'sessions' }; // not an address of ours: `decodeURIComponent` refused it
  }
}

/** @param {string[]} parts @returns {Route} */
function readPath(parts) {
  const [first, session, ...rest] = parts;
  if (first === 'inbox' || first === 'new' || first === 'settings') return { screen: first };
  if (first !== 's' || !session) return { screen: 'sessions' };
  /** @type {Route} */
  const route = { screen: 'session', session: lengthen(session, SESSION) };
  while (rest.length > 0) {
    const part = rest.shift();
    if (part === 'c' && rest.length > 0) route.chat = lengthen(rest.shift() ?? '', CHAT);
    else if (part === 't' && rest.length > 0) route.turn = decodeURIComponent(rest.shift() ?? '');
    else if (part === 'terminal' && rest.length > 0) {
      route.screen = 'terminal';
      route.terminal = lengthen(rest.shift() ?? '', TERMINAL);
    } else if (part === 'changes' || part === 'prompt') {
      route.screen = part;
      if (rest.length > 0) route[part === 'changes' ? 'changes' : 'call'] = decodeURIComponent(rest.shift() ?? '');
    }
  }
  return route;
}

/** @param {Route} a @param {Route} b @returns {boolean} whether both lead to the same place, whatever sheet is open */
export function isSamePlace(a, b) {
  return formatRoute({ ...a, ask: undefined }) === formatRoute({ ...b, ask: undefined });
}

/** Names a request in an address. @param {{chatUri: string, requestId?: string, toolCallId?: string}} entry */
export function askKey(entry) {
  return `${entry.toolCallId ?? entry.requestId ?? ''}@${entry.chatUri}`;
}
