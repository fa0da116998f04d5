// One message: its row in the transcript, and all its parts when it is open.

import { get } from "./api.js";
import { attempt, toast } from "./dialogs.js";
import { exactPattern, findPattern, h, icon, put, visible, withMarks } from "./dom.js";
import { moment, tokens, whole } from "./format.js";
import { pin, previewFold, unpin } from "./changes.js";

const CHUNK = 20000;

const BADGES = { note: "A note was added by foldline or by its user: for example a pinned text, or a copy of a folded message.", digest: "A summary of earlier messages.", "branch digest": "A summary of another branch.", result: "The result of a tool." };

/** The badge with the author of a message. */
export function badge(author, ...more) {
  return h("span", { class: `badge r-${author.replace(/ /g, "-")}`, title: BADGES[author] || null }, author, more);
}

/** The label of a note that left the request together with its pin. */
export const removedChip = (row) => h("span", { class: "chip", title: "It left the request together with its pin" }, row.copy_of ? `removed copy of #${row.copy_of}` : "removed note");

/** The closed row of a message. */
export function rowContent(row) {
  const label = row.tools.length ? row.tools.slice(0, 2).join(", ") + (row.tools.length > 2 ? ` +${row.tools.length - 2}` : "") : "";
  const text = row.tools.length && row.target ? row.target : withoutName(row.starts, row.tools[0]);
  return [
    h("span", { class: "m-number" }, `#${row.number}`),
    badge(row.author, row.folded ? h("span", { class: "hide" }, ", no longer in the request") : null),
    h("span", { class: "m-text" }, label ? h("span", { class: "tool-name" }, label) : null, h("bdi", {}, visible(text || "(empty)"))),
    h("span", { class: "m-flags" },
      row.removed ? removedChip(row)
        : row.copy ? h("span", { class: "chip" }, `brought back as #${row.copy}`)
        : row.pin ? h("span", { class: "flag pin", title: row.copy_of ? `Pinned: a copy of #${row.copy_of}` : `Pinned as ${row.pin}` }, icon("pin"), h("span", { class: "hide" }, "pinned")) : null,
      row.stub ? h("span", { class: "chip stub" }, "stub") : null,
      row.error ? h("span", { class: "chip error" }, "error") : null),
    h("span", { class: "m-tokens" }, tokens(row.tokens)),
  ];
}

/** The beginning of a message without the name of the tool, which the row shows separately. */
const withoutName = (text, tool) => (tool && text.startsWith(`${tool} `) ? text.slice(tool.length + 1) : text);

/** The parts and the buttons of an open message. `wanted` is what to mark in it: `text`, whether only the exact text is marked
 * (`isExact`), and the place to show, counted from 0 (`place`). `reveal(mark)` is called when this place is drawn. */
export function openMessage(context, row, { resized, wanted = null, reveal = () => {} }) {
  const node = h("div", { class: "m-open" }, h("p", { class: "muted" }, "Loading…"));
  attempt(() => get("message", { ...context.where, number: row.number, whole: wanted?.isExact ? true : undefined })).then((message) => {
    if (!message) return;
    const seek = { context, message, wanted, left: wanted?.place ?? 0 };
    put(node, details(context, message), message.shown ? stubbed(seek) : parts(seek, message.parts), buttons(context, message));
    resized();
    node.dataset.text = wanted?.text ?? "";
    if (wanted) requestAnimationFrame(() => requestAnimationFrame(() => showMark(node, wanted, reveal)));
  });
  return node;
}

/** Marks the wanted place of an open message and scrolls to it. Returns false if the place is not drawn. */
export function showMark(node, wanted, reveal) {
  const mark = node.querySelectorAll("mark")[wanted.place ?? 0];
  if (!mark?.isConnected) return false;
  for (const other of node.querySelectorAll("mark.current")) other.classList.remove("current");
  if (wanted.isExact) mark.classList.add("current");
  const box = mark.closest("pre");
  box.scrollTop += mark.getBoundingClientRect().top - box.getBoundingClientRect().top - (box.clientHeight - mark.offsetHeight) / 2;
  reveal(mark);
  return true;
}

