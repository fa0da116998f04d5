// Questions before a change, and short messages after it.

import { h, put } from "./dom.js";

let opened = 0;

/** Shows a modal dialog. Resolves to the value with which it was closed. `build(close)` returns its content; `close(value)`
 * ends it. `mayCancel()` is asked before the Escape key ends it. */
export function openDialog(title, build, mayCancel = null) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const id = `dialog-title-${++opened}`;
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": id });
    let answered;
    const close = (value) => { answered = value; dialog.close(); };
    dialog.append(h("h2", { id }, title), h("div", { class: "dialog-notes", role: "status" }), ...[build(close)].flat());
    dialog.addEventListener("keydown", async (event) => {
      if (event.key !== "Escape" || !mayCancel) return;
      event.preventDefault(); // before the browser closes the dialog
      event.stopPropagation();
      if (await mayCancel()) close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(answered);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks whether to do something. `content` is a text or a list of nodes. Resolves to true or false. */
export async function ask(title, content, verb) {
  return Boolean(await openDialog(title, (close) => [
    ...(typeof content === "string" ? [h("p", {}, content)] : content.filter(Boolean)),
    h("div", { class: "row end" },
      h("button", { class: "button", onclick: () => close(false) }, "Cancel"),
      h("button", { class: "button primary", onclick: () => close(true) }, verb)),
  ]));
}

const [LONG_MS, SHORT_MS] = [30000, 12000];

/** Shows a short message in place of the last one; `undo` adds a button that undoes the change, `about` names the session.
 * An error in a dialog is shown inside the dialog. */
export function toast(text, { undo = null, error = false, about = "" } = {}) {
  const area = (error && [...document.querySelectorAll("dialog[open] .dialog-notes")].pop()) || document.getElementById("toasts");
  const node = h("div", { class: error ? "toast error" : "toast" }, h("span", {}, about ? h("small", {}, h("bdi", {}, about)) : null, text));
  const remove = () => node.remove();
  if (undo) node.append(h("button", { class: "link", onclick: () => { remove(); undo(); } }, "Undo"));
  node.append(h("button", { class: "link", "aria-label": "Dismiss", onclick: remove }, "✕"));
  put(area, node);
  setTimeout(remove, undo ? LONG_MS : SHORT_MS);
}

/** Runs a call; shows its error as a message. Returns the answer, or undefined after an error or if the call was aborted. */
export async function attempt(call) {
  try {
    return await call();
  } catch (error) {
    if (error.name !== "AbortError") toast(error.hint ? `${error.message}: ${error.hint}` : error.message, { error: true });
    return undefined;
  }
}

/** Replaces an element's content by an error text. */
export function showFault(node, error) {
  put(node, h("p", { class: "fault", role: "alert" }, error.message, error.hint ? `: ${error.hint}` : ""));
}
