// Builds and updates elements, once a frame. Promises: text is only ever set as text; a keyed list keeps the element of an item as long as
// the item is there, and moves no more of them than it must. What is asked for twice before a frame runs once, and one drawing
// that fails does not keep the others from running. Must not know: AHP, the store, what is shown.

/**
 * Makes an element.
 * @param {string} tag a tag name, with classes behind dots: `button.button.primary`
 * @param {Record<string, any> | null} [props] `on: {click: fn}`, `data: {key: value}`, `class`, `text`, properties of the element such as
 *   `value`, `disabled`, `hidden`; everything else is an attribute. A value of null, undefined or false sets nothing.
 * @param {...(Node | string | number | null | undefined | false | Array<any>)} children
 * @returns {any} an element of that tag
 */
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name || 'div');
  if (classes.length > 0) element.className = classes.join(' ');
  if (name === 'button') element.setAttribute('type', 'button'); // it sends a form only where that is said
  if (props) setProps(element, props);
  append(element, children);
  return element;
}

const PROPERTIES = new Set(['value', 'checked', 'disabled', 'hidden', 'selected', 'open', 'indeterminate', 'readOnly', 'required', 'tabIndex']);

/** Sets what `h` takes as props on an element that is there. @param {any} element @param {Record<string, any>} props */
export function setProps(element, props) {
  for (const [key, value] of Object.entries(props)) {
    if (key === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (key === 'data') {
      for (const [name, text] of Object.entries(value)) setData(element, name, text);
    } else if (key === 'class') {
      if (value) element.classList.add(...String(value).split(' ').filter(Boolean));
    } else if (key === 'text') {
      setText(element, value);
    } else if (PROPERTIES.has(key) && !(key === 'value' && element instanceof HTMLOptionElement)) {
      // (An option's value is its attribute: without one it is its text.)
      if (value !== undefined && value !== null && element[key] !== value) element[key] = value;
    } else {
      setAttribute(element, key, value);
    }
  }
}

/** @param {any} element @param {any[]} children */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === '') continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Sets an attribute, or takes it away; touches nothing if it is so already. @param {Element} element @param {string} name @param {any} value */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** @param {HTMLElement | SVGElement} element @param {string} name @param {any} value */
export function setData(element, name, value) {
  if (value === null || value === undefined || value === false) delete element.dataset[name];
  else if (element.dataset[name] !== String(value)) element.dataset[name] = String(value);
}

