/**
 * As much of a document as the views need that are tested without a browser: elements, their events, the focus. To be loaded before
 * them.
 */

class Node {
  parent = null;
  childNodes = [];

  get isConnected() {
    return this === document.body || (this.parent?.isConnected ?? false);
  }
  get textContent() {
    return this.childNodes.map((child) => child.textContent).join('');
  }
  set textContent(text) {
    this.replaceChildren(...(text === '' ? [] : [text]));
  }
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  get lastChild() {
    return this.childNodes.at(-1) ?? null;
  }
  append(...children) {
    for (const child of children) this.insertBefore(child instanceof Node ? child : new Text(child), null);
  }
  insertBefore(node, before) {
    node.remove();
    node.parent = this;
    const at = before === null ? this.childNodes.length : this.childNodes.indexOf(before);
    this.childNodes.splice(at, 0, node);
  }
  after(node) {
    const siblings = this.parent.childNodes;
    this.parent.insertBefore(node, siblings[siblings.indexOf(this) + 1] ?? null);
  }
  replaceWith(node) {
    this.after(node);
    this.remove();
  }
  replaceChildren(...children) {
    for (const child of [...this.childNodes]) child.remove();
    this.append(...children);
  }
  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this);
    this.parent = null;
  }
  contains(other) {
    return other === this || (other?.parent ? this.contains(other.parent) : false);
  }
}

class Text extends Node {
  constructor(text) {
    super();
    this.text = String(text);
  }
  get textContent() {
    return this.text;
  }
}

class HTMLElement extends Node {
  attributes = new Map();
  listeners = [];
  dataset = {};
  style = {};
  className = '';
  value = '';
  hidden = false;
  disabled = false;
  readOnly = false;

  constructor(tag) {
    super();
    this.tag = tag;
    this.classList = { add: (...names) => void (this.className = [this.className, ...names].join(' ').trim()) };
  }
  get children() {
    return this.childNodes.filter((child) => child instanceof HTMLElement);
  }
  get childElementCount() {
    return this.children.length;
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get nextElementSibling() {
    const siblings = this.parent?.children ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }
  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }
  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }
  hasAttribute(name) {
    return this.attributes.has(name);
  }
  removeAttribute(name) {
    this.attributes.delete(name);
  }
  /** `button`, `.class`, `button.class`, or several of them. */
  matches(selector) {
    return selector.split(',').map((one) => one.trim().split('.')).some(([tag, ...names]) => (tag === '' || tag === this.tag) && names.every((name) => this.className.split(' ').includes(name)));
  }
  querySelectorAll(selector) {
    return this.childNodes.filter((child) => child instanceof HTMLElement)
      .flatMap((child) => [...(child.matches(selector) ? [child] : []), ...child.querySelectorAll(selector)]);
  }
  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }
  closest(selector) {
    return this.matches(selector) ? this : (this.parent?.closest(selector) ?? null);
  }
  addEventListener(kind, run, options) {
    this.listeners.push({ kind, run, isCapture: options?.capture === true });
  }
  dispatch(event) {
    event.target = this;
    const path = [];
    for (let element = this; element; element = element.parent) path.push(element);
    for (const isCapture of [true, false]) {
      for (const element of isCapture ? [...path].reverse() : path) {
        for (const listener of element.listeners) {
          if (listener.kind === event.type && listener.isCapture === isCapture && !event.isStopped) listener.run(event);
        }
      }
    }
  }
  dispatchEvent(event) {
    this.dispatch(event);
  }
  click() {
    if (!this.disabled) this.dispatch(new Event('click'));
  }
  focus() {
    if (!this.disabled && this.isConnected) document.activeElement = this;
  }
  requestSubmit() {
    this.dispatch(new Event('submit'));
  }
  cloneNode() {
    return new HTMLElement(this.tag);
  }
  getBoundingClientRect() {
    return { top: 0, bottom: 0, left: 0, right: 0, width: 0, height: 0 };
  }
  scrollTo() {}
  showPopover() {}
  hidePopover() {
    this.dispatch(Object.assign(new Event('toggle'), { newState: 'closed' }));
  }
  show() {
    this.open = true;
  }
  showModal() {
    this.open = true;
  }
  close(value = '') {
    Object.assign(this, { open: false, returnValue: value });
    this.dispatch(new Event('close'));
  }
}

class Event {
  constructor(type, more = {}) {
    Object.assign(this, { type, ...more });
  }
  preventDefault() {}
  stopPropagation() {}
  stopImmediatePropagation() {
    this.isStopped = true;
  }
}
class KeyboardEvent extends Event {}
class HTMLTextAreaElement extends HTMLElement {}
class HTMLInputElement extends HTMLElement {}
class HTMLSelectElement extends HTMLElement {}
class HTMLOptionElement extends HTMLElement {}

const KINDS = { textarea: HTMLTextAreaElement, input: HTMLInputElement, select: HTMLSelectElement, option: HTMLOptionElement };
const picture = new HTMLElement('template');
picture.content = new HTMLElement('div');
picture.content.append(new HTMLElement('svg'));
const body = new HTMLElement('body');
const document = {
  body,
  activeElement: body,
  createElement: (tag) => new (KINDS[tag] ?? HTMLElement)(tag),
  getElementById: (id) => (id === 'icon' ? picture : null),
  addEventListener() {},
};
Object.assign(globalThis, {
  Node, HTMLElement, HTMLTextAreaElement, HTMLInputElement, HTMLSelectElement, HTMLOptionElement, Event, KeyboardEvent, document,
  innerWidth: 400, innerHeight: 800, matchMedia: () => ({ matches: false }),
});

/** The button with this text or name, wherever it is; none that is hidden with what it stands in. */
export function findButton(text, within = body) {
  const isShown = (element) => !element.hidden && (element.parent === null || isShown(element.parent));
  return within.querySelectorAll('button').find((one) => isShown(one) && [one.textContent, one.getAttribute('aria-label')].includes(text)) ?? null;
}
