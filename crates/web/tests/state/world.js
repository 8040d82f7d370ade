/**
 * What a browser gives the page, as far as its state needs it: a clock that a test moves, storage, and sockets to a host that a
 * test plays.
 */

let now = 0;
let lastTimer = 0;
/** @type {Map<number, {at: number, every?: number, run: () => void}>} */
const timers = new Map();

const addTimer = (run, ms, every) => {
  lastTimer += 1;
  timers.set(lastTimer, { at: now + Math.max(ms, 0), every, run });
  return lastTimer;
};
globalThis.setTimeout = (run, ms = 0) => addTimer(run, ms);
globalThis.setInterval = (run, ms) => addTimer(run, ms, ms);
globalThis.clearTimeout = globalThis.clearInterval = (id) => timers.delete(id);
globalThis.performance = { now: () => now };
let lastChance = 1;
/** The same sequence in every run (Lehmer's generator): a test that fails fails again. */
Math.random = () => (lastChance = (lastChance * 16_807) % 2_147_483_647) / 2_147_483_647;
globalThis.queueMicrotask ??= (run) => Promise.resolve().then(run);
let lastByte = 0;
globalThis.crypto ??= { getRandomValues: (bytes) => bytes.map((_, at) => (bytes[at] = lastByte = (lastByte + 41) % 251)) };
globalThis.console = { info() {}, error() {} };
globalThis.URL = class {
  constructor(href) {
    [this.protocol, this.rest] = [href.slice(0, href.indexOf(':') + 1), href.slice(href.indexOf(':') + 1)];
  }
  get href() {
    return this.protocol + this.rest;
  }
};
globalThis.AbortController = class {
  signal = {};
  abort() {}
};

/** Lets everything that was promised happen. */
export async function settle() {
  for (let turn = 0; turn < 200; turn += 1) {
    await undefined;
  }
}

/** Lets time pass, timer by timer. */
export async function pass(ms) {
  const end = now + ms;
  await settle();
  for (;;) {
    const [id, next] = [...timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
    if (next === undefined || next.at > end) {
      break;
    }
    now = Math.max(now, next.at);
    if (next.every === undefined) {
      timers.delete(id);
    } else {
      next.at += next.every;
    }
    next.run();
    await settle();
  }
  now = end;
}

export function storage() {
  const items = new Map();
  return {
    get length() {
      return items.size;
    },
    key: (index) => [...items.keys()][index] ?? null,
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => items.set(key, value),
    removeItem: (key) => items.delete(key),
  };
}

export function equal(found, expected, what = 'value') {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) {
    throw new Error(`${what}: ${left} is not ${right}`);
  }
}

/**
 * A host that a test plays. `answers` has a function for each method, whose answer may come later; `sent` is what clients sent, `sockets` their connections.
 */
export class Host {
  isUp = true;
  isFrozen = false;
  sockets = [];
  sent = [];
  states = {};
  seq = 10;
  answers = {
    initialize: ({ initialSubscriptions }) => ({
      protocolVersion: '1.0.0',
      serverSeq: this.seq,
      snapshots: initialSubscriptions.filter((channel) => this.states[channel]).map((channel) => this.snapshot(channel)),
    }),
    reconnect: () => ({ type: 'replay', actions: [], missing: [] }),
    subscribe: ({ channel }) => {
      if (this.states[channel] === undefined) {
        throw { code: -32008, message: 'not found' };
      }
      return { snapshot: this.snapshot(channel) };
    },
    listSessions: () => ({ items: [] }),
    ping: () => null,
  };

  constructor() {
    const host = this;
    this.states['ahp-root://'] = { agents: [] };
    globalThis.WebSocket = class {
      constructor(url, protocols) {
        Object.assign(this, { url, protocols, isOpen: false });
        host.sockets.push(this);
        Promise.resolve().then(() => host.#admit(this));
      }
      send(text) {
        if (!this.isOpen) throw new Error('this socket is not open'); // as in browsers
        host.#take(this, JSON.parse(text));
      }
      close() {
        this.isClosed = true;
      }
    };
  }

  #admit(socket) {
    if (this.isUp) {
      socket.isOpen = true;
      socket.onopen?.();
    } else {
      socket.isClosed = true;
      socket.onclose?.({ code: 1006, reason: '' });
    }
  }

  #take(socket, message) {
    this.sent.push(message);
    if (this.isFrozen || message.id === undefined) {
      this.onNotification?.(message);
      return;
    }
    const { id } = message;
    try {
      const result = this.answers[message.method](message.params);
      if (result instanceof Promise) result.then((later) => this.tell({ id, result: later }, socket));
      else this.tell({ id, result }, socket);
    } catch (error) {
      this.tell({ id, error }, socket);
    }
  }

  get socket() {
    return this.sockets.at(-1);
  }

  tell(message, socket = this.socket) {
    socket.onmessage?.({ data: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  }

  snapshot(channel) {
    return { resource: channel, state: this.states[channel], fromSeq: this.seq };
  }

  envelope(channel, action, more = {}) {
    this.seq += 1;
    return { channel, action, serverSeq: this.seq, ...more };
  }

  act(channel, action, more) {
    this.tell({ method: 'action', params: this.envelope(channel, action, more) });
  }

  refuse(channel, action, clientId, clientSeq, rejectionReason) {
    const params = { channel, action, serverSeq: this.seq, origin: { clientId, clientSeq }, rejectionReason };
    this.tell({ method: 'action', params });
  }

  drop(code = 1006, reason = '') {
    const { socket } = this;
    socket.isClosed = true;
    socket.onclose?.({ code, reason });
  }

  dispatched() {
    return this.sent.filter(({ method }) => method === 'dispatchAction').map(({ params }) => params);
  }
}

export const CHAT = 'ahp-chat:/1';

/** A chat whose running turn has a call that waits. */
export const waitingChat = () => ({
  resource: CHAT,
  title: '',
  status: 24,
  modifiedAt: '2026-01-01T00:00:00.000Z',
  turns: [],
  activeTurn: {
    id: 't1',
    startedAt: '2026-01-01T00:00:00Z',
    message: { text: 'go' },
    responseParts: [
      { kind: 'markdown', id: 'p1', content: '' },
      { kind: 'toolCall', toolCall: { status: 'pending-confirmation', toolCallId: 'c1', toolName: 'rm' } },
    ],
  },
});

export const approve = { type: 'chat/toolCallConfirmed', turnId: 't1', toolCallId: 'c1', approved: true };
