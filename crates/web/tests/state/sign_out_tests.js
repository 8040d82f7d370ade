import { equal, settle, storage } from './world.js';
import { findButton } from './page.js';
import { signOut } from '../../app/js/view/sign_out.js';

/** A device that is signed in at a host that answers so: by method, a status, or nothing if it cannot be reached. */
function signedIn(answers, name = 'phone') {
  const found = { asked: [], left: null };
  const define = (key, value) => Object.defineProperty(globalThis, key, { value, configurable: true, writable: true });
  define('localStorage', storage());
  define('sessionStorage', storage());
  define('navigator', {});
  define('caches', undefined);
  define('location', { replace: (to) => { found.left = to; } });
  define('fetch', async (path, { method }) => {
    found.asked.push(`${method} ${path}`);
    const status = answers[method];
    if (status === undefined) throw new Error('no network');
    const body = status === 200 ? { device: { id: 'd1', name } } : { error: 'no' };
    return { ok: status < 300, status, text: async () => (status === 204 ? '' : JSON.stringify(body)) };
  });
  localStorage.setItem('greenroom.token', 'secret');
  localStorage.setItem('greenroom.settings', JSON.stringify({ name }));
  return found;
}

const question = () => document.body.querySelector('.dialog')?.querySelector('p').textContent ?? null;
const isSignedIn = () => localStorage.getItem('greenroom.token') !== null;

export async function the_host_is_told_and_then_nothing_is_left() {
  const found = signedIn({ GET: 200, DELETE: 204 });
  await signOut();
  equal([found.asked, found.left, isSignedIn(), question()], [['GET /api/me', 'DELETE /api/devices/d1'], '/', false, null]);
}

export async function a_host_that_has_forgotten_the_device_need_not_be_told() {
  for (const answers of [{ GET: 401 }, { GET: 200, DELETE: 404 }, { GET: 200, DELETE: 401 }]) {
    const found = signedIn(answers);
    await signOut();
    equal([found.left, isSignedIn(), question()], ['/', false, null], JSON.stringify(answers));
  }
}

export async function a_host_that_was_not_told_is_said_and_the_device_stays_signed_in() {
  for (const answers of [{}, { GET: 500 }, { GET: 200 }, { GET: 200, DELETE: 503 }]) {
    const found = signedIn(answers);
    const done = signOut();
    await settle();
    equal(question(), 'The host was not told; this device stays paired there until `greenroom devices revoke phone`. Remove it here anyway?');
    equal([found.left, isSignedIn()], [null, true], 'before it is answered');
    findButton('Cancel').click();
    await done;
    equal([found.left, isSignedIn(), question()], [null, true, null], JSON.stringify(answers));
  }
}

export async function a_device_is_removed_without_the_host_if_its_user_says_so() {
  const found = signedIn({}, "Anna's phone");
  const done = signOut();
  await settle();
  equal(question().includes("`greenroom devices revoke 'Anna'\\''s phone'`"), true, question());
  findButton('Remove it here').click();
  await done;
  equal([found.left, isSignedIn()], ['/', false]);
}
