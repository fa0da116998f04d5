// The folds of a session: digest with its sources, loss report, difference to the previous digest, and buttons.

import { get } from "./api.js";
import { attempt, showFault } from "./dialogs.js";
import { h, icon, put, visible, withHandles } from "./dom.js";
import { ago, FACTS, moment, money, percent, plural, tokens, whole, writerOf } from "./format.js";
import { appliedFold, previewFold, refold, stat, unfold } from "./changes.js";

export function foldsTab(panel, context) {
  let chosen = 0;
  const list = h("div", { class: "fold-list" });
  const detail = h("div", { class: "fold-detail" });
  put(panel, h("div", { class: "split" }, list, detail));

  function drawList() {
    const folds = context.report.fold_list;
    put(list,
      h("div", { class: "card next-fold" }, h("h2", {}, "Next fold"), h("p", { class: "muted" }, nextText(context.report)),
        context.report.can_change ? h("button", { class: "button primary", onclick: () => previewFold(context) }, icon("fold"), "Preview a fold now") : null,
        context.report.can_change ? h("p", { class: "muted small-text" }, "The preview shows what a fold would remove if it were made now, with the messages that the request has now.") : null),
      folds.length ? h("ol", { class: "folds", reversed: true }, [...folds].reverse().map((fold) => h("li", {},
        h("a", { href: context.link({ tab: "folds", fold: fold.number }), "aria-current": fold.number === chosen ? "true" : null, class: "fold-row" },
          h("b", {}, `Fold ${fold.number}`, fold.applies ? h("span", { class: "chip" }, "applies now") : fold.taken_back_at ? h("span", { class: "chip undone" }, "taken back") : null,
          fold.compacted_by ? h("span", { class: "chip" }, fold.reason) : null),
          h("span", {}, `${fold.folded} · ${tokens(fold.before)} → ${tokens(fold.after)}`),
          h("span", { class: "muted" }, ago(fold.at), fold.digest?.facts ? ` · ${percent(fold.digest.kept / fold.digest.facts)} of facts kept` : ""))))) : null);
    if (!chosen) put(detail, h("div", { class: "empty card" }, h("h2", {}, "Nothing is folded"),
      h("p", {}, "The model sees every message of this session. When the window fills up, foldline replaces the oldest messages by a digest.")));
  }

  async function choose(number, isAsked = false) {
    chosen = number;
    drawList();
    if (!number) return;
    put(detail, h("p", { class: "loading" }, "Loading…"));
    try {
      const fold = await get("fold", { ...context.where, number });
      if (chosen !== number) return;
      put(detail, foldView(context, fold));
      if (isAsked) reveal();
    } catch (error) {
      showFault(detail, error);
    }
  }

  /** Moves to the chosen fold: its heading gets the focus and is scrolled into view. */
  function reveal() {
    const heading = detail.querySelector("h2");
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    const top = heading.getBoundingClientRect().top;
    if (top < 0 || top > innerHeight * 0.7) heading.scrollIntoView({ block: top < 0 ? "center" : "start" });
  }

  const newest = () => appliedFold(context.report)?.number || context.report.fold_list.length;
  return {
    show(params) {
      choose(Math.min(context.report.fold_list.length, Number(params.fold) || newest()), Number(params.fold) > 0 && Number(params.fold) !== chosen);
    },
    update(before) {
      const states = (report) => JSON.stringify(report.fold_list.map((fold) => [fold.applies, fold.taken_back_at, fold.can_refold]));
      if (context.report.fold_list.length !== before.fold_list.length) choose(newest());
      else if (states(context.report) !== states(before)) choose(chosen);
      else drawList();
    },
  };
}

function nextText(report) {
  if (!report.is_measured) return "Measuring…";
  if (report.refusal) return `The last fold was not made: ${report.refusal.cause}.`;
  if (report.reason) return `Due: ${report.reason}.`;
  const mark = report.marks.find((one) => one.name === "fold" || one.name === "clip");
  if (!mark) return "The policy folds only when the request does not fit.";
  const left = `${tokens(Math.max(0, mark.tokens - report.tokens), report.exact)} are left.`;
  if (mark.measured > mark.tokens && report.reports_usage) return `At ${tokens(mark.measured, true)} tokens (${mark.rule.replace(" less the margin of an estimate", "")}) as soon as the next reply reports the size of its request. Until then the size is an estimate, so a fold is already made at ${tokens(mark.tokens, true)}. ${left}`;
  return `At ${tokens(mark.tokens, true)} tokens (${mark.rule}). ${left}`;
}

