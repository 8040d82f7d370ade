/**
 * One connection to a host: requests, notifications, and what the host asks.
 *
 * Promises: what the host sends is handed on in the order it came, answers among it; nothing is lost that comes, or is asked for,
 * before there is anybody to hand it to. A request is answered, times out, or fails with the reason the connection closed for. The
 * token is in no address.
 * Must not know: what the methods mean, beyond the handshake and the first list; when to connect again. It imports nothing: the page
 * loads it before everything else.
 */

/** @typedef {import('./reduce/fields.js').Json} Json */

export const ROOT = 'ahp-root://';
const PROTOCOL_VERSIONS = ['1.0.0'];
const CONNECT_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** The bound of the first wait before another attempt. */
const FIRST_WAIT_MS = 100;
/** The code of a close for a broken rule: a client id that another connection took, among others. */
const CLOSE_POLICY = 1_008;

/** The host refused a request. */
export class RpcError extends Error {
  /** @param {number} code @param {string} message @param {any} [data] */
  constructor(code, message, data) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

/** There is no connection, or it ended before the answer came. */
export class ConnectionLost extends Error {
  /** @param {string} message @param {{wasOpen?: boolean, isSuperseded?: boolean}} [how] */
  constructor(message, { wasOpen = false, isSuperseded = false } = {}) {
    super(message);
    this.name = 'ConnectionLost';
    this.wasOpen = wasOpen;
    this.isSuperseded = isSuperseded;
  }
}

/**
 * @typedef {object} ConnectionHandlers
 * @property {() => void} onOpen called once, when messages get through
 * @property {(method: string, params: any) => void} onNotification
 * @property {(why: ConnectionLost) => void} onClose called once, at the end
 */

/**
 * A connection that was begun while most of the page was still on its way, with what it was asked at once.
 * @typedef {{connection: Connection, initialized: Promise<any>, sessions: Promise<any>}} FirstFlight
 */

export class Connection {
  #socket;
  /** @type {ConnectionHandlers | undefined} */
  #handlers;
  /** @type {string[]} what is to be sent as soon as it is open */
  #unsent = [];
  /** @type {{method: string, params: any}[]} what came before anybody listened */
  #unheard = [];
  /** @type {Map<number, {take: (error: Error | undefined, result: any) => void, timer: any}>} */
  #waiting = new Map();
  #lastId = 0;
  #isOpen = false;
  /** @type {ConnectionLost | undefined} */
  #closed;
  /** When something was last received, in milliseconds. */
  lastHeard = performance.now();

