// Theme and text size of the page. Must not know: where settings are kept.

import { setData } from './dom.js';

/** @param {{theme?: string, textSize?: string}} settings a theme of `system` is the device's own */
export function applyAppearance(settings) {
  const root = document.documentElement;
  setData(root, 'theme', settings.theme === 'light' || settings.theme === 'dark' ? settings.theme : null);
  setData(root, 'textSize', settings.textSize && settings.textSize !== 'normal' ? settings.textSize : null);
}
