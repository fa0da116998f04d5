// The transcript: only the rows in sight exist, so that a session of any length scrolls smoothly.
// The fold line is a row of its own between the messages that the model no longer sees and those that it sees.

import { get } from "./api.js";
import { attempt } from "./dialogs.js";
import { h, put, visible, withHandles } from "./dom.js";
import { percent, plural, tokens } from "./format.js";
import { openMessage, rowContent } from "./message_view.js";

const PAGE = 100;
const BEYOND = 8;

export function transcriptTab(panel, context) {
  const rowHeight = matchMedia("(max-width: 640px)").matches ? 66 : 46;
  const pages = new Map();
  const waiting = new Set();
  const open = new Set();
  const heights = new Map();
  const nodes = new Map();
  let total = context.report.messages;
  let cut = context.report.cut;
  let focused = 0;
  let generation = 0;

  const space = h("div", { class: "space", role: "list", "aria-label": "Messages" });
  const scroller = h("div", { class: "transcript", tabindex: "-1" }, space);
  const number = h("input", { type: "number", min: "1", id: "jump", "aria-label": "Message number", placeholder: "#", onchange: () => jump(Number(number.value)) });
  const status = h("span", { class: "muted", "aria-live": "polite" });
  const line = h("button", { class: "button small", onclick: () => jumpToLine() }, "Go to the fold line");
  put(panel, h("div", { class: "tools" }, h("label", { class: "jump" }, "Go to ", number), line,
    h("button", { class: "button small", onclick: () => jump(total) }, "Newest"), status), scroller);

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
    pages.set(page, answer.messages);
    for (const [item, node] of nodes) {
      if (!isLine(item) && Math.floor(messageAt(item) / PAGE) === page) fillItem(item, node);
    }
  }

  let asked = 0;
  function draw() {
    asked = 0;
    const top = scroller.scrollTop;
    const first = Math.max(0, itemAt(top) - BEYOND);
    const last = Math.min(count() - 1, itemAt(top + scroller.clientHeight) + BEYOND);
    space.style.height = `${offsetOf(count())}px`;
    for (const [item, node] of nodes) {
      if (item < first || item > last) { sizes.unobserve(node); node.remove(); nodes.delete(item); }
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
      node.style.transform = `translateY(${offsetOf(item)}px)`;
    }
    put(status, total ? `${plural(total, "message")}${cut ? `, ${cut.toLocaleString("en")} above the line` : ""}` : "No messages yet");
    line.hidden = !cut;
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
    node.className = `item message${cut && message < cut ? " above" : ""}`;
    if (!row) {
      put(node, h("div", { class: "m-row skeleton" }, h("span", { class: "m-number" }, `#${message + 1}`)));
      return;
    }
    node.classList.toggle("folded", row.folded);
    node.classList.toggle("prompt", row.is_prompt);
    const isOpen = open.has(message);
    const button = h("button", { class: "m-row", "aria-expanded": String(isOpen), tabindex: item === focused ? "0" : "-1",
      onclick: () => toggle(item) }, rowContent(row));
    put(node, button, isOpen ? openMessage(context, row, schedule) : null);
    if (isOpen) sizes.observe(node);
    else { sizes.unobserve(node); heights.delete(item); }
  }

  function toggle(item) {
    const message = messageAt(item);
    if (open.has(message)) open.delete(message);
    else open.add(message);
    focused = item;
    const node = nodes.get(item);
    if (node) { fillItem(item, node); node.querySelector("button")?.focus(); }
    schedule();
  }

  function focusItem(item) {
    focused = Math.max(0, Math.min(count() - 1, item));
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
    else return;
    event.preventDefault();
  });
  scroller.addEventListener("focusin", (event) => {
    const item = event.target.closest(".item");
    if (item) focused = Number(item.dataset.item);
  });
  scroller.addEventListener("scroll", schedule, { passive: true });

  async function jump(message, isOpen = true) {
    if (!message || message < 1 || message > total) return;
    const item = itemOf(message - 1);
    if (isOpen) open.add(message - 1);
    scroller.scrollTop = Math.max(0, offsetOf(item) - 80);
    focused = item;
    draw();
    const node = nodes.get(item);
    if (node) {
      fillItem(item, node);
      node.classList.add("hit");
      setTimeout(() => node.classList.remove("hit"), 2500);
    }
  }

  function jumpToLine() {
    scroller.scrollTop = Math.max(0, offsetOf(cut) - scroller.clientHeight / 3);
    draw();
  }

  const resized = new ResizeObserver(schedule);
  resized.observe(scroller);
  let started = false;
  return {
    show(params) {
      draw();
      if (params.message) jump(Number(params.message));
      else if (!started) {
        if (cut) jumpToLine();
        else scroller.scrollTop = offsetOf(count());
      }
      started = true;
      schedule();
    },
    update(before) {
      const report = context.report;
      if (report.version === before.version) return; // only the measured size is new
      const atEnd = scroller.scrollTop + scroller.clientHeight > space.offsetHeight - 80;
      const onlyGrew = report.cut === cut && report.messages >= total && report.folds === before.folds && JSON.stringify(report.pins) === JSON.stringify(before.pins);
      if (onlyGrew) pages.delete(Math.floor(total / PAGE));
      else { pages.clear(); heights.clear(); generation += 1; waiting.clear(); }
      total = report.messages;
      cut = report.cut;
      if (!onlyGrew) for (const [item, node] of nodes) { node.remove(); nodes.delete(item); }
      draw();
      if (atEnd && onlyGrew) scroller.scrollTop = space.offsetHeight;
    },
    leave() { sizes.disconnect(); resized.disconnect(); },
  };
}

/** The fold line with the beginning of the digest; the whole digest opens in place. */
function foldLine(context) {
  const report = context.report;
  const fold = report.fold_list[report.fold_list.length - 1];
  const digest = fold?.digest;
  const text = h("pre", { class: "digest-text", tabindex: "0" }, "Loading…");
  const box = digest ? h("details", { class: "line-digest", ontoggle: async (event) => {
    if (!event.target.open || text.dataset.loaded) return;
    const found = await attempt(() => get("fold", { ...context.where, number: fold.number }));
    if (found) { text.dataset.loaded = "1"; put(text, withHandles(visible(found.digest.text), context.linkTo)); }
  } }, h("summary", {}, `Digest by ${digest.by}: ${tokens(digest.tokens)} tokens stand for them`,
    digest.facts ? `, ${percent(digest.kept / digest.facts)} of the facts` : ""), text) : h("p", { class: "muted" }, fold?.reason || "");
  return [
    h("div", { class: "fold-line" }, h("span", {}, "Fold line")),
    h("div", { class: "line-body" },
      h("p", {}, h("b", {}, `↑ ${report.folded}`), " are no longer sent to the model. They stay in the ledger; recall finds them."),
      box, h("p", {}, h("a", { href: context.link({ tab: "folds", fold: fold?.number || "" }) }, `Fold ${fold?.number}: what it kept and lost`))),
  ];
}
