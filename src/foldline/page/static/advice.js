// What to do now: messages that are worth folding, with what a fold frees and costs.

import { get } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, icon, put, visible } from "./dom.js";
import { NO_REWRITE, money, plural, tokens } from "./format.js";
import { pin, previewFold } from "./changes.js";

const KINDS = { largest: "Large", oldest: "Old", superseded: "Superseded", repeated: "Repeated" };

/** Fills a card with advice. */
export async function drawAdvice(card, context) {
  try {
    const { rows, cache } = await get("advice", context.where);
    card.hidden = !rows.length;
    put(card, h("div", { class: "card-head" }, h("h2", {}, "What to do now"), h("span", { class: "muted" }, "messages that take much room, and what a fold up to and including each of them would free")),
      h("ul", { class: "advice" }, rows.map((row) => adviceRow(context, row, cache))));
  } catch (error) {
    showFault(card, error);
  }
}

function adviceRow(context, row, cache) {
  const handle = `#${row.message}`;
  const effect = row.frees ? [h("b", {}, `frees ${tokens(row.frees)}`), ` (${row.leaves} ${/^#\d+$/.test(row.leaves) ? "leaves" : "leave"})`,
    row.saves !== null ? `, saves ${money(row.saves)} per request and ${row.costs ? `costs ${money(row.costs)} once` : `costs nothing, as ${NO_REWRITE[cache]}`}` : "",
    row.costs && row.pays_with !== null ? [", ", h("b", {}, `paid back after ${plural(row.pays_with, "request")}`)] : ""] : "would free nothing yet, because the digest would be as large";
  return h("li", {},
    h("span", { class: `chip a-${row.kind}` }, KINDS[row.kind]),
    h("div", { class: "advice-text" },
      h("div", { class: "advice-title" }, h("a", { href: context.linkTo(row.message), class: "m-number" }, handle), h("bdi", {}, visible(row.starts || "(empty)"))),
      h("div", { class: "muted small-text" }, `${tokens(row.tokens)} tokens, ${row.because}. A fold up to here `, effect, ".")),
    context.report.can_change ? h("div", { class: "advice-buttons" },
      h("button", { class: "button small", onclick: () => pin(context, handle), "aria-label": `Pin ${handle}` }, icon("pin"), "Pin"),
      row.leaves ? h("button", { class: "button small", onclick: () => previewFold(context, handle), "aria-label": `Fold up to here… (${handle})` }, icon("fold"), "Fold up to here…") : null) : null);
}