/** The time, the model and the size of a message, and the number of its copy or original. */
export function details(context, message) {
  const facts = [moment(message.at), message.model, `${whole(message.tokens)} tokens`];
  if (message.prompt_tokens) facts.push(`answers a request of ${whole(message.prompt_tokens)} tokens`);
  if (message.removed) facts.push("it left the request together with its pin");
  else if (message.folded && !message.copy) facts.push("no longer in the request");
  const other = message.copy || message.copy_of;
  return h("p", { class: "m-details muted" }, facts.filter(Boolean).join(" · "),
    other ? [message.copy ? " · brought back as " : " · a copy of ", h("a", { href: context.linkTo(other) }, `#${other}`)] : null);
}

function stubbed(seek) {
  return [h("h4", {}, "What the model sees"), parts({ ...seek, wanted: null }, seek.message.shown),
    h("details", { class: "whole", open: Boolean(seek.wanted) }, h("summary", {}, "The whole message, from the ledger"), parts(seek, seek.message.parts))];
}

function parts(seek, list) {
  return list.map((part, place) => h("section", { class: `part p-${part.type}` }, heading(part), body(seek, part, place)));
}

function heading(part) {
  const names = { thinking: part.encrypted ? "Thinking (encrypted)" : "Thinking", call: `Call of ${part.name}`, result: part.error ? "Result (error)" : "Result",
    media: `${part.name} ${part.mime || ""} ${part.bytes ? `${whole(part.bytes)} bytes` : ""}`, other: part.name };
  return names[part.type] ? h("h4", {}, names[part.type]) : null;
}

/** The text of a part, in pieces. The text that is searched for is marked, and shown even if it is far down. */
function body(seek, part, place) {
  if (!part.text) return null;
  const { context, message, wanted } = seek;
  const text = visible(part.text);
  const pattern = !wanted ? null : wanted.isExact ? exactPattern(wanted.text) : findPattern(text, wanted.text);
  const spans = pattern ? [...text.matchAll(pattern)].map((found) => [found.index, found.index + found[0].length]) : [];
  const box = h("div", { class: "text" });
  let shown = 0;
  const more = h("button", { class: "link" });
  const add = async () => {
    let all = text;
    if (shown >= text.length && !part.is_whole) {
      const found = await attempt(() => get("message", { ...context.where, number: message.number, whole: true }));
      if (!found) return;
      all = visible(found.parts[place]?.text ?? part.text);
      part.is_whole = true;
    }
    const end = spans.find(([from, to]) => from < shown + CHUNK && to > shown + CHUNK)?.[1] ?? shown + CHUNK; // a match stays in one piece
    const piece = all.slice(shown, end);
    box.append(h("pre", { tabindex: "0" }, pattern ? withMarks(piece, pattern) : piece));
    shown = end;
    const rest = (part.is_whole ? all.length : part.chars) - shown;
    if (rest > 0) put(more, `Show more (${whole(rest)} characters left)`);
    else more.remove();
  };
  more.addEventListener("click", add);
  const until = seek.left < 0 || !spans.length ? 0 : spans[seek.left]?.[0] ?? text.length - 1;
  seek.left -= spans.length;
  do add(); while (shown <= until && shown < text.length);
  return [box, shown < part.chars ? more : null];
}

/** The buttons below an open message. */
export function buttons(context, message) {
  const handle = `#${message.number}`;
  const isCopy = message.copy || message.copy_of;
  const act = context.report.can_change ? [
    message.pin ? h("button", { class: "button small", title: isCopy ? `Take the copy #${message.copy || message.number} out of the request` : null, onclick: () => unpin(context, message.pin) }, icon("pin"), "Unpin")
      : message.folded || message.stub ? h("button", { class: "button small", title: "Add a copy of this message to the end of the request, and pin the copy", onclick: () => pin(context, message.removed && isCopy ? `#${isCopy}` : handle) }, icon("unfold"), "Bring back")
        : h("button", { class: "button small", onclick: () => pin(context, handle) }, icon("pin"), "Pin"),
    message.folded ? null : h("button", { class: "button small", onclick: () => previewFold(context, handle) }, icon("fold"), "Fold up to here…"),
  ] : [];
  return h("div", { class: "row m-buttons" }, act, h("button", { class: "button small", onclick: async () => {
    await navigator.clipboard?.writeText(handle);
    toast(`Copied ${handle}`);
  } }, icon("copy"), "Copy handle"));
}
