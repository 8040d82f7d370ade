/**
 * Kinds of channels that a first visit does not watch: chats, changesets, annotations, terminals, watches of resources. Loaded before the
 * first of them is subscribed to.
 */

import { CHAT_ACTIONS, diffChat, readChat, reduceChat } from './chat.js';
import {
  ANNOTATIONS_ACTIONS, CHANGESET_ACTIONS, TERMINAL_ACTIONS, WATCH_ACTIONS, readAnnotations, readChangeset, readTerminal, readWatch,
  reduceAnnotations, reduceChangeset, reduceTerminal, reduceWatch,
} from './plain.js';

/** @type {Record<string, import('../mirror.js').KindOfChannel>} */
export const LATER_KINDS = {
  chat: { fields: ['turns'], read: readChat, reduce: reduceChat, diff: diffChat, actions: CHAT_ACTIONS },
  terminal: { fields: ['content', 'claim'], read: readTerminal, reduce: reduceTerminal, actions: TERMINAL_ACTIONS },
  changeset: { fields: ['files', 'status'], read: readChangeset, reduce: reduceChangeset, actions: CHANGESET_ACTIONS },
  resourceWatch: { fields: ['root', 'recursive'], read: readWatch, reduce: reduceWatch, actions: WATCH_ACTIONS },
  annotations: { fields: ['annotations'], read: readAnnotations, reduce: reduceAnnotations, actions: ANNOTATIONS_ACTIONS },
};
