// Keeps what is being read where it is, and follows the end only while the reader is there.
//
// Promises: whatever grows or shrinks above, below or around (text, an older page, a picture that came late, a keyboard), the element at
// the top of the view stays at its place, unless the reader is at the end: then the end stays in view. Only the list is ever scrolled.
// Must not know: what is in the list.

/** How near to the end counts as being there, in pixels. */
const NEAR_END = 24;

/** How deep the element at the top of the view is looked for: turn, part, block, item. */
const ANCHOR_DEPTH = 5;

/** @typedef {{ element: Element, top: number }} Anchor */

export class ScrollKeeper {
  /**
   * @param {HTMLElement} view what scrolls
   * @param {HTMLElement} content its only child
   * @param {HTMLElement} list what is read, inside of the content; its children are what stays at its place
   * @param {{ onChange?: () => void, onScroll?: () => void }} [hooks] `onChange`: following began or ended; `onScroll`: the reader moved
   */
  constructor(view, content, list, hooks = {}) {
    this.view = view;
    this.list = list;
    this.hooks = hooks;
    this.isFollowing = true;
    /** @type {Anchor[]} from the outermost element to the innermost */
    this.anchors = [];
    this.expected = -Infinity;
    this.last = 0;
    this.isHidden = true;
    this.abort = new AbortController();
    view.addEventListener('scroll', () => this.heardScroll(), { passive: true, signal: this.abort.signal });
    this.observer = new ResizeObserver(() => this.restore());
    this.observer.observe(content);
    this.observer.observe(view);
  }

  stop() {
    this.abort.abort();
    this.observer.disconnect();
  }

  /** Pixels between the end of the view and the end of the content. */
  distanceToEnd() {
    return this.view.scrollHeight - this.view.clientHeight - this.view.scrollTop;
  }

  heardScroll() {
    this.takeMove();
    // Looking at places lays the page out: what grew above since the last frame shows only now, and is not what the reader did.
    this.restore();
    this.noteAnchor();
    this.hooks.onScroll?.();
  }

  /** Takes up how far the reader went since the last look. */
  takeMove() {
    const top = this.view.scrollTop;
    const moved = top - this.last;
    const isOwn = Math.abs(top - this.expected) < 2;
    this.expected = -Infinity;
    if (!isOwn && Math.abs(moved) < 1) return; // it was taken up before its event came; less than a pixel counts with what follows
    this.last = top;
    if (isOwn) return;
    const distance = this.distanceToEnd();
    this.setFollowing(distance <= NEAR_END && !(moved < -1 && distance > 2));
    for (const anchor of this.anchors) anchor.top -= moved;
  }

  /** @param {boolean} isFollowing */
  setFollowing(isFollowing) {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.hooks.onChange?.();
  }

  /** Remembers what is at the top of the view. */
  noteAnchor() {
    this.anchors = [];
    if (this.isFollowing) return;
    const { top: edge, bottom } = this.view.getBoundingClientRect();
    let parent = /** @type {Element} */ (this.list);
    for (let depth = 0; depth < ANCHOR_DEPTH; depth += 1) {
      const found = findAt(parent, edge);
      const top = found?.getBoundingClientRect().top ?? Infinity;
      if (!found || top > bottom) break; // what is not in view is not read
      this.anchors.push({ element: found, top: top - edge });
      parent = found;
    }
  }

  /** Puts everything back where it was. To be called after changes that must not wait for the next layout. */
  restore() {
    const { scrollTop, clientHeight } = this.view;
    if (clientHeight === 0) {
      this.isHidden = true; // what is not shown says that it is at its beginning
      return undefined;
    }
    // The event of a scroll comes a frame after it: what changes meanwhile must not take the reader back.
    if (!this.isHidden && Math.abs(scrollTop - this.last) > 1) this.takeMove();
    this.isHidden = false;
    if (this.isFollowing) return this.scrollTo(this.view.scrollHeight - this.view.clientHeight);
    const edge = this.view.getBoundingClientRect().top;
    for (let index = this.anchors.length - 1; index >= 0; index -= 1) {
      const anchor = this.anchors[index];
      if (!anchor || !anchor.element.isConnected || anchor.element.getClientRects().length === 0) continue;
      const moved = anchor.element.getBoundingClientRect().top - edge - anchor.top;
      if (Math.abs(moved) >= 1) this.scrollTo(this.view.scrollTop + moved);
      this.anchors.length = index + 1;
      return undefined;
    }
    return this.noteAnchor();
  }

  /** @param {number} top */
  scrollTo(top) {
    const wanted = Math.max(0, Math.min(top, this.view.scrollHeight - this.view.clientHeight));
    if (Math.abs(wanted - this.view.scrollTop) < 0.5) return;
    this.view.scrollTop = wanted;
    this.expected = this.view.scrollTop;
    this.last = this.expected;
  }

  /** Goes to the end and stays there. */
  follow() {
    this.setFollowing(true);
    this.restore();
  }

  /**
   * Brings an element to the top of the view, with some room above it.
   * @param {Element} element
   * @param {number} [room]
   */
  goTo(element, room = 12) {
    this.setFollowing(false);
    const edge = this.view.getBoundingClientRect().top;
    this.scrollTo(this.view.scrollTop + element.getBoundingClientRect().top - edge - room);
    this.noteAnchor();
  }
}

/**
 * The first child that reaches below an edge; children stand below each other.
 * @param {Element} parent
 * @param {number} edge
 */
function findAt(parent, edge) {
  const children = parent.children;
  let low = 0;
  let high = children.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const child = children[middle];
    if (child && child.getBoundingClientRect().bottom <= edge + 1) low = middle + 1;
    else high = middle;
  }
  for (let index = low; index < children.length; index += 1) {
    const child = children[index];
    // What has no box has no place.
    if (child && child.getClientRects().length > 0) return child;
  }
  return undefined;
}

/**
 * Keeps an element above a keyboard that covers the page instead of making it smaller.
 * @param {HTMLElement} element
 * @param {AbortSignal} signal
 */
export function stayAboveKeyboard(element, signal) {
  const visual = window.visualViewport;
  if (!visual) return; // no such keyboard on browsers without it
  const place = () => {
    // A zoomed page is smaller, too, but nothing covers it.
    const covered = visual.scale > 1.01 ? 0 : window.innerHeight - visual.height - visual.offsetTop;
    element.style.setProperty('--covered', `${Math.max(0, Math.round(covered))}px`);
  };
  visual.addEventListener('resize', place, { signal });
  visual.addEventListener('scroll', place, { signal });
  place();
}
