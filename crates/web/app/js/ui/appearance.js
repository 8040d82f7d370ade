// Theme and text size of the page. Must not know: where settings are kept.

import { setData } from './dom.js';

/** @param {{theme?: string, textSize?: number}} settings a theme of `system` is the device's own; the size is in percent */
export function applyAppearance({ theme, textSize }) {
  const root = document.documentElement;
  const chosen = theme === 'light' || theme === 'dark' ? theme : null;
  setData(root, 'theme', chosen);
  root.style.fontSize = textSize && textSize !== 100 ? `${textSize}%` : '';
  // The bars of the browser are as light or dark as the page.
  const bars = [...document.querySelectorAll('meta[name="theme-color"]')];
  for (const bar of bars) {
    const isDark = chosen ? chosen === 'dark' : bar.getAttribute('media')?.includes('dark') === true;
    bar.setAttribute('content', isDark ? '#141715' : '#f7f7f4');
  }
}
