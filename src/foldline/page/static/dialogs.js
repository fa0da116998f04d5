// Questions before a change, and short messages after it.

import { h, put } from "./dom.js";

/** Shows a modal dialog and returns it. `build(close)` returns its content; `close(value)` ends it. */
export function openDialog(title, build) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "dialog-title" });
    let answered;
    const close = (value) => { answered = value; dialog.close(); };
    dialog.append(h("h2", { id: "dialog-title" }, title), ...[build(close)].flat());
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(answered);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks whether to do something. Resolves to true or false. */
export async function ask(title, text, verb) {
  return Boolean(await openDialog(title, (close) => [
    h("p", {}, text),
    h("div", { class: "row end" },
      h("button", { class: "button", onclick: () => close(false) }, "Cancel"),
      h("button", { class: "button primary", onclick: () => close(true) }, verb)),
  ]));
}

/** Shows a short message; `undo` adds a button that takes the change back. */
export function toast(text, { undo = null, error = false } = {}) {
  const area = document.getElementById("toasts");
  const node = h("div", { class: error ? "toast error" : "toast" }, h("span", {}, text));
  const remove = () => node.remove();
  if (undo) node.append(h("button", { class: "link", onclick: () => { remove(); undo(); } }, "Undo"));
  node.append(h("button", { class: "link", "aria-label": "Dismiss", onclick: remove }, "✕"));
  area.append(node);
  setTimeout(remove, undo ? 15000 : 7000);
}

/** Runs a call; shows its error as a message. Returns the answer, or undefined after an error. */
export async function attempt(call) {
  try {
    return await call();
  } catch (error) {
    toast(error.hint ? `${error.message}: ${error.hint}` : error.message, { error: true });
    return undefined;
  }
}

/** Replaces an element's content by an error text. */
export function showFault(node, error) {
  put(node, h("p", { class: "fault", role: "alert" }, error.message, error.hint ? `: ${error.hint}` : ""));
}
