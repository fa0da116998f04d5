// The changes that the page can make. Each asks first, acts through the API, and can be taken back.

import { post } from "./api.js";
import { ask, attempt, openDialog, toast } from "./dialogs.js";
import { h, put, visible, withHandles } from "./dom.js";
import { money, percent, tokens, whole } from "./format.js";

export async function pin(context, handle) {
  const done = await attempt(() => post("pin", { ...context.where, handle }));
  if (!done) return;
  toast(`Pinned ${done.pins.join(", ")}: it stays in every request.`, { undo: () => unpin(context, done.pins[0], true) });
  await context.refresh();
}

export async function unpin(context, name, isUndo = false) {
  const done = await attempt(() => post("unpin", { ...context.where, name }));
  if (!done) return;
  toast(`Removed the pin ${name}.`, isUndo || !/^#\d+$/.test(name) ? {} : { undo: () => pin(context, name) });
  await context.refresh();
}

export async function unfold(context) {
  const report = context.report;
  const newest = report.fold_list[report.fold_list.length - 1];
  const sure = await ask("Undo the newest fold?",
    `Messages ${newest.folded} return to the request: ${tokens(newest.after)} → about ${tokens(report.tokens + newest.before - newest.after)} tokens. ` +
    "The next request rewrites the prompt cache.", "Unfold");
  if (!sure) return;
  const done = await attempt(() => post("unfold", context.where));
  if (!done) return;
  const again = done.folds_again ? " The next request will fold again." : "";
  toast(`Unfolded: ${tokens(done.tokens)} of ${tokens(done.usable, true)}.${again}`, { undo: () => approve(context, done.undo) });
  await context.refresh();
}

async function approve(context, preview, digest = undefined) {
  const done = await attempt(() => post("approve", { ...context.where, preview, digest }));
  if (!done) return false;
  toast(`Folded: ${tokens(done.before)} → ${tokens(done.after)}.`, { undo: async () => {
    if (await attempt(() => post("unfold", context.where))) { toast("The fold is taken back."); await context.refresh(); }
  } });
  await context.refresh();
  return true;
}

/** Shows what a fold would do, lets the user edit the digest, and makes the fold. `before` is a handle or "". */
export async function previewFold(context, before = "") {
  const found = await attempt(() => post("preview", { ...context.where, before }));
  if (!found) return;
  if (!found.id && !before) {
    if (await ask("Nothing would be folded now", `${found.skip_reason}. Fold everything before the last turn all the same?`, "Preview that")) {
      const forced = await attempt(() => post("preview", { ...context.where, force: true }));
      if (forced) await showPreview(context, forced);
    }
    return;
  }
  await showPreview(context, found);
}

async function showPreview(context, found) {
  if (!found.id) {
    await openDialog("Nothing would be folded", (close) => [h("p", {}, found.skip_reason),
      h("div", { class: "row end" }, h("button", { class: "button", onclick: () => close() }, "Close"))]);
    return;
  }
  await openDialog("Preview of the fold", (close) => previewContent(context, found, close));
}

function previewContent(context, found, close) {
  const digest = found.digest;
  const text = digest ? digest.text : "";
  const field = h("textarea", { class: "digest-edit", "aria-label": "Digest", spellcheck: "false", value: text, hidden: true });
  const shown = h("pre", { class: "digest-text", tabindex: "0" }, withHandles(visible(text), context.linkTo));
  const edit = h("button", { class: "button", onclick: () => {
    field.hidden = !field.hidden;
    shown.hidden = !field.hidden;
    edit.textContent = field.hidden ? "Edit the digest" : "Stop editing";
    if (field.hidden) put(shown, withHandles(visible(field.value), context.linkTo));
    else field.focus();
  } }, "Edit the digest");
  const go = h("button", { class: "button primary", onclick: async () => {
    go.disabled = true;
    const changed = field.value !== text ? field.value : undefined;
    if (await approve(context, found.id, changed)) close(true);
    else go.disabled = false;
  } }, "Fold now");
  return [
    h("div", { class: "stat-row" },
      stat("Leaves the request", found.leaves), stat("Tokens", `${tokens(found.before)} → ${tokens(found.after)}`),
      digest && digest.facts ? stat("Facts kept", `${whole(digest.kept)} of ${whole(digest.facts)} (${percent(digest.kept / digest.facts)})`) : null,
      found.money_before !== null ? stat("Each later request", `${money(found.money_before)} → ${money(found.money_after)}`) : null,
      found.money_once !== null ? stat("Once, to rewrite the cache", money(found.money_once)) : null,
      found.pays_with !== null ? stat("Paid back with request", whole(found.pays_with)) : null),
    digest && digest.missing.length ? h("details", { class: "missing" }, h("summary", {}, `Left to recall: ${whole(digest.facts - digest.kept)} facts`),
      h("ul", {}, digest.missing.map((fact) => h("li", {}, h("bdi", {}, visible(fact)))))) : null,
    digest ? [h("h3", {}, `Digest by ${digest.by}, ${tokens(digest.tokens)} tokens`), shown, field] : h("p", {}, "The messages leave without a digest."),
    h("div", { class: "row end" }, digest ? edit : null, h("button", { class: "button", onclick: () => close() }, "Cancel"), go),
  ].flat().filter(Boolean);
}

export function stat(name, value) {
  return h("div", { class: "stat" }, h("span", { class: "stat-name" }, name), h("span", { class: "stat-value" }, value));
}
