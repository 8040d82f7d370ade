// The service worker of the page. Promises: it keeps the page's own files, by the digest in their address, and nothing else; it leaves
// /api, /content and sockets alone and knows no token. Must not know: anything of the user.

const DIGEST_PATH = '/app/';
/** What a first visit loads; the browser has most of it already. */
const FIRST_FILES = [/* files */];
/** Everything else, texts by their names: one request instead of dozens. */
const REST = '/app/rest.json';
const ICONS = ['/icons/icon.svg', '/icons/icon-192.png', '/manifest.webmanifest'];
const CACHE = `greenroom ${DIGEST_PATH}`;

self.addEventListener('install', (event) => {
  event.waitUntil(keepAll());
});

/** All or nothing: a page of two versions would be worse than none. */
async function keepAll() {
  const cache = await caches.open(CACHE);
  const answer = await fetch(REST);
  if (!answer.ok) throw new Error(`${REST}: ${answer.status}`);
  const rest = Object.entries(await answer.json());
  await cache.addAll(['/', ...FIRST_FILES, ...ICONS]);
  await Promise.all(rest.map(([name, text]) => {
    const type = name.endsWith('.css') ? 'text/css' : 'text/javascript';
    return cache.put(DIGEST_PATH + name, new Response(text, { headers: { 'content-type': `${type}; charset=utf-8` } }));
  }));
}

self.addEventListener('activate', (event) => {
  const removeOld = async () => {
    for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
  };
  event.waitUntil(removeOld());
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== self.location.origin || url.search !== '') return;
  if (request.mode === 'navigate' && url.pathname === '/') event.respondWith(openPage(request));
  else if (url.pathname.startsWith(DIGEST_PATH) || ICONS.includes(url.pathname)) event.respondWith(keptOrFetched(request));
});

/** The page as it is kept, at once. The browser looks for a new worker by itself, which then waits until it is let in. */
async function openPage(request) {
  const cache = await caches.open(CACHE);
  return (await cache.match('/')) ?? fetch(request);
}

async function keptOrFetched(request) {
  const cache = await caches.open(CACHE);
  return (await cache.match(request)) ?? fetch(request);
}

self.addEventListener('message', (event) => {
  // Only a page that somebody reloads on purpose says this.
  if (event.data === 'take-over') self.skipWaiting();
  else if (event.data?.kind === 'notify') event.waitUntil(notify(event.data));
});

/** Every hidden tab asks for it; with the same tag they are one. Who looks at any of them sees it there. */
async function notify({ title, body, tag, hash }) {
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (pages.some((one) => one.visibilityState === 'visible')) return;
  await self.registration.showNotification(title, { body, tag, icon: '/icons/icon-192.png', badge: '/icons/badge.png', data: { hash } });
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const { hash } = event.notification.data ?? {};
  const target = typeof hash === 'string' && hash.startsWith('#/') ? hash : '#/';
  const openThere = async () => {
    const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
    const page = pages.find((one) => one.visibilityState === 'visible') ?? pages[0];
    if (!page) return self.clients.openWindow(`/${target}`);
    await page.focus();
    return page.postMessage({ kind: 'go', hash: target });
  };
  event.waitUntil(openThere());
});