/** Sets the text of an element; touches nothing if it is so already. @param {Node} element @param {any} text */
export function setText(element, text) {
  const wanted = text === null || text === undefined ? '' : String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Shows or hides. @param {HTMLElement} element @param {boolean} isShown */
export function show(element, isShown) {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** Replaces all children; what is there at its place already is not touched. @param {Element} element @param {...any} children */
export function fill(element, ...children) {
  const wanted = /** @type {any[]} */ (children.flat(Infinity)).filter((child) => child !== null && child !== undefined && child !== false && child !== '');
  const same = wanted.length === element.childNodes.length && wanted.every((child, index) => child === element.childNodes[index]);
  if (!same) element.replaceChildren(...wanted.map((child) => (child instanceof Node ? child : String(child))));
}

/**
 * Keeps the children of an element in step with a list.
 * @template T
 * @param {Element} container holds nothing but the elements of this list
 * @param {{key: (item: T) => string, create: (item: T) => any, update?: (element: any, item: T, index: number) => void, remove?: (element: any) => void}} how
 * @returns {(items: T[]) => void} shows these items
 */
export function keyedList(container, how) {
  /** @type {Map<string, any>} */
  let shown = new Map();
  return (items) => {
    /** @type {Map<string, any>} */
    const next = new Map();
    items.forEach((item, index) => {
      const key = how.key(item);
      if (next.has(key)) return; // the first of two items with one key is shown
      const element = shown.get(key) ?? how.create(item);
      shown.delete(key);
      how.update?.(element, item, index);
      next.set(key, element);
    });
    for (const element of shown.values()) {
      how.remove?.(element);
      element.remove();
    }
    place(container, [...next.values()]);
    shown = next;
  };
}

/** Puts elements in order; those that follow each other already are not moved. @param {Element} container @param {Element[]} elements */
function place(container, elements) {
  let at = container.firstElementChild;
  for (const element of elements) {
    if (at && at !== element && at.nextElementSibling === element) {
      // One element went further down: it is taken out and comes again at its place, instead of moving all that follow it.
      at.remove();
      at = element;
    }
    if (element === at) at = at.nextElementSibling;
    else container.insertBefore(element, at);
  }
}

/** The shapes of the page's own icons, 20 by 20. */
const SHAPES = {
  back: 'M12 4 6 10l6 6',
  forward: 'm8 4 6 6-6 6',
  down: 'm5 8 5 5 5-5',
  up: 'm5 12 5-5 5 5',
  plus: 'M10 4v12M4 10h12',
  close: 'm5 5 10 10M15 5 5 15',
  more: 'M4.5 10h.01M10 10h.01M15.5 10h.01',
  settings: 'M4 6h7m3 0h2M4 14h2m3 0h7M11 4v4M6 12v4',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12Zm4.5-1.5L17 17',
  sessions: 'M4 5h12M4 10h12M4 15h8',
  inbox: 'M3 11h4l1.5 2.5h3L13 11h4M3 11l2.5-7h9L17 11v5H3z',
  warning: 'M10 3 2.5 16.5h15zM10 8v4M10 14.5h.01',
  stop: 'M6 6h8v8H6z',
  send: 'M10 16V4M5 9l5-5 5 5',
  attach: 'm15 9-5.5 5.5a3 3 0 0 1-4.2-4.2l6-6a2 2 0 0 1 2.8 2.8l-5.6 5.6',
  copy: 'M7 7V4h9v9h-3M4 7h9v9H4z',
  edit: 'm4 16 .8-3.2L13 4.6l2.4 2.4-8.2 8.2z',
};

/** An icon; decoration only, so whoever uses it names the control. @param {keyof typeof SHAPES} name @returns {SVGElement} */
export function icon(name) {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById('icon'));
  const svg = /** @type {SVGElement} */ (template.content.firstElementChild?.cloneNode(true));
  svg.firstElementChild?.setAttribute('d', SHAPES[name]);
  return svg;
}

/** A button with an icon and a name for it. @param {keyof typeof SHAPES} name @param {string} label @param {(event: Event) => void} onClick @param {string} [classes] */
export function iconButton(name, label, onClick, classes = '') {
  return h('button.button.quiet.icon', { 'aria-label': label, title: label, class: classes, on: { click: onClick } }, icon(name));
}

/** @type {Set<() => void>} */
let waiting = new Set();
let isAsked = false;

/** Runs a function at the next frame; the same function only once. @param {() => void} draw */
export function onFrame(draw) {
  waiting.add(draw);
  if (!isAsked) {
    isAsked = true;
    // A hidden page has no frames, but its title and what it says must be right.
    if (document.visibilityState === 'hidden') setTimeout(run, 250);
    else requestAnimationFrame(run);
  }
}

/** Takes back what was asked for. @param {() => void} draw */
export function cancelFrame(draw) {
  waiting.delete(draw);
}

document.addEventListener('visibilitychange', () => {
  // A frame that was asked for and never came, because the page was hidden meanwhile.
  if (isAsked) setTimeout(run, 250);
});

function run() {
  if (!isAsked) return; // it ran meanwhile by the other way
  isAsked = false;
  const draws = waiting;
  waiting = new Set();
  for (const draw of draws) {
    try {
      draw();
    } catch (error) {
      reportError(error);
    }
  }
}

/** Styles that the list of sessions does not need. */
const LATER_STYLES = ['sheet', 'chat', 'diff'];
/** @type {Promise<unknown> | undefined} */
let laterStyles;

/** Loads the styles of what is not on the first screen: once, and again after a failure. */
export function loadStyles() {
  laterStyles ??= Promise.all(LATER_STYLES.map(loadStyle)).catch((error) => {
    laterStyles = undefined;
    throw error;
  });
  return laterStyles;
}

/** @param {string} name @returns {Promise<void>} */
function loadStyle(name) {
  return new Promise((resolve, reject) => {
    const link = h('link', { rel: 'stylesheet', href: new URL(`../../css/${name}.css`, import.meta.url).href });
    link.addEventListener('load', () => resolve());
    link.addEventListener('error', () => {
      link.remove();
      reject(new Error(`css/${name}.css did not load`));
    });
    document.head.append(link);
  });
}
