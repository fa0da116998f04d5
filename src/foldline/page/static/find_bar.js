// Finds every place of a text in the transcript, folded or not, and goes from one place to the next.

import { get } from "./api.js";
import { attempt } from "./dialogs.js";
import { h, put } from "./dom.js";
import { plural, whole } from "./format.js";

const PAUSE_MS = 300;

/** The field, its buttons and the count. `firstInSight()` is the number of the message at which the search begins;
 * `show(message, text, place)` goes to a place of a message, counted from 0. */
export function findBar(context, { firstInSight, show }) {
  let found = null; // the answer for the text in the field
  let at = -1; // the chosen place among all places, counted from 0
  let turn = 0;
  let timer = 0;
  const field = h("input", { type: "search", class: "find-text", "aria-label": "Find in the messages", placeholder: "Find a text", title: "Enter: next place. Shift+Enter: previous place. In the list: / to find, n and N to go on.",
    oninput: () => { clearTimeout(timer); forget(); timer = setTimeout(count, PAUSE_MS); }, onkeydown: keys });
  const shown = h("span", { class: "muted find-count", "aria-live": "polite" });
  const previous = h("button", { class: "button small", "aria-label": "Previous place", disabled: true, onclick: () => step(-1) }, "‹");
  const next = h("button", { class: "button small", "aria-label": "Next place", disabled: true, onclick: () => step(1) }, "›");

  function keys(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    clearTimeout(timer);
    step(event.shiftKey ? -1 : 1);
  }

  function forget() {
    found = null;
    at = -1;
    turn += 1;
    previous.disabled = next.disabled = true;
    put(shown);
  }

  /** Counts the places of the text. */
  async function count() {
    const text = field.value.trim();
    const mine = ++turn;
    if (!text) return forget();
    put(shown, "Searching…");
    const answer = await attempt(() => get("find", { ...context.where, query: text }));
    if (mine !== turn) return;
    found = answer || null;
    at = Math.min(at, (found?.places ?? 0) - 1);
    drawCount();
  }

  function drawCount() {
    previous.disabled = next.disabled = !found?.places;
    if (!found) return put(shown);
    const where = `${whole(found.places)} in ${plural(found.messages.length, "message")}`;
    return put(shown, !found.places ? "not found" : at < 0 ? where : `${whole(at + 1)} of ${where}`);
  }

  /** Goes to the next (1) or previous (-1) place. The first step goes to the first place at or after the messages in sight. */
  async function step(direction) {
    if (found?.query !== field.value.trim()) await count();
    if (!found?.places) return;
    at = at < 0 ? (direction > 0 ? firstPlace() : found.places - 1) : (at + direction + found.places) % found.places;
    drawCount();
    let place = at;
    const [message] = found.messages.find(([, places]) => { if (place < places) return true; place -= places; return false; });
    show(message, found.query, place);
  }

  function firstPlace() {
    const start = firstInSight();
    let before = 0;
    for (const [message, places] of found.messages) {
      if (message >= start) return before;
      before += places;
    }
    return 0;
  }

  return {
    nodes: [field, previous, next, shown], step,
    focus() { field.focus(); field.select(); },
    /** Finds a text that does not come from the field, such as a text in the address. */
    start(text) {
      if (text === field.value && found) return;
      field.value = text;
      forget();
      step(1);
    },
    /** Counts again after messages were added. */
    update() { if (found) count(); },
  };
}
