import { equal, pass, settle, storage } from './world.js';
import './page.js';
import { startNews } from '../../app/js/view/news.js';

const WORKING = 8;
const NEEDS_YOU = 24;
const FAILED = 2;
const NEW = 1;
const READ = 33;

/** A page that nobody looks at, with notifications, over a store that a test plays. */
class Scene {
  /** What was shown. */
  shown = [];
  problems = [];
  sessions = [];
  inbox = [];
  #listeners = { sessions: [], inbox: [] };

  constructor() {
    const define = (key, value) => Object.defineProperty(globalThis, key, { value, configurable: true, writable: true });
    const notifications = () => this.shown.map((one) => ({ ...one, close: () => { this.shown = this.shown.filter(({ tag }) => tag !== one.tag); } }));
    const worker = { active: { postMessage: (about) => this.shown.push(about) }, getNotifications: async () => notifications() };
    define('reportError', (error) => this.problems.push(String(error)));
    define('localStorage', storage());
    define('navigator', { serviceWorker: { ready: Promise.resolve(worker) } });
    define('Notification', { permission: 'granted' });
    define('window', { isSecureContext: true, Notification });
    Date.now = () => performance.now();
    document.visibilityState = 'hidden';
    localStorage.setItem('greenroom.settings', JSON.stringify({ isNotifying: true }));
    const store = {
      connection: { status: 'live', isLive: true },
      sessions: () => this.sessions,
      inbox: () => this.inbox,
      onSessions: (hear) => this.#listeners.sessions.push(hear),
      onInbox: (hear) => this.#listeners.inbox.push(hear),
      onConnection: () => {},
    };
    startNews({ store, shell: { route: () => ({ screen: 'sessions' }), onRoute: () => {} } });
  }

  /** The session is so from now on. */
  async be(status) {
    this.sessions = [{ resource: 'ahp-session:/s', title: 'Fix it', status }];
    for (const hear of this.#listeners.sessions) hear(this.sessions);
    await settle();
  }

  /** So many calls wait from now on. */
  async ask(...calls) {
    this.inbox = calls.map((toolCallId) => ({ kind: 'confirm', title: `Run ${toolCallId}`, toolCallId, chatUri: 'ahp-chat:/c', sessionUri: 'ahp-session:/s', sessionTitle: 'Fix it' }));
    for (const hear of this.#listeners.inbox) hear(this.inbox);
    await settle();
  }

  titles() {
    equal(this.problems, [], 'what went wrong');
    return this.shown.map(({ title }) => title);
  }
}

export async function work_of_more_than_a_minute_is_told_when_it_ends() {
  const scene = new Scene();
  await scene.be(WORKING);
  await pass(61_000);
  equal(scene.titles(), [], 'while it works');
  await scene.be(NEW);
  equal(scene.titles(), ['Finished'], 'told');
  await scene.be(NEW);
  equal(scene.titles(), ['Finished'], 'told once');
  await scene.be(READ);
  equal(scene.titles(), [], 'what was read');
}

export async function short_work_is_not_worth_it() {
  const scene = new Scene();
  await scene.be(READ);
  await pass(600_000);
  await scene.be(WORKING);
  await pass(59_000);
  await scene.be(NEW);
  equal(scene.titles(), [], 'told');
}

export async function work_that_asked_in_the_middle_is_the_same_work() {
  const scene = new Scene();
  await scene.be(WORKING);
  await pass(40_000);
  await scene.be(NEEDS_YOU);
  await pass(5_000);
  await scene.be(WORKING);
  await pass(40_000);
  await scene.be(NEW);
  equal(scene.titles(), ['Finished'], 'told');
}

export async function failed_work_is_told_however_short_it_was() {
  const scene = new Scene();
  await scene.be(WORKING);
  await pass(10);
  await scene.be(FAILED);
  equal(scene.titles(), ['Failed'], 'told');
}

export async function how_it_was_when_the_page_opened_is_no_news() {
  const scene = new Scene();
  await scene.ask(); // the connection is there, the list is not
  await scene.be(FAILED);
  equal(scene.titles(), [], 'told');
}

export async function what_waited_when_the_page_opened_is_no_news_and_what_comes_after_it_is() {
  const scene = new Scene();
  await scene.ask();
  await scene.be(NEEDS_YOU);
  await scene.ask('one'); // its session had to be asked first
  equal(scene.titles(), [], 'told');
  await scene.ask('one', 'two');
  equal(scene.titles(), ['Approval needed: Run two'], 'told');
}

export async function what_waited_in_a_session_that_is_open_does_not_hide_what_comes_after_it() {
  const scene = new Scene();
  await scene.ask('one'); // the state of its session was here before the list
  await scene.be(NEEDS_YOU);
  await scene.ask('one', 'two');
  equal(scene.titles(), ['Approval needed: Run two'], 'told');
}

export async function a_request_that_came_while_the_page_was_away_is_news() {
  const scene = new Scene();
  await scene.be(READ);
  await pass(300_000);
  await scene.be(NEEDS_YOU);
  await scene.ask('one');
  equal(scene.titles(), ['Approval needed: Run one'], 'told');
  equal(document.title, '(1) greenroom', 'title');
}

export async function what_waits_is_told_once_and_withdrawn_when_it_waits_no_more() {
  const scene = new Scene();
  await scene.be(WORKING);
  await scene.ask();
  await scene.ask('one');
  await scene.ask('one', 'two');
  equal(scene.titles(), ['Approval needed: Run one', 'Approval needed: Run two'], 'told');
  await scene.ask('two');
  equal(scene.titles(), ['Approval needed: Run two'], 'left');
  await scene.ask();
  equal(scene.titles(), [], 'left');
}
