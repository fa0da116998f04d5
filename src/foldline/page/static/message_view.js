// One message: its row in the transcript, and all its parts when it is open.

import { get } from "./api.js";
import { attempt, toast } from "./dialogs.js";
import { h, icon, put, visible } from "./dom.js";
import { moment, tokens, whole } from "./format.js";
import { pin, previewFold, unpin } from "./changes.js";

const CHUNK = 20000;

/** What wrote a message, for its badge. */
export function author(row) {
  if (row.kind === "note") return "note";
  if (row.kind) return row.kind.replace("_", " ");
  if (row.is_result && row.role !== "assistant") return "result";
  return row.role;
}

/** The closed row of a message. */
export function rowContent(row) {
  const label = row.tools.length ? row.tools.slice(0, 2).join(", ") + (row.tools.length > 2 ? ` +${row.tools.length - 2}` : "") : "";
  const text = row.tools.length && row.target ? row.target : row.starts;
  return [
    h("span", { class: "m-number" }, `#${row.number}`),
    h("span", { class: `badge r-${author(row).replace(/ /g, "-")}` }, author(row), row.folded ? h("span", { class: "hide" }, ", no longer in the request") : null),
    h("span", { class: "m-text" }, label ? h("span", { class: "tool-name" }, label) : null, h("bdi", {}, visible(text || "(empty)"))),
    h("span", { class: "m-flags" },
      row.pin ? h("span", { class: "flag pin", title: `Pinned as ${row.pin}` }, icon("pin"), h("span", { class: "hide" }, "pinned")) : null,
      row.stub ? h("span", { class: "chip stub" }, "stub") : null,
      row.error ? h("span", { class: "chip error" }, "error") : null),
    h("span", { class: "m-tokens" }, tokens(row.tokens)),
  ];
}

/** The parts and the buttons of an open message. */
export function openMessage(context, row, resized) {
  const node = h("div", { class: "m-open" }, h("p", { class: "muted" }, "Loading…"));
  attempt(() => get("message", { ...context.where, number: row.number })).then((message) => {
    if (message) {
      put(node, details(context, message), message.shown ? stubbed(context, message) : parts(context, message, message.parts), buttons(context, message));
      resized();
    }
  });
  return node;
}

function details(context, message) {
  const facts = [moment(message.at), message.model, `${whole(message.tokens)} tokens`];
  if (message.prompt_tokens) facts.push(`answers a request of ${whole(message.prompt_tokens)} tokens`);
  if (message.folded) facts.push("no longer in the request");
  return h("p", { class: "m-details muted" }, facts.filter(Boolean).join(" · "));
}

function stubbed(context, message) {
  return [h("h4", {}, "What the model sees"), parts(context, message, message.shown),
    h("details", { class: "whole" }, h("summary", {}, "The whole, from the ledger"), parts(context, message, message.parts))];
}

function parts(context, message, list) {
  return list.map((part, place) => h("section", { class: `part p-${part.type}` }, heading(part), body(context, message, part, place)));
}

function heading(part) {
  const names = { thinking: part.encrypted ? "Thinking (encrypted)" : "Thinking", call: `Call of ${part.name}`, result: part.error ? "Result (error)" : "Result",
    media: `${part.name} ${part.mime || ""} ${part.bytes ? `${whole(part.bytes)} bytes` : ""}`, other: part.name };
  return names[part.type] ? h("h4", {}, names[part.type]) : null;
}

function body(context, message, part, place) {
  if (!part.text) return null;
  const text = part.type === "call" ? indented(part.text) : part.text;
  const box = h("div", { class: "text" });
  let shown = 0;
  const more = h("button", { class: "link" });
  const add = async () => {
    let all = text;
    if (shown >= text.length && !part.is_whole) {
      const found = await attempt(() => get("message", { ...context.where, number: message.number, whole: true }));
      if (!found) return;
      all = found.parts[place]?.text ?? text;
      part.is_whole = true;
    }
    box.append(h("pre", { tabindex: "0" }, visible(all.slice(shown, shown + CHUNK))));
    shown += CHUNK;
    const rest = (part.is_whole ? all.length : part.chars) - shown;
    if (rest > 0) put(more, `Show more (${whole(rest)} characters left)`);
    else more.remove();
  };
  more.addEventListener("click", add);
  add();
  return [box, part.chars > CHUNK ? more : null];
}

function indented(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return text;
    const lines = Object.entries(value).map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one, null, 1)}`);
    return lines.join("\n");
  } catch {
    return text;
  }
}

function buttons(context, message) {
  const handle = `#${message.number}`;
  const act = context.report.can_change ? [
    message.pin ? h("button", { class: "button small", onclick: () => unpin(context, message.pin) }, icon("pin"), "Unpin")
      : h("button", { class: "button small", onclick: () => pin(context, handle) }, icon("pin"), "Pin"),
    message.folded ? null : h("button", { class: "button small", onclick: () => previewFold(context, handle) }, icon("fold"), "Fold up to here…"),
  ] : [];
  return h("div", { class: "row" }, act, h("button", { class: "button small", onclick: async () => {
    await navigator.clipboard?.writeText(handle);
    toast(`Copied ${handle}`);
  } }, icon("copy"), "Copy handle"));
}
