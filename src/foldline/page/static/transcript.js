// The transcript: only the rows in sight exist, so that a session of any length scrolls smoothly.
// The fold line is a row of its own between the messages that the model no longer sees and those that it sees.

import { get } from "./api.js";
import { attempt, toast } from "./dialogs.js";
import { h, put, visible, withHandles } from "./dom.js";
import { percent, plural, tokens, writerOf } from "./format.js";
import { buttons, details, openMessage, rowContent, showMark } from "./message_view.js";
import { appliedFold } from "./changes.js";
import { findBar } from "./find_bar.js";

const PAGE = 100;
const BEYOND = 8;

export function transcriptTab(panel, context) {
  const rowHeight = matchMedia("(max-width: 640px)").matches ? 66 : 46;
  const pages = new Map();
  const waiting = new Set();
  const open = new Set();
  const wanted = new Map(); // what is marked in an open message: { text, isExact, place, isShown }
  const heights = new Map();
  const nodes = new Map();
  let total = context.report.messages;
  let cut = context.report.cut;
  let focused = 0;
  let generation = 0;
  let awaited = -1; // the item that gets the focus as soon as its row is known
  let held = null; // the item that keeps its place on the screen while the heights of rows change: { item, top }
  let placed = -1; // the last position that the page itself scrolled to

  const space = h("div", { class: "space", role: "list", "aria-label": "Messages" });
  const scroller = h("div", { class: "transcript", tabindex: "-1" }, space);
  const number = h("input", { type: "number", min: "1", id: "jump", "aria-label": "Message number", placeholder: "#" });
  const goTo = h("form", { class: "jump", novalidate: "", onsubmit: (event) => {
    event.preventDefault();
    const asked = Number(number.value);
    if (asked >= 1 && asked <= total) jump(asked);
    else if (number.value) toast(`There is no message #${number.value}: the newest is #${total}.`, { error: true });
  } }, h("label", {}, "Go to ", number));
  const status = h("span", { class: "muted", "aria-live": "polite" });
  const line = h("button", { class: "button small", onclick: () => jumpToLine() }, "Go to the fold line");
  const find = findBar(context, { firstInSight: () => messageAt(itemAt(scroller.scrollTop)) + 1, show: showPlace });
  put(panel, h("div", { class: "tools" }, goTo, line,
    h("button", { class: "button small", onclick: () => jump(total) }, "Newest"), status, h("div", { class: "find", role: "search" }, find.nodes)), scroller);

  const count = () => total + (cut ? 1 : 0);
  const messageAt = (item) => (cut && item > cut ? item - 1 : item);
  const isLine = (item) => cut > 0 && item === cut;
  const itemOf = (message) => (cut && message >= cut ? message + 1 : message);
  const heightOf = (item) => heights.get(item) ?? (isLine(item) ? 120 : rowHeight);

  function offsetOf(item) {
    let offset = item * rowHeight;
    for (const [other, height] of heights) if (other < item) offset += height - rowHeight;
    if (cut && item > cut && !heights.has(cut)) offset += 120 - rowHeight;
    return offset;
  }

  function itemAt(offset) {
    let low = 0;
    let high = count() - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (offsetOf(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  function rowOf(message) {
    const page = Math.floor(message / PAGE);
    const rows = pages.get(page);
    if (!rows) load(page);
    return rows?.[message - page * PAGE];
  }

  async function load(page) {
    if (waiting.has(page)) return;
    waiting.add(page);
    const mine = generation;
    const answer = await attempt(() => get("messages", { ...context.where, start: page * PAGE, stop: (page + 1) * PAGE }));
    waiting.delete(page);
    if (!answer || mine !== generation) return;
    const known = pages.get(page);
    pages.set(page, answer.messages);
    for (const [item, node] of nodes) {
      if (isLine(item) || Math.floor(messageAt(item) / PAGE) !== page) continue;
      const place = messageAt(item) - page * PAGE;
      if (known && JSON.stringify(known[place]) === JSON.stringify(answer.messages[place])) continue;
      fillItem(item, node);
    }
  }

  /** Scrolls an item to a distance in pixels from the upper edge, and keeps it there. */
  function hold(item, top) {
    held = { item, top };
    space.style.height = `${offsetOf(count())}px`;
    scroller.scrollTop = Math.max(0, offsetOf(item) - top);
    placed = scroller.scrollTop;
  }

  /** After the user scrolled: the held item stays the same while it is in sight; else the first item in sight is held. */
  function followScroll() {
    schedule();
    if (Math.abs(scroller.scrollTop - placed) < 1) return;
    placed = scroller.scrollTop;
    const isInSight = held && held.item < count() && offsetOf(held.item) + heightOf(held.item) > placed && offsetOf(held.item) < placed + scroller.clientHeight;
    const item = isInSight ? held.item : itemAt(placed);
    held = { item, top: offsetOf(item) - placed };
  }

  /** Moves a row to its place. An open row is not moved by a transform, because its sticky head would then scroll away. */
  function place(item, node) {
    const isOpen = node.classList.contains("open");
    node.style.top = isOpen ? `${offsetOf(item)}px` : "";
    node.style.transform = isOpen ? "" : `translateY(${offsetOf(item)}px)`;
  }

  let asked = 0;
  function draw() {
    asked = 0;
    const isMoved = held && held.item < count() && scroller.clientHeight && Math.abs(Math.max(0, offsetOf(held.item) - held.top) - placed) > 1;
    if (isMoved) hold(held.item, held.top); // the heights of the rows above it have changed
    const top = scroller.scrollTop;
    const first = Math.max(0, itemAt(top) - BEYOND);
    const last = Math.min(count() - 1, itemAt(top + scroller.clientHeight) + BEYOND);
    space.style.height = `${offsetOf(count())}px`;
    for (const [item, node] of nodes) {
      if (item >= first && item <= last) continue;
      if (node.contains(document.activeElement)) { place(item, node); continue; } // the arrow keys go on from here
      sizes.unobserve(node);
      node.remove();
      nodes.delete(item);
    }
    for (let item = first; item <= last; item += 1) {
      let node = nodes.get(item);
      if (!node) {
        node = h("div", { class: "item", role: "listitem", data: { item } });
        node.setAttribute("aria-setsize", String(count()));
        node.setAttribute("aria-posinset", String(item + 1));
        nodes.set(item, node);
        space.append(node);
        fillItem(item, node);
      }
      place(item, node);
    }
    if (!nodes.has(focused) || isLine(focused)) moveTabStop(top);
    const notes = context.report.removed.length;
    put(status, total ? `${plural(total - notes, "message")}${notes ? `, ${plural(notes, "removed note")}` : ""}${cut || notes ? `, ${notSent(context.report).toLocaleString("en")} no longer sent` : ""}` : "No messages yet");
    line.hidden = !cut;
  }
  /** Makes a row in sight the one that the Tab key reaches. */
  function moveTabStop(top) {
    let item = itemAt(top);
    if (offsetOf(item) < top && item < count() - 1) item += 1;
    if (isLine(item)) item += item < count() - 1 ? 1 : -1;
    const old = nodes.get(focused)?.querySelector(".m-row");
    if (old) old.tabIndex = -1;
    focused = item;
    const row = nodes.get(item)?.querySelector("button.m-row");
    if (row) row.tabIndex = 0;
  }

  const schedule = () => { if (!asked) asked = requestAnimationFrame(draw); };

  const sizes = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const item = Number(entry.target.dataset.item);
      const height = entry.borderBoxSize?.[0]?.blockSize ?? entry.target.offsetHeight;
      if (height && Math.abs(heightOf(item) - height) > 0.5) { heights.set(item, height); schedule(); }
    }
  });

  function fillItem(item, node) {
    if (isLine(item)) {
      node.className = "item line";
      put(node, foldLine(context));
      sizes.observe(node);
      return;
    }
    const message = messageAt(item);
    const row = rowOf(message);
    node.className = `item message${cut && message < cut ? " above" : ""}${open.has(message) ? " open" : ""}`;
    if (!row) {
      put(node, h("div", { class: "m-row skeleton" }, h("span", { class: "m-number" }, `#${message + 1}`)));
      return;
    }
    node.classList.toggle("folded", row.folded);
    node.classList.toggle("prompt", row.is_prompt);
    const isOpen = open.has(message);
    const takesFocus = item === awaited || node.contains(document.activeElement);
    const button = h("button", { class: "m-row", "aria-expanded": String(isOpen), tabindex: item === focused ? "0" : "-1",
      onclick: () => toggle(item) }, rowContent(row));
    put(node, button, isOpen ? openMessage(context, row, { resized: schedule, wanted: wanted.get(message), reveal }) : null);
    place(item, node);
    if (item === awaited) awaited = -1;
    if (takesFocus) button.focus({ preventScroll: true });
    if (isOpen) sizes.observe(node);
    else { sizes.unobserve(node); heights.delete(item); }
  }

  /** Scrolls a mark of an open message into the middle, once. The head of the message stays at the upper edge. */
  function reveal(mark) {
    const node = mark.closest(".item");
    const seek = node && wanted.get(messageAt(Number(node.dataset.item)));
    if (!seek || seek.isShown || !scroller.clientHeight) return; // another view is shown meanwhile
    seek.isShown = true;
    const inside = mark.getBoundingClientRect().top - node.getBoundingClientRect().top;
    hold(Number(node.dataset.item), (scroller.clientHeight - mark.offsetHeight) / 2 - inside);
    schedule();
  }

  /** Goes to a place of a text in a message. The focus stays where it is. */
  function showPlace(message, text, place) {
    const opened = nodes.get(itemOf(message - 1))?.querySelector(".m-open");
    const seek = { text, isExact: true, place, isShown: false };
    if (opened?.dataset.text === text && wanted.get(message - 1)?.isExact) {
      wanted.set(message - 1, seek);
      if (showMark(opened, seek, reveal)) return;
    }
    jump(message, seek, false);
  }

  function toggle(item) {
    const message = messageAt(item);
    if (open.has(message)) {
      open.delete(message);
      if (held?.item === item) held.top = Math.max(0, held.top); // the head of the message stays visible, even if its beginning is not
    } else open.add(message);
    focused = item;
    const node = nodes.get(item);
    if (node) { fillItem(item, node); node.querySelector("button")?.focus(); }
    schedule();
  }

  function focusItem(item) {
    focused = Math.max(0, Math.min(count() - 1, item));
    held = null;
    const top = offsetOf(focused);
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + heightOf(focused) > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + heightOf(focused) - scroller.clientHeight;
    draw();
    const button = nodes.get(focused)?.querySelector("button, a");
    if (button) { button.tabIndex = 0; button.focus({ preventScroll: true }); }
  }

  scroller.addEventListener("keydown", (event) => {
    if (event.target.closest("pre, textarea, input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 };
    if (event.key in steps) focusItem(focused + steps[event.key]);
    else if (event.key === "Home") focusItem(0);
    else if (event.key === "End") focusItem(count() - 1);
    else if (event.key === "/") find.focus();
    else if (event.key === "n" || event.key === "N") find.step(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
  });
  scroller.addEventListener("focusin", (event) => {
    const item = event.target.closest(".item");
    if (item && !isLine(Number(item.dataset.item))) focused = Number(item.dataset.item);
  });
  panel.addEventListener("focusin", (event) => { // if the user has moved the focus, a row that loads later does not take it back
    if (!scroller.contains(event.target)) awaited = -1;
  });
  scroller.addEventListener("click", (event) => { // the clicked row keeps its place; only the rows below it move
    const item = Number(event.target.closest(".item")?.dataset.item ?? -1);
    if (item >= 0) { placed = scroller.scrollTop; held = { item, top: offsetOf(item) - placed }; }
  }, { capture: true });
  scroller.addEventListener("scroll", followScroll, { passive: true });

  /** Opens a message and scrolls to it. `seek` is what to mark in it. */
  function jump(message, seek = null, takesFocus = true) {
    if (!message || message < 1 || message > total) return;
    const item = itemOf(message - 1);
    open.add(message - 1);
    wanted.clear();
    if (seek) wanted.set(message - 1, seek);
    hold(item, 80);
    focused = item;
    if (takesFocus) awaited = item;
    const drawn = nodes.get(item);
    draw();
    const node = nodes.get(item);
    if (node) {
      if (node === drawn) fillItem(item, node);
      node.classList.add("hit");
      setTimeout(() => node.classList.remove("hit"), 2500);
    }
  }

  function jumpToLine() {
    hold(cut, scroller.clientHeight / 3);
    draw();
  }

  const resized = new ResizeObserver(schedule);
  resized.observe(scroller);
  let started = false;
  return {
    show(params) {
      draw();
      if (params.message) jump(Number(params.message), params.find ? { text: params.find, isExact: false, place: 0, isShown: false } : null);
      else if (params.find) find.start(params.find);
      else if (!started) {
        if (cut) { focused = Math.min(cut + 1, count() - 1); jumpToLine(); }
        else scroller.scrollTop = offsetOf(count());
      }
      started = true;
      schedule();
    },
    update(before) {
      const report = context.report;
      if (report.version === before.version) return; // only the measured size is new
      const atEnd = scroller.scrollTop + scroller.clientHeight > space.offsetHeight - 80;
      const sameFold = report.cut === cut && report.messages >= total && report.folds === before.folds;
      const pinsOf = ({ pins, removed }) => JSON.stringify([pins, removed]);
      const samePins = pinsOf(report) === pinsOf(before);
      const first = itemAt(scroller.scrollTop);
      const [anchor, inside] = [messageAt(first), scroller.scrollTop - offsetOf(first)];
      const stale = [...pages.keys()];
      if (sameFold && samePins) pages.delete(Math.floor(total / PAGE));
      else if (!sameFold) { pages.clear(); heights.clear(); }
      generation += sameFold && samePins ? 0 : 1;
      if (!(sameFold && samePins)) waiting.clear();
      const [heldMessage, isLineHeld] = held ? [messageAt(held.item), isLine(held.item)] : [0, false];
      if (report.messages !== total) find.update();
      total = report.messages;
      cut = report.cut;
      held = held && { ...held, item: isLineHeld && cut ? cut : itemOf(Math.min(heldMessage, total - 1)) };
      if (!sameFold) for (const [item, node] of nodes) { sizes.unobserve(node); node.remove(); nodes.delete(item); }
      draw();
      if (sameFold && !samePins) stale.forEach(load); // the rows stay until their new state is known
      if (!sameFold && !held) scroller.scrollTop = Math.max(0, offsetOf(itemOf(Math.min(anchor, total - 1))) + inside);
      else if (sameFold && atEnd && samePins) { held = null; scroller.scrollTop = space.offsetHeight; }
    },
    showPin(message, name, copy, isRemoved = false) {
      const row = pages.get(Math.floor((message - 1) / PAGE))?.[(message - 1) % PAGE];
      if (!row) return;
      row.pin = name;
      row.copy = copy;
      row.removed = isRemoved;
      row.folded ||= isRemoved;
      const node = nodes.get(itemOf(message - 1));
      if (!node) return;
      node.classList.toggle("folded", row.folded);
      put(node.querySelector(".m-row"), rowContent(row));
      const old = node.querySelector(".m-buttons");
      if (!old) return;
      node.querySelector(".m-details").replaceWith(details(context, row));
      const hadFocus = old.contains(document.activeElement);
      const made = buttons(context, row);
      old.replaceWith(made);
      if (hadFocus) made.querySelector("button")?.focus({ preventScroll: true });
    },
    leave() { sizes.disconnect(); resized.disconnect(); },
  };
}

/** The number of messages that are no longer sent: those that a fold removed, and notes that left with their pins. */
const notSent = (report) => report.left + report.removed.filter((number) => number > report.cut).length;

/** The fold line with the beginning of the digest; the whole digest opens in place. */
function foldLine(context) {
  const report = context.report;
  const fold = appliedFold(report);
  const digest = fold?.digest;
  const text = h("pre", { class: "digest-text", tabindex: "0" }, "Loading…");
  const box = digest ? h("details", { class: "line-digest", ontoggle: async (event) => {
    if (!event.target.open || text.dataset.loaded) return;
    const found = await attempt(() => get("fold", { ...context.where, number: fold.number }));
    if (found) { text.dataset.loaded = "1"; put(text, withHandles(visible(found.digest.text), context.linkTo)); }
  } }, h("summary", { title: writerOf(digest.by) }, `Digest by ${digest.by}: ${tokens(digest.tokens)} tokens replace them`,
    digest.facts ? `, ${percent(digest.kept / digest.facts)} of the facts` : ""), text) : h("p", { class: "muted" }, fold?.reason || "");
  return [
    h("div", { class: "fold-line" }, h("span", {}, "Fold line")),
    h("div", { class: "line-body" },
      h("p", {}, h("b", {}, `↑ ${plural(report.left, "message")}`), ` (${report.folded}) are no longer sent to the model. They stay in the ledger; recall finds them.`),
      box, h("p", {}, h("a", { href: context.link({ tab: "folds", fold: fold?.number || "" }) }, `Fold ${fold?.number}: what it kept and lost`))),
  ];
}
