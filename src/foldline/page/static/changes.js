// The changes that the page can make. Each change asks for confirmation, calls the API, and can be undone.

import { post } from "./api.js";
import { ask, attempt, openDialog, toast } from "./dialogs.js";
import { h, put, visible, withHandles } from "./dom.js";
import { FACTS, NO_REWRITE, money, percent, plural, tokens, whole, writerOf } from "./format.js";

const PAUSE_MS = 500;

/** The fold that applies now; undefined if nothing is folded. */
export const appliedFold = (report) => report.fold_list.find((fold) => fold.applies);

const nameOf = (context) => visible(context.where.session.split("/").pop());

/** The number of the message that the user pinned; 0 if the pin has a name of its own. */
const originalOf = (name) => Number(/^#(\d+)$/.exec(name)?.[1] || 0);

/** Pins a message. If the request does not show the whole message, a copy of it is added and pinned. `name` is the name of the pin, by default the handle. */
export async function pin(context, handle, name = "") {
  const done = await attempt(() => post("pin", { ...context.where, handle, name }));
  if (!done) return;
  done.messages.forEach((message, place) => {
    const original = originalOf(done.pins[place]);
    if (original && original !== message) context.showPin(original, done.pins[place], message);
    else context.showPin(message, done.pins[place]);
  });
  const isCopy = originalOf(done.pins[0]) && originalOf(done.pins[0]) !== done.messages[0];
  toast(isCopy ? copyText(done) : `Pinned ${done.pins.join(", ")}: it stays in every request.`, { about: nameOf(context), undo: () => unpin(context, done.pins[0], true) });
  await context.refresh();
}

function copyText(done) {
  const [copy] = done.messages;
  const thinking = done.without_thinking ? " (without thinking)" : "";
  return `${done.added.includes(copy) ? `A copy of ${done.pins[0]}${thinking} was added as #${copy}` : `The copy #${copy} of ${done.pins[0]} is pinned again`}. It stays in every request until you unpin it.`;
}

/** Removes a pin. A copy that was added only to be pinned leaves the request at once. */
export async function unpin(context, name, isUndo = false) {
  const done = await attempt(() => post("unpin", { ...context.where, name }));
  if (!done) return context.refresh(); // it may have been removed in another tab
  context.showPin(done.copy_of ?? done.message, "");
  if (done.copy_of || done.left) context.showPin(done.message, "", null, done.left);
  toast(unpinText(name, done), { about: nameOf(context), undo: isUndo ? null : () => originalOf(name) ? pin(context, name) : pin(context, `#${done.message}`, name) });
  return context.refresh();
}

const KEPT = { system: "It stays in every request all the same, because it is the system prompt.", policy: "It stays in every request all the same, because the policy keeps the first prompt." };

/** What became of a message whose pin was removed, and what that costs. */
function unpinText(name, done) {
  if (!done.left) return [`Removed the pin ${name}.`, KEPT[done.kept_by] || (done.copy_of ? `The copy #${done.message} stays in the request until the next fold.` : "")].join(" ").trim();
  const what = done.copy_of ? `The copy #${done.message} of #${done.copy_of}` : `The note #${done.message}`;
  const price = !done.rewrites ? "" : done.cache !== "warm" ? ` That costs nothing: ${NO_REWRITE[done.cache]}.`
    : ` The next request rewrites the cache from there: ${tokens(done.rewrites)} tokens${done.costs ? `, ${money(done.costs)}` : ""}.`;
  return `${what} left the request.${price}`;
}

export async function unfold(context) {
  const newest = appliedFold(context.report);
  const next = await attempt(() => post("unfold_preview", { ...context.where, fold: newest.id }));
  if (!next) return context.refresh(); // another fold is the newest now
  const price = next.cache === "none" ? ""
    : next.cache === "unsent" ? "Rewriting the prompt cache costs nothing: no request was sent since the fold, so the cache still holds the request before it. "
    : next.cache !== "warm" ? `Rewriting the prompt cache costs nothing: ${NO_REWRITE[next.cache]}. `
    : `The next request rewrites the prompt cache: ${tokens(next.rewrites)} tokens${next.costs ? `, ${money(next.costs)}` : ""}. `;
  const sure = await ask(`Take back fold ${newest.number}?`, [
    h("p", {}, `${next.back || "Shortened results"} return to the request: ${tokens(context.report.tokens, context.report.exact)} → ${tokens(next.tokens)} tokens. ` +
      `${next.previous ? `Fold ${next.previous} applies again. ` : ""}${price}${next.each_before !== null ? `Each later request: ${money(next.each_before)} → ${money(next.each_after)}. ` : ""}You can restore the fold in the view Folds.`),
    next.need === "HARD" ? h("p", { class: "hint" }, `${tokens(next.tokens)} of ${tokens(next.usable, true)}: the request would not fit${next.folds_again ? ", so the next request folds again" : ""}.`)
      : next.folds_again ? h("p", { class: "hint" }, `At ${tokens(next.tokens)} tokens the policy folds: the next request will fold again.`) : null], "Unfold");
  if (!sure) return undefined;
  const done = await attempt(() => post("unfold", { ...context.where, fold: newest.id }));
  if (!done) return context.refresh();
  const again = done.folds_again ? " The next request will fold again." : "";
  toast(`Unfolded: ${done.back || "shortened results"} are in the request again, ${tokens(done.tokens)} of ${tokens(done.usable, true)}.${again}`, { about: nameOf(context), undo: () => refold(context, newest) });
  return context.refresh();
}

/** Restores a fold that was taken back. */
export async function refold(context, fold) {
  const done = await attempt(() => post("refold", { ...context.where, fold: fold.id }));
  if (done) toast(`Fold ${fold.number} applies again: ${tokens(done.tokens)} of ${tokens(done.usable, true)}.`, { about: nameOf(context), undo: () => takeBack(context, fold.id, `Fold ${fold.number}`) });
  await context.refresh();
}

/** Takes back the fold that an action made. If another fold is the newest now, nothing is changed, and a message says so. */
async function takeBack(context, fold, name) {
  if (await attempt(() => post("unfold", { ...context.where, fold }))) toast(`${name} is taken back.`, { about: nameOf(context) });
  await context.refresh();
}

async function approve(context, preview, digest = undefined) {
  const done = await attempt(() => post("approve", { ...context.where, preview, digest }));
  if (!done) return false;
  toast(`Folded: ${tokens(done.before)} → ${tokens(done.after)}.`, { about: nameOf(context), undo: () => takeBack(context, done.fold, "The fold") });
  await context.refresh();
  return true;
}

/** Shows what a fold would do, lets the user edit the digest, and makes the fold. `through` is the handle of the newest message that leaves, or "". */
export async function previewFold(context, through = "") {
  const found = await attempt(() => post("preview", { ...context.where, through }));
  if (!found) return;
  if (!found.id && !through) {
    if (await ask("Nothing would be folded now", `${found.skip_reason}. Fold everything before the last turn all the same?`, "Preview that")) {
      const forced = await attempt(() => post("preview", { ...context.where, force: true }));
      if (forced) await showPreview(context, forced);
    }
    return;
  }
  await showPreview(context, found, through);
}

async function showPreview(context, found, through = "") {
  if (!found.id) {
    await openDialog("Nothing would be folded", (close) => [h("p", {}, found.skip_reason),
      h("div", { class: "row end" }, h("button", { class: "button", onclick: () => close() }, "Close"))]);
    return;
  }
  const draft = { isChanged: () => false, stop: () => {} };
  const mayCancel = async () => !draft.isChanged() || ask("Discard your text?", "Your changes to the digest are not saved anywhere.", "Discard it");
  await openDialog(through ? `Preview: fold up to and with ${through}` : "Preview of the fold", (close) => previewContent(context, found, close, draft, mayCancel), mayCancel);
  draft.stop();
}

/** The content of a preview. `draft.isChanged()` says whether the user has changed the digest. `draft.stop()` ends the computation of figures. */
function previewContent(context, found, close, draft, mayCancel) {
  const text = found.digest ? found.digest.text : "";
  const facts = h("div", { class: "preview-facts", "aria-live": "polite" });
  const title = h("h3", {});
  const field = h("textarea", { class: "digest-edit", "aria-label": "Digest", spellcheck: "false", value: text, hidden: true, oninput: () => reckon() });
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
    draft.stop(); // after the fold, the server would refuse to compute the figures
    if (await approve(context, found.id, draft.isChanged() ? field.value : undefined)) close(true);
    else { go.disabled = false; reckon(); }
  } }, "Fold now");
  draft.isChanged = () => field.value !== text;

  function draw(now) {
    put(facts, previewFacts(now));
    put(title, now.digest ? `Digest by ${now.digest.by}, ${tokens(now.digest.tokens)} tokens` : "");
    title.title = now.digest ? writerOf(now.digest.by) : "";
    facts.classList.remove("stale");
  }

  let asked = new AbortController();
  draft.stop = () => asked.abort();
  /** Computes the figures again for the text in the field, as soon as the user pauses. */
  function reckon() {
    draft.stop();
    const { signal } = asked = new AbortController();
    facts.classList.add("stale");
    put(title, "Computing the figures for your text…");
    setTimeout(async () => {
      if (signal.aborted) return;
      const now = draft.isChanged() ? await attempt(() => post("revise", { ...context.where, preview: found.id, digest: field.value }, signal)) : found;
      if (signal.aborted) return;
      if (now) draw(now);
      else put(title, "The figures above are those of the digest before your changes");
    }, PAUSE_MS);
  }

  draw(found);
  return [facts, found.digest ? [title, shown, field] : h("p", {}, "The messages leave without a digest."),
    h("div", { class: "row end" }, found.digest ? edit : null, h("button", { class: "button", onclick: async () => { if (await mayCancel()) close(); } }, "Cancel"), go),
  ].flat().filter(Boolean);
}

