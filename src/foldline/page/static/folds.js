// The folds of a session: digest with its sources, loss report, difference to the fold before, and what to do with it.

import { get } from "./api.js";
import { attempt, showFault } from "./dialogs.js";
import { h, icon, put, visible, withHandles } from "./dom.js";
import { ago, moment, percent, plural, tokens, whole } from "./format.js";
import { previewFold, stat, unfold } from "./changes.js";

export function foldsTab(panel, context) {
  let chosen = 0;
  const list = h("div", { class: "fold-list" });
  const detail = h("div", { class: "fold-detail" });
  put(panel, h("div", { class: "split" }, list, detail));

  function drawList() {
    const folds = context.report.fold_list;
    put(list,
      h("div", { class: "card next-fold" }, h("h2", {}, "Next fold"), h("p", { class: "muted" }, nextText(context.report)),
        context.report.can_change ? h("button", { class: "button primary", onclick: () => previewFold(context) }, icon("fold"), "Preview the next fold") : null),
      folds.length ? h("ol", { class: "folds", reversed: true }, [...folds].reverse().map((fold) => h("li", {},
        h("a", { href: context.link({ tab: "folds", fold: fold.number }), "aria-current": fold.number === chosen ? "true" : null, class: "fold-row" },
          h("b", {}, `Fold ${fold.number}`, fold.number === folds.length ? h("span", { class: "chip" }, "in force") : null),
          h("span", {}, `${fold.folded} · ${tokens(fold.before)} → ${tokens(fold.after)}`),
          h("span", { class: "muted" }, ago(fold.at), fold.digest?.facts ? ` · ${percent(fold.digest.kept / fold.digest.facts)} of facts kept` : ""))))) : null);
    if (!folds.length) put(detail, h("div", { class: "empty card" }, h("h2", {}, "Nothing is folded"),
      h("p", {}, "The model sees every message of this session. When the window fills up, foldline replaces the oldest messages by a digest.")));
  }

  async function choose(number) {
    chosen = number;
    drawList();
    if (!number) return;
    put(detail, h("p", { class: "loading" }, "Loading…"));
    try {
      const fold = await get("fold", { ...context.where, number });
      if (chosen === number) put(detail, foldView(context, fold));
    } catch (error) {
      showFault(detail, error);
    }
  }

  return {
    show(params) {
      const count = context.report.fold_list.length;
      choose(Math.min(count, Number(params.fold) || count));
    },
    update(before) {
      const count = context.report.fold_list.length;
      if (count !== before.fold_list.length) choose(count);
      else drawList();
    },
  };
}

function nextText(report) {
  if (!report.is_measured) return "Measuring…";
  if (report.refusal) return `The last fold was not made: ${report.refusal.cause}.`;
  if (report.reason) return `Due: ${report.reason}.`;
  const mark = report.marks.find((one) => one.name === "fold" || one.name === "clip");
  return mark ? `At ${tokens(mark.tokens, true)} tokens (${mark.rule}). ${tokens(Math.max(0, mark.tokens - report.tokens), report.exact)} are left.` : "The policy folds only when the request does not fit.";
}

function foldView(context, fold) {
  const digest = fold.digest;
  return [
    h("div", { class: "card" },
      h("div", { class: "card-head" }, h("h2", {}, `Fold ${fold.number}`), h("span", { class: "muted" }, moment(fold.at)),
        fold.is_newest && context.report.can_change ? h("button", { class: "button", onclick: () => unfold(context) }, icon("unfold"), "Unfold…") : null),
      h("p", {}, h("b", {}, fold.folded), " left the request", fold.first && fold.first !== fold.folded ? [" (new with this fold: ", h("a", { href: context.linkTo(firstNumber(fold.first)) }, fold.first), ")"] : "",
        ". ", capitalized(fold.reason), "."),
      beforeAfter(fold),
      h("div", { class: "stat-row" },
        digest ? stat("Written by", digest.by) : null,
        digest ? stat("Digest", `${tokens(digest.tokens)} tokens`) : null,
        digest?.facts ? stat("Facts kept", `${whole(digest.kept)} of ${whole(digest.facts)}`) : null,
        fold.stubs ? stat("Results shortened", whole(fold.stubs)) : null,
        fold.pinned.length ? stat("Pinned, stayed", fold.pinned.map((n) => `#${n}`).join(", ")) : null,
        fold.carried.length ? stat("Carried over", fold.carried.slice(0, 6).map((n) => `#${n}`).join(", ")) : null),
      digest?.cause ? h("p", { class: "fault" }, `No model wrote it: ${digest.cause}.`) : null),
    digest ? lossReport(context, fold) : h("div", { class: "card" }, h("p", {}, "This fold has no digest of its own.")),
    digest ? digestCard(context, fold) : null,
  ];
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
    h("p", {}, `${whole(digest.kept)} of ${plural(digest.facts, "fact")} are in the digest (${percent(digest.kept / digest.facts)}). `,
      lost ? `${whole(lost)} can only be recalled${lost > digest.missing.length ? "; the most important" : ""}:` : "Nothing was lost."),
    lost ? h("ul", { class: "facts" }, digest.missing.map((fact) => h("li", {},
      h("a", { href: context.link({ tab: "recall", q: withoutHandle(fact) }), "aria-label": `Search for ${visible(withoutHandle(fact))}`, title: "Search for it" }, icon("search")),
      h("bdi", {}, withHandles(visible(fact), context.linkTo))))) : null,
    digest.unsourced.length ? [h("h4", { class: "warn-text" }, "Claimed by the digest, but found in no folded message"),
      h("ul", { class: "facts" }, digest.unsourced.map((claim) => h("li", {}, icon("alert"), h("bdi", {}, visible(claim)))))] : null);
}

/** A fact without the handle of its source, for a search. */
const withoutHandle = (fact) => fact.replace(/\s*\[#[0-9-]+\]$/, "").slice(0, 200);

function digestCard(context, fold) {
  const text = h("pre", { class: "digest-text", tabindex: "0" }, withHandles(visible(fold.digest.text), context.linkTo));
  const compare = fold.changes.length ? h("details", {}, h("summary", {}, `Difference to the digest of fold ${fold.number - 1}`),
    h("pre", { class: "diff", tabindex: "0" }, fold.changes.filter(([kind, textLine]) => kind !== "same" || textLine.startsWith("#")).map(([kind, textLine]) =>
      h("span", { class: `d-${kind}` }, `${{ same: "  ", gone: "− ", new: "+ " }[kind]}${visible(textLine)}\n`)))) : null;
  return h("div", { class: "card" }, h("h3", {}, "Digest"), h("p", { class: "muted" }, "The model reads this in place of the folded messages. A number such as #12 leads to the message it comes from."), text, compare);
}
