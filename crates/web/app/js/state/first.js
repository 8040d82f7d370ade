/**
 * The first connection of a page, begun while most of the page is still on its way.
 *
 * Promises: the handshake, the root and the first page of the list are asked for in one go, so the list is there one round trip after
 * the socket is. Whatever becomes of it, the store that takes it over is told.
 * Must not know: the document. It imports nothing but the connection: both are loaded before everything else.
 */

import { Connection, ROOT } from '../wire/connection.js';

/** How many sessions a page of the list has. */
export const LIST_PAGE = 100;
export const CLIENT_INFO = { name: 'greenroom web', version: '1' };

/** @param {string} url @param {string} token @param {Promise<string>} clientId @returns {Promise<import('../wire/connection.js').FirstFlight>} */
export async function beginFirstFlight(url, token, clientId) {
  const connection = new Connection(url, token); // it takes longer than to find out the id
  const initialized = connection.initialize(await clientId, [ROOT], { clientInfo: CLIENT_INFO });
  const sessions = connection.request('listSessions', { limit: LIST_PAGE });
  // Who takes the connection over looks at both; it may not be there yet when they fail.
  for (const answer of [initialized, sessions]) {
    answer.catch(() => {});
  }
  return { connection, initialized, sessions };
}