function foldView(context, fold) {
  const digest = fold.digest;
  return [
    h("div", { class: "card" },
      h("div", { class: "card-head" }, h("h2", {}, `Fold ${fold.number}`), h("span", { class: "muted" }, moment(fold.at)),
        fold.applies && context.report.can_change ? h("button", { class: "button", onclick: () => unfold(context) }, icon("unfold"), "Unfold…") : null,
        fold.can_refold && context.report.can_change ? h("button", { class: "button", onclick: () => refold(context, fold) }, icon("fold"), "Fold again") : null),
      foldState(context, fold),
      h("p", {}, h("b", {}, plural(fold.left, "message")), fold.taken_back_at ? " had left the request: " : " left the request: ", h("a", { href: context.linkTo(firstNumber(fold.folded)) }, fold.folded),
        fold.first && fold.first !== fold.folded ? [" (new with this fold: ", h("a", { href: context.linkTo(firstNumber(fold.first)) }, fold.first), ")"] : "",
        ". ", capitalized(fold.reason), "."),
      beforeAfter(fold),
      h("div", { class: "stat-row" },
        digest ? stat("Written by", digest.by, writerOf(digest.by)) : null,
        digest ? stat("Digest", `${tokens(digest.tokens)} tokens`) : null,
        digest?.facts ? stat("Facts kept", `${whole(digest.kept)} of ${whole(digest.facts)}`) : null,
        rewritten(context, fold.number),
        digest?.usage ? stat("Digest model", `${tokens(digest.usage.input + digest.usage.cache_read + digest.usage.cache_write, true)} read, ${tokens(digest.usage.output, true)} written`) : null,
        fold.stubs ? stat("Results shortened", whole(fold.stubs)) : null,
        fold.stays.length ? stat("Stayed in the request", fold.stays.slice(0, 6).map((one) => `#${one.message} (${one.why})`).join(", ") + (fold.stays.length > 6 ? ` and ${fold.stays.length - 6} more` : "")) : null),
      digest?.cause ? h("p", { class: "fault" }, `No model wrote the digest: ${digest.cause}.`) : null),
    digest ? lossReport(context, fold) : h("div", { class: "card" }, h("p", {}, "This fold has no digest of its own.")),
    digest ? digestCard(context, fold) : null,
  ];
}

/** Why a fold does not apply now, and what can be done about it; null if it applies. */
function foldState(context, fold) {
  if (fold.applies) return null;
  const applied = appliedFold(context.report);
  if (!fold.taken_back_at) return h("p", { class: "muted" }, `Fold ${applied.number} replaced this fold. To unfold this one, take back the newer folds first.`);
  const why = fold.can_refold ? "“Fold again” restores it with the same digest."
    : fold.is_final ? "It cannot be restored, because a newer fold was made since." : "To restore it, first restore the fold that was taken back after it.";
  return h("p", { class: "hint" }, `Taken back on ${moment(fold.taken_back_at)}. ${returned(context, fold)} ${why}`);
}

/** Which messages of a fold that was taken back are in the request again. An older fold may still cover some of them. */
function returned(context, fold) {
  const applied = appliedFold(context.report);
  if (!fold.back) return applied ? `None of its messages is in the request again, because fold ${applied.number} covers them.` : "None of its messages is in the request again.";
  const are = /^#\d+$/.test(fold.back) ? "is" : "are";
  if (fold.back === fold.folded) return `Its messages are in the request again: ${fold.back}.`;
  return `Of its messages, ${fold.back} ${are} in the request again.${applied ? ` Fold ${applied.number} still covers the others.` : ""}`;
}

/** What the first request with a fold paid again, because the fold changed its beginning. It is filled in when the requests are known. */
function rewritten(context, number) {
  const node = h("div", { class: "stat", hidden: true });
  get("requests", context.where).then(({ requests }) => {
    const row = requests.find((one) => one.fold === number);
    if (!row?.exact) return;
    node.hidden = false;
    put(node, h("span", { class: "stat-name" }, "First request with it"), h("span", { class: "stat-value" },
      h("a", { href: context.link({ tab: "window", request: row.number }) }, `request ${row.number}`), row.missed ? ` paid ${tokens(row.missed, true)} tokens again${row.missed_usd ? `, ${money(row.missed_usd)}` : ""}` : " paid nothing again"));
  }).catch(() => {});
  return node;
}

