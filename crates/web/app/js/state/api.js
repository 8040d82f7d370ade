/**
 * What the host serves beside the protocol: pairing, devices, markup, content, prompts, sign-ins.
 *
 * Promises: every request goes to this page's own origin and carries the token in a header, never in an address. An answer
 * that is no success is an `ApiError` with the host's words.
 * Must not know: the document, what the answers are drawn as.
 */

import { device } from './device.js';

/** The host refused, or what it sent was no answer. `status` is 0 if it was not reached. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
  }
}

/**
 * @param {string} path @param {{method?: string, json?: unknown, body?: BodyInit, type?: string, signal?: AbortSignal, isPublic?: boolean}} [options]
 * @returns {Promise<any>} the JSON of the answer; nothing if it is empty
 */
async function call(path, { method = 'GET', json, body, type, signal, isPublic = false } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  const token = device.token();
  if (token !== undefined && !isPublic) {
    headers.Authorization = `Bearer ${token}`;
  }
  if (json !== undefined) {
    headers['Content-Type'] = 'application/json';
  } else if (type !== undefined) {
    headers['Content-Type'] = type;
  }
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: json === undefined ? body : JSON.stringify(json),
      signal,
      credentials: 'omit',
      redirect: 'error',
    });
  } catch (error) {
    throw new ApiError(0, error instanceof Error ? error.message : 'the host cannot be reached');
  }
  const text = await response.text();
  if (!response.ok) {
    throw new ApiError(response.status, errorText(text, response.status));
  }
  return text === '' ? undefined : JSON.parse(text);
}

/** @param {string} text @param {number} status */
function errorText(text, status) {
  try {
    const { error } = JSON.parse(text);
    return typeof error === 'string' ? error : (error?.message ?? `The host answered ${status}.`);
  } catch {
    return text.length > 0 && text.length < 300 ? text : `The host answered ${status}.`;
  }
}

export const api = {
  /** Exchanges a one-time code for the token of this device. @param {string} code @param {string} name */
  pair: (code, name) => call('/api/pair', { method: 'POST', json: { code, name }, isPublic: true }),

  /** This device as the host knows it. */
  me: () => call('/api/me'),

  devices: () => call('/api/devices'),

  /** Signs a device out. @param {string} id */
  revoke: (id) => call(`/api/devices/${encodeURIComponent(id)}`, { method: 'DELETE' }),

  /** Markdown, code and diffs as trees, runs and rows. @param {unknown[]} items @param {AbortSignal} [signal] */
  markup: (items, signal) => call('/api/markup', { method: 'POST', json: { items }, signal }),

  /** Stores a body; the answer names it. @param {Blob} body @param {AbortSignal} [signal] */
  putContent: (body, signal) =>
    call('/api/content', { method: 'PUT', body, type: body.type || 'application/octet-stream', signal }),

  /** Asks for the page at which somebody signs in to a server. @param {unknown} auth what the server wants @param {string} back @returns {Promise<{url: string, host: string}>} */
  beginSignIn: (auth, back) => call('/api/sign-in', { method: 'POST', json: { auth, back } }),

  /** The token for the address that the browser came back to. @param {string} address @returns {Promise<{resource: string, token: string, expiresIn?: number}>} */
  finishSignIn: (address) => call('/api/sign-in/finish', { method: 'POST', json: { address } }),

  /** What models were sent in a chat: all calls, or one. @param {string} chat @param {string} [callId] */
  prompt: (chat, callId) => {
    const query = new URLSearchParams({ chat, ...(callId === undefined ? {} : { call: callId }) });
    return call(`/api/prompt?${query}`);
  },

  /** Whether the host still serves this version of the page: its files have one digest in their addresses. @returns {Promise<boolean>} */
  async isPageCurrent() {
    const own = /\/app\/[0-9a-f]+\//.exec(import.meta.url)?.[0];
    if (own === undefined) {
      return true; // not served by a host
    }
    const response = await fetch('/', { cache: 'no-cache', credentials: 'omit', redirect: 'error' });
    return !response.ok || (await response.text()).includes(own);
  },

  /** Whether the token of this device still counts. @returns {Promise<'taken' | 'refused' | 'unreachable'>} */
  async checkToken() {
    try {
      await call('/api/me');
      return 'taken';
    } catch (error) {
      return error instanceof ApiError && error.status === 401 ? 'refused' : 'unreachable';
    }
  },
};
