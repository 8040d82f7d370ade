import { equal, pass, settle } from './world.js';
import { findButton } from './page.js';
import { mountNewSession } from '../../app/js/view/new_session.js';

/** The screen for a new session, over a store that a test plays. */
class Scene {
  requests = [];
  routes = [];
  drafts = [];
  dispatched = [];
  states = {};
  errors = {};
  #watchers = {};

  constructor() {
    const agents = [{ provider: 'script', displayName: 'Script', models: [] }];
    const store = {
      connection: { status: 'live', isLive: true, retryNow() {} },
      defaultDirectory: undefined,
      root: () => ({ agents }),
      sessions: () => [],
      onRoot: () => () => {},
      onSessions: () => () => {},
      onConnection: () => () => {},
      onProgress: () => () => {},
      errorOf: (channel) => this.errors[channel],
      drafts: { set: (chat, message) => this.drafts.push({ chat, message }) },
      watch: (channel, watcher) => {
        (this.#watchers[channel] ??= []).push(watcher);
        if (this.states[channel] || this.errors[channel]) queueMicrotask(() => watcher(this.states[channel]));
        return () => { this.#watchers[channel] = this.#watchers[channel].filter((one) => one !== watcher); };
      },
      dispatch: (channel, action) => {
        const sent = { channel, action };
        sent.done = new Promise((resolve) => { sent.end = resolve; });
        this.dispatched.push(sent);
        return sent;
      },
      request: (method, params) => {
        if (method !== 'createSession') return Promise.resolve({ schema: {}, values: {} });
        return new Promise((resolve, reject) => this.requests.push({ params, resolve, reject }));
      },
    };
    this.store = store;
    this.container = document.createElement('div');
    document.body.append(this.container);
    this.screen = mountNewSession(this.container, { store, navigate: (route) => this.routes.push(route), goBack() {} });
    this.form = this.container.querySelector('form');
  }

  tell(channel, state, error) {
    this.states[channel] = state;
    this.errors[channel] = error;
    for (const watcher of [...(this.#watchers[channel] ?? [])]) watcher(state);
  }

  watched(channel) {
    return (this.#watchers[channel] ?? []).length;
  }

  write(text) {
    this.container.querySelector('textarea').value = text;
  }

  problems() {
    return document.body.querySelectorAll('.problem-note').map((note) => note.textContent);
  }

  problem() {
    return this.container.querySelector('.problem').textContent;
  }
}

async function begin(text = '') {
  const scene = new Scene();
  await settle();
  scene.write(text);
  return scene;
}

export async function one_session_is_made_however_often_the_form_is_sent() {
  const scene = await begin();
  const start = findButton('Start', scene.container);
  start.focus();
  scene.form.requestSubmit();
  // The key for it does not go by the button.
  scene.form.requestSubmit();
  scene.form.requestSubmit();
  await settle();
  equal([scene.requests.length, start.disabled], [1, true]);
  scene.requests[0].resolve({});
  await settle();
  scene.form.requestSubmit();
  await settle();
  equal([scene.requests.length, scene.routes.length], [1, 1]);
}

export async function what_the_host_refuses_is_said_and_can_be_asked_for_again() {
  const scene = await begin();
  scene.form.requestSubmit();
  await settle();
  scene.requests[0].reject(Object.assign(new Error('no such folder'), { code: -32602 }));
  await settle();
  equal([scene.problem(), findButton('Start', scene.container).disabled], ['The session was not created: no such folder', false]);
  scene.form.requestSubmit();
  await settle();
  const [first, second] = scene.requests.map(({ params }) => params.channel);
  equal([scene.requests.length, first === second], [2, false]);
}

export async function a_session_that_may_have_been_made_is_not_made_twice() {
  const scene = await begin('hello');
  scene.form.requestSubmit();
  await settle();
  scene.requests[0].reject(new Error('the connection was lost'));
  await settle();
  equal([scene.problem().includes('may not have been created'), scene.routes.length], [true, 0]);
  scene.form.requestSubmit();
  await settle();
  const [first, second] = scene.requests.map(({ params }) => params.channel);
  equal(first, second, 'the same is asked for again');
  scene.requests[1].reject(Object.assign(new Error('exists already'), { code: -32003 }));
  await settle();
  equal(scene.routes, [{ screen: 'session', session: first }]);
  scene.tell(first, { lifecycle: 'ready', defaultChat: 'ahp-chat:/c' });
  scene.tell('ahp-chat:/c', { turns: [] });
  await settle();
  equal([scene.dispatched.length, scene.dispatched[0].action.message.text], [1, 'hello']);
}

export async function why_a_session_did_not_start_is_said_and_its_first_message_too() {
  const scene = await begin('what was to be done');
  scene.form.requestSubmit();
  await settle();
  const session = scene.requests[0].params.channel;
  scene.requests[0].resolve({});
  await settle();
  scene.tell(session, { lifecycle: 'creating', chats: [] });
  await settle();
  equal(scene.problems(), []);
  scene.tell(session, { lifecycle: 'failed', chats: [], creationError: { message: 'the agent did not start' } });
  await settle();
  equal(scene.problems().sort(), ['The first message was not sent: what was to be done', 'The session did not start: the agent did not start']);
  equal([scene.watched(session), scene.dispatched.length], [0, 0], 'nobody waits for it any more');
  await pass(10_000);
  equal(document.body.querySelectorAll('.note').length, 0);
}

export async function a_session_that_is_gone_before_it_is_there_is_said() {
  const scene = await begin();
  scene.form.requestSubmit();
  await settle();
  const session = scene.requests[0].params.channel;
  scene.requests[0].resolve({});
  await settle();
  scene.tell(session, undefined, new Error('It no longer exists.'));
  await settle();
  equal([scene.problems(), scene.watched(session)], [['The session did not start: It no longer exists.'], 0]);
}

export async function a_first_message_that_is_not_taken_is_kept() {
  const scene = await begin('hello');
  scene.form.requestSubmit();
  await settle();
  const session = scene.requests[0].params.channel;
  scene.requests[0].resolve({});
  scene.tell(session, { lifecycle: 'ready', defaultChat: 'ahp-chat:/c' });
  await settle();
  scene.tell('ahp-chat:/c', { turns: [] });
  await settle();
  scene.dispatched[0].end({ status: 'refused', reason: 'no model' });
  await settle();
  equal([scene.drafts.map(({ message }) => message.text), scene.watched('ahp-chat:/c'), scene.watched(session)], [['hello'], 0, 0]);
  equal(scene.problems()[0].includes('no model'), true);
}

export async function who_left_the_screen_is_not_taken_to_the_session() {
  const scene = await begin();
  scene.form.requestSubmit();
  await settle();
  scene.screen.unmount();
  scene.requests[0].resolve({});
  await settle();
  equal(scene.routes, []);
}
