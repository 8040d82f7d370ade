// One callback a frame for all that has to be drawn. Promises: what is asked for twice before a frame runs once; one that fails
// does not keep the others from running. Must not know: what is drawn.

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