/** What a fold would do: sizes, costs, and the facts that its digest does not have. */
function previewFacts(found) {
  const digest = found.digest;
  return [
    h("div", { class: "stat-row" },
      stat("Leaves the request", found.leaves), stat("Tokens", `${tokens(found.before)} → ${tokens(found.after)}`),
      digest && digest.facts ? stat("Facts kept", `${whole(digest.kept)} of ${whole(digest.facts)} (${percent(digest.kept / digest.facts)})`) : null,
      found.money_before !== null ? stat("Each later request", `${money(found.money_before)} → ${money(found.money_after)}`) : null,
      found.money_once !== null ? stat("Once, to rewrite the cache", found.money_once ? money(found.money_once) : `nothing, ${NO_REWRITE[found.cache]}`) : null,
      found.pays_with !== null && found.money_once ? stat("Paid back after", plural(found.pays_with, "request")) : null),
    found.after >= found.before ? h("p", { class: "hint" }, "With this digest, the request would not become smaller. Write a shorter one.") : null,
    digest?.facts ? h("p", { class: "muted small-text" }, FACTS) : null,
    digest && digest.missing.length ? h("details", { class: "missing" }, h("summary", {}, `Not in the digest: ${whole(digest.facts - digest.kept)} facts`),
      h("ul", {}, digest.missing.map((fact) => h("li", {}, h("bdi", {}, visible(fact)))))) : null,
  ];
}

export function stat(name, value, why = null) {
  return h("div", { class: "stat", title: why }, h("span", { class: "stat-name" }, name), h("span", { class: "stat-value" }, value));
}