  /** Connects. @param {string} url @param {string | undefined} token */
  constructor(url, token) {
    this.#socket = new WebSocket(url, token ? ['ahp', `tkn.${token}`] : ['ahp']);
    const timer = setTimeout(() => this.close('the host did not answer'), CONNECT_TIMEOUT_MS);
    this.#socket.onopen = () => {
      clearTimeout(timer);
      this.#isOpen = true;
      for (const text of this.#unsent.splice(0)) {
        this.#socket.send(text);
      }
      this.#handlers?.onOpen();
    };
    this.#socket.onmessage = ({ data }) => this.#receive(data);
    this.#socket.onerror = () => {
      if (!this.#isOpen) {
        clearTimeout(timer);
        this.#end('the host cannot be reached', false); // of an open connection the close says why
      }
    };
    this.#socket.onclose = ({ code, reason }) => {
      clearTimeout(timer);
      const isSuperseded = code === CLOSE_POLICY && reason.includes('client id');
      this.#end(reason === '' ? 'the connection was lost' : reason, isSuperseded);
    };
  }

  /** Tells what happens from now on, after what happened before. @param {ConnectionHandlers} handlers */
  listen(handlers) {
    this.#handlers = handlers;
    if (this.#isOpen) {
      handlers.onOpen();
    }
    for (const { method, params } of this.#unheard.splice(0)) {
      handlers.onNotification(method, params);
    }
    if (this.#closed !== undefined) {
      handlers.onClose(this.#closed);
    }
  }

  /** Ends it for everyone who waits on it, for this reason. @param {string} why */
  close(why) {
    this.#end(why, false);
  }

  get isClosed() {
    return this.#closed !== undefined;
  }

  /** @param {string} message @param {boolean} isSuperseded */
  #end(message, isSuperseded) {
    if (this.#closed !== undefined) {
      return; // the first reason counts
    }
    const why = new ConnectionLost(message, { wasOpen: this.#isOpen, isSuperseded });
    this.#closed = why;
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onerror = this.#socket.onclose = null;
    this.#socket.close();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { take, timer } of waiting) {
      clearTimeout(timer);
      take(why, undefined);
    }
    this.#handlers?.onClose(why);
  }

  /** @param {any} data */
  #receive(data) {
    this.lastHeard = performance.now();
    try {
      const message = typeof data === 'string' ? JSON.parse(data) : undefined;
      if (typeof message !== 'object' || message === null || Array.isArray(message)) {
        throw new Error('a message that is no JSON object');
      }
      this.#take(message);
    } catch (error) {
      // A host that cannot be understood is not mirrored: what is wrong ends the connection, and the next one starts over.
      console.error('greenroom: a message of the host could not be used', error);
      this.close(error instanceof Error ? error.message : String(error));
    }
  }

  /** @param {Json} message */
  #take(message) {
    const { id, method, params, result, error } = message;
    if (typeof method === 'string') {
      if (id === undefined) {
        if (this.#handlers === undefined) {
          this.#unheard.push({ method, params });
        } else {
          this.#handlers.onNotification(method, params);
        }
      } else {
        this.#send({ id, error: { code: -32601, message: `\`${method}\` is not served` } });
      }
      return;
    }
    const waiter = this.#waiting.get(id);
    if (waiter === undefined) {
      return; // an answer that came after its time was up
    }
    this.#waiting.delete(id);
    clearTimeout(waiter.timer);
    if (typeof error === 'object' && error !== null) {
      waiter.take(new RpcError(error.code, String(error.message), error.data), undefined);
    } else {
      waiter.take(undefined, result);
    }
  }

  /** @param {Json} message */
  #send(message) {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    if (!this.#isOpen) {
      this.#unsent.push(text);
    } else if (this.#closed === undefined) {
      this.#socket.send(text);
    }
  }

  /** @param {string} method @param {Json} params */
  notify(method, params) {
    this.#send({ method, params });
  }

  /**
   * Asks; the answer is taken in its place among the notifications.
   * @param {string} method @param {Json} params @param {(error: Error | undefined, result: any) => void} take @param {number} [timeoutMs]
   */
  ask(method, params, take, timeoutMs = REQUEST_TIMEOUT_MS) {
    if (this.#closed !== undefined) {
      take(this.#closed, undefined);
      return;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const timer = setTimeout(() => {
      this.#waiting.delete(id);
      take(new Error(`no answer to \`${method}\` within ${timeoutMs / 1_000} s`), undefined);
    }, timeoutMs);
    this.#waiting.set(id, { take, timer });
    this.#send({ id, method, params });
  }

  /** @param {string} method @param {Json} params @param {number} [timeoutMs] @returns {Promise<any>} */
  request(method, params, timeoutMs) {
    return new Promise((resolve, reject) => {
      this.ask(method, params, (error, result) => (error === undefined ? resolve(result) : reject(error)), timeoutMs);
    });
  }

  /** @param {string} clientId @param {string[]} subscriptions @param {Json} further @returns {Promise<any>} */
  initialize(clientId, subscriptions, further) {
    return this.request('initialize', {
      channel: ROOT,
      protocolVersions: PROTOCOL_VERSIONS,
      clientId,
      initialSubscriptions: subscriptions,
      ...further,
    });
  }

  /** Takes up where an earlier connection of the same client id stopped. @param {string} clientId @param {number} lastSeen @param {string[]} subscriptions @returns {Promise<any>} */
  reconnect(clientId, lastSeen, subscriptions) {
    return this.request('reconnect', { channel: ROOT, clientId, lastSeenServerSeq: lastSeen, subscriptions });
  }

  /** @param {number} timeoutMs */
  ping(timeoutMs) {
    return this.request('ping', { channel: ROOT }, timeoutMs);
  }
}

/** How many sessions a page of the list has. */
export const LIST_PAGE = 100;
export const CLIENT_INFO = { name: 'greenroom web', version: '1' };

/**
 * The first connection of a page, begun while most of the page is still on its way. The handshake, the root and the first page of the
 * list are asked for in one go, so the list is there one round trip after the socket is.
 * @param {string} url @param {string} token @param {Promise<string>} clientId @returns {Promise<FirstFlight>}
 */
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

/**
 * How long to wait before the next attempt: doubling up to a bound, and anything below that by chance, so that clients
 * which lost their host together do not reconnect together.
 */
export class Backoff {
  #attempt = 0;
  #maxMs;
  #chance;

  /** @param {number} maxMs @param {() => number} [chance] */
  constructor(maxMs, chance = Math.random) {
    this.#maxMs = maxMs;
    this.#chance = chance;
  }

  /** The wait before the next attempt, in milliseconds. */
  next() {
    this.#attempt += 1;
    return this.bound() * this.#chance();
  }

  bound() {
    return Math.min(FIRST_WAIT_MS * 2 ** Math.min(Math.max(this.#attempt - 1, 0), 20), this.#maxMs);
  }

  /** A connection lasted this long. One that ends at once counts as a failed attempt, or a host that takes connections and drops them would be asked without pause. @param {number} lastedMs */
  recordConnection(lastedMs) {
    if (lastedMs >= this.#maxMs) {
      this.#attempt = 0;
    }
  }
}
