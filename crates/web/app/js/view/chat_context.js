// What the views of one chat share: its address, its state, and the ways to the host.
//
// Promises: one cache of markup for the whole page; contents are read at most once while they are remembered. Must not know: elements.

import { Markup } from './markup.js';
import { api } from '../state/api.js';

/** Pictures that are kept as objects of this page. */
const PICTURES_MAX = 40;

/** What is shown as a picture. Anything else is a chip. */
const PICTURE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

/** @type {Markup | undefined} */
let sharedMarkup;

/** Urls of pictures, the oldest first. @type {Map<string, Promise<string | null>>} */
const pictures = new Map();

/**
 * @typedef {object} ChatContext
 * @property {any} store
 * @property {Markup} markup
 * @property {string} session
 * @property {string} chat
 * @property {(route: import('./route.js').Route, how?: { replace?: boolean }) => void} navigate
 * @property {() => any} chatState
 * @property {() => any} sessionState
 * @property {() => string[]} directories
 * @property {(action: Record<string, unknown>) => any} dispatch
 * @property {(uri: string) => Promise<string | null>} readText
 * @property {(ref: { uri?: string, contentType?: string, data?: string }) => Promise<string | null>} picture
 */

/** @returns {Markup} */
export function findMarkup() {
  sharedMarkup ??= new Markup(async (items) => {
    const answer = await api.markup(items);
    return Array.isArray(answer) ? answer : answer.items;
  });
  return sharedMarkup;
}

/**
 * @param {{ store: any, session: string, chat: string, navigate: ChatContext['navigate'], chatState: () => any, sessionState: () => any }} given
 * @returns {ChatContext}
 */
export function createChatContext(given) {
  const { store, chat } = given;
  return {
    ...given,
    markup: findMarkup(),
    directories: () => given.chatState()?.workingDirectories ?? given.sessionState()?.workingDirectories ?? [],
    dispatch: (action) => store.dispatch(chat, action),
    readText: (uri) => readText(store, uri),
    picture: (ref) => findPicture(store, ref),
  };
}

/** @param {any} store @param {string} uri */
async function readText(store, uri) {
  try {
    const read = await store.request('resourceRead', { channel: 'ahp-root://', uri, encoding: 'utf-8' });
    return read.encoding === 'utf-8' ? read.data : null;
  } catch {
    return null; // whoever asked says that it cannot be read, and offers to try again
  }
}

/** Whether something can be shown as a picture. @param {unknown} contentType */
export function isPicture(contentType) {
  return typeof contentType === 'string' && PICTURE_TYPES.has(contentType.toLowerCase().split(';')[0]?.trim() ?? '');
}

/** @param {any} store @param {{ uri?: string, contentType?: string, data?: string }} ref @returns {Promise<string | null>} */
function findPicture(store, ref) {
  const type = ref.contentType?.toLowerCase().split(';')[0]?.trim() ?? '';
  if (!PICTURE_TYPES.has(type)) return Promise.resolve(null);
  const key = ref.uri ?? `data ${ref.data?.length} ${ref.data?.slice(0, 64)} ${ref.data?.slice(-64)}`;
  const known = pictures.get(key);
  if (known) return known;
  const made = makePicture(store, ref, type);
  pictures.set(key, made);
  for (const [oldest, url] of pictures) {
    if (pictures.size <= PICTURES_MAX) break;
    pictures.delete(oldest);
    url.then((old) => old && URL.revokeObjectURL(old));
  }
  made.then((url) => url ?? pictures.delete(key));
  return made;
}

/** @param {any} store @param {{ uri?: string, data?: string }} ref @param {string} type @returns {Promise<string | null>} */
async function makePicture(store, ref, type) {
  try {
    const data = ref.data ?? (await store.request('resourceRead', { channel: 'ahp-root://', uri: ref.uri, encoding: 'base64' })).data;
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    return URL.createObjectURL(new Blob([bytes], { type }));
  } catch {
    return null; // the chip with the picture's name stays in its place
  }
}