function capitalized(text) {
  return text ? visible(text[0].toUpperCase() + text.slice(1)) : "No reason was recorded";
}

const firstNumber = (handle) => Number(/#(\d+)/.exec(handle)?.[1] || 1);

function beforeAfter(fold) {
  const most = Math.max(fold.before, fold.after, 1);
  const row = (name, size, kind) => h("div", { class: "hbar" }, h("span", { class: "hbar-name" }, name),
    h("span", { class: "hbar-track" }, h("span", { class: `hbar-fill ${kind}`, css: { width: `${100 * size / most}%` } })),
    h("span", { class: "hbar-size" }, tokens(size)));
  return h("div", { class: "before-after" }, row("Before", fold.before, "k-before"), row("After", fold.after, "k-after"));
}

function lossReport(context, fold) {
  const digest = fold.digest;
  if (!digest.facts) return null;
  const lost = digest.facts - digest.kept;
  return h("div", { class: "card" }, h("h3", {}, "What it lost"),
    h("div", { class: "coverage", role: "img", "aria-label": `${percent(digest.kept / digest.facts)} of the facts are in the digest` },
      h("span", { css: { width: `${100 * digest.kept / digest.facts}%` } })),
    h("p", {}, lost ? `${whole(digest.kept)} of ${plural(digest.facts, "fact")} are in the digest (${percent(digest.kept / digest.facts)}). ${whole(lost)} can only be recalled:`
      : `All ${plural(digest.facts, "fact")} are in the digest. The full text of ${fold.folded} is available by recall.`),
    lost ? lostFacts(context, fold, lost) : null,
    h("p", { class: "muted small-text" }, FACTS),
    digest.unsourced.length ? [h("h4", { class: "warn-text" }, "Claimed by the digest, but found in no folded message"),
      h("ul", { class: "facts" }, digest.unsourced.map((claim) => h("li", {}, icon("alert"), h("bdi", {}, visible(claim)))))] : null);
}

/** The list of lost facts. If the record names only the most important ones, a button shows all. */
function lostFacts(context, fold, lost) {
  const list = h("ul", { class: "facts" }, fold.digest.missing.map((fact) => lostFact(context, fact)));
  const more = h("button", { class: "button small", onclick: async () => {
    more.disabled = true;
    const found = await attempt(() => get("lost_facts", { ...context.where, number: fold.number }));
    more.disabled = false;
    if (found) { put(list, found.missing.map((fact) => lostFact(context, fact))); more.remove(); part.remove(); }
  } }, `Show all ${whole(lost)}`);
  const part = h("p", { class: "muted" }, `These are the ${fold.digest.missing.length} most important:`);
  return lost > fold.digest.missing.length ? [part, list, more] : [list];
}

/** A lost fact. The link leads to its place in the message that it comes from. */
function lostFact(context, fact) {
  const [, text, number] = /^([^]*?)\s*(?:\[#([0-9]+)[0-9, #-]*\])?$/.exec(fact);
  const find = text.slice(0, 200);
  const href = number ? context.linkTo(Number(number), find) : context.link({ tab: "recall", q: find });
  return h("li", {}, h("a", { href, title: number ? `Show it in #${number}` : "Search for it" }, icon("search"), h("bdi", {}, visible(text)), number ? h("span", { class: "muted" }, ` #${number}`) : null));
}

function digestCard(context, fold) {
  const text = h("pre", { class: "digest-text", tabindex: "0" }, withHandles(visible(fold.digest.text), context.linkTo));
  const compare = fold.changes.length ? h("details", {}, h("summary", {}, `Difference to the digest of fold ${fold.previous}`),
    h("pre", { class: "diff", tabindex: "0" }, fold.changes.filter(([kind, textLine]) => kind !== "same" || textLine.startsWith("#")).map(([kind, textLine]) =>
      h("span", { class: `d-${kind}` }, `${{ same: "  ", gone: "− ", new: "+ " }[kind]}${visible(textLine)}\n`)))) : null;
  return h("div", { class: "card" }, h("h3", {}, "Digest"), h("p", { class: "muted" }, "The model reads this in place of the folded messages. A number such as #12 leads to the message it comes from."), text, compare);
}
