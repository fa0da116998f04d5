// The window as a bar: blocks, free room, and the marks where the policy warns and folds.

import { h, pathText } from "./dom.js";
import { percent, tokens, whole } from "./format.js";

export const HIDDEN_WHY = "counted by the provider, but in no message and no tool definition that foldline knows: for example a system prompt that the client adds itself.";
export const BLOCKS = {
  system: "System prompt", tools: "Tool definitions", memory: "Memory", pins: "Pins",
  digest: "Digest", history: "History", input: "Input", hidden: "Not in any message",
};
const MARKS = { warn: "warns", fold: "folds", clip: "folds", pause: "pauses", hard: "largest request" };

/** A small meter with one colour. */
export function meter(summary) {
  const share = Math.min(1, summary.tokens / Math.max(1, summary.usable));
  const level = summary.states.includes("full") || summary.states.includes("fold due") ? "high"
    : summary.states.includes("warned") ? "middle" : "low";
  return h("div", { class: `meter ${level}`, role: "img",
    "aria-label": `${tokens(summary.tokens, summary.exact)} of ${tokens(summary.usable, true)} usable tokens, ${percent(share)}` },
  h("div", { class: "meter-fill", css: { width: `${share * 100}%` } }),
  marksOf(summary).map((mark) => h("i", { class: `tick ${mark.name}`, css: { left: `${mark.share * 100}%` } })));
}

function marksOf(summary) {
  return summary.marks.filter((mark) => mark.name !== "hard")
    .map((mark) => ({ ...mark, share: Math.min(1, mark.tokens / Math.max(1, summary.usable)) }));
}

/** The stacked bar by block with marks and a legend. `choose(name)` is called for a chosen block. */
export function windowBar(report) {
  const total = Math.max(report.usable, report.tokens, 1);
  const free = Math.max(0, report.usable - report.tokens);
  const label = report.blocks.map((block) => `${BLOCKS[block.name] || block.name} ${tokens(block.tokens)}`).join(", ");
  const bar = h("div", { class: "bar", role: "img", "aria-label": `The window by block: ${label}; free ${tokens(free)}` },
    report.blocks.map((block) => h("span", {
      class: `seg b-${block.name}`, css: { width: `${100 * block.tokens / total}%` },
      title: `${BLOCKS[block.name] || block.name}: ${whole(block.tokens)} tokens`,
    })));
  const marks = h("div", { class: "marks", "aria-hidden": "true" }, labelled(report, total));
  const legend = h("ul", { class: "legend" }, report.blocks.map((block) => h("li", {},
    h("i", { class: `dot b-${block.name}` }), h("span", {}, BLOCKS[block.name] || block.name),
    h("b", {}, tokens(block.tokens, report.exact)), h("small", {}, percent(block.tokens / report.usable)))),
  h("li", { class: "muted" }, h("i", { class: "dot b-free" }), h("span", {}, "Free"), h("b", {}, tokens(free, report.exact)),
    h("small", {}, percent(free / report.usable))));
  return h("div", { class: "window-bar" }, h("div", { class: "bar-box" }, bar, marks), legend,
    report.blocks.some((block) => block.name === "hidden") ? h("p", { class: "muted small-text" }, `${BLOCKS.hidden}: ${HIDDEN_WHY}`) : null);
}

const WEIGHTS = { hard: 3, fold: 2, clip: 2, pause: 1, warn: 0 };

/** The marks with their labels. If two labels would cover each other, the one of the less important mark is in a second row,
 * or is left out if it would cover another label there, too. */
function labelled(report, total) {
  const marks = report.marks.map((mark) => ({ ...mark, left: 100 * mark.tokens / total }));
  const rows = [[], []];
  for (const mark of [...marks].sort((one, other) => WEIGHTS[other.name] - WEIGHTS[one.name])) {
    rows.find((row) => row.every((other) => Math.abs(other.left - mark.left) >= 14))?.push(mark);
  }
  const placeOf = (mark) => (rows[0].includes(mark) ? "" : rows[1].includes(mark) ? " second" : " close");
  return marks.map((mark) => h("span", { class: `mark ${mark.name}${placeOf(mark)}${mark.left > 80 ? " right" : ""}`, css: { left: `${Math.min(mark.left, 100)}%` }, title: mark.rule },
    h("em", {}, `${MARKS[mark.name] || mark.name} ${tokens(mark.tokens, true)}`)));
}

/** What fills history and pins: a bar per kind, which opens to its tools, servers and files.
 * All bars and percentages are shares of history and pins. `linkTo(number)` is the address of a message. */
export function contents(kinds, linkTo) {
  const total = Math.max(1, kinds.reduce((sum, row) => sum + row.tokens, 0));
  return h("div", { class: "contents" }, kinds.map((row) => {
    const groups = [["By tool", row.tools], ["By MCP server", row.servers], ["By file", row.files]].filter(([, rows]) => rows.length);
    const line = bars([row], total, `k-${row.name.replace(/ /g, "-")}`, linkTo);
    if (!groups.length) return h("div", { class: "kind" }, line);
    return h("details", { class: "kind" }, h("summary", {}, line),
      h("div", { class: "groups" }, groups.map(([title, rows]) => h("div", {}, h("h4", {}, title),
        bars(rows, total, `k-${row.name.replace(/ /g, "-")}`, linkTo)))));
  }));
}

function bars(rows, total, color, linkTo) {
  return rows.map((row) => h("div", { class: "hbar" },
    h("span", { class: "hbar-name", title: row.name }, row.message ? h("a", { href: linkTo(row.message), title: `${row.name}: open #${row.message}, which takes the most room` }, pathText(row.name)) : pathText(row.name)),
    h("span", { class: "hbar-track" }, h("span", { class: `hbar-fill ${color}`, css: { width: `${100 * row.tokens / total}%` } })),
    h("span", { class: "hbar-size" }, tokens(row.tokens, false), " ", h("small", {}, percent(row.tokens / total)))));
}
