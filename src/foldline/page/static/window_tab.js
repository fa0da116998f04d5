// What fills the window now, how it grew request by request, and what to do about it.

import { get } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, put, visible } from "./dom.js";
import { money, ownFolds, plural, savingText, tokens, whole } from "./format.js";
import { stat, unpin } from "./changes.js";
import { drawAdvice } from "./advice.js";
import { BLOCKS, contents, windowBar } from "./meter.js";
import { sessionLink, shortName } from "./sessions.js";
import { requestsCard } from "./requests.js";

export function windowTab(panel, context) {
  const now = h("section", { class: "card", "aria-label": "The window now" });
  const figures = h("div", { class: "stat-row" });
  const requests = h("section", { class: "card", "aria-label": "Requests" });
  const pins = h("section", { class: "card", "aria-label": "Kept in every request" });
  const family = h("section", { class: "card", "aria-label": "Sub-agents and further conversations", hidden: true });
  const todo = h("section", { class: "card", "aria-label": "What to do now", hidden: true });
  const chart = requestsCard(requests, context);
  put(panel, now, family, requests, todo, pins);
  let report = null;

  const filled = h("div", { class: "filled" });

  function draw() {
    report = context.report;
    if (!report.is_measured) {
      put(now, h("p", { class: "loading" }, "Measuring the window…"));
      return;
    }
    put(now, h("div", { class: "card-head" }, h("h2", {}, "The window now"),
      h("span", { class: "muted", title: report.source }, sourceText(report))),
    windowBar(report), figures,
    report.notice || report.reason ? h("p", { class: "hint" }, report.reason || report.notice) : null,
    report.assumption ? h("p", { class: "hint" }, report.assumption) : null,
    h("h3", {}, "What fills history and pins"), h("p", { class: "muted small-text" }, "Percentages are shares of history and pins. A file opens the message in which it takes the most room."), filled);
    drawPins();
  }

  function drawPins() {
    pins.hidden = !report.pins.length;
    put(pins, h("div", { class: "card-head" }, h("h2", {}, "Kept in every request"), h("span", { class: "muted" }, "no fold removes these messages")),
      h("ul", { class: "pins" }, report.pins.map((one) => h("li", {},
        h("a", { href: context.linkTo(one.message), class: "m-number" }, `#${one.message}`), h("bdi", {}, visible(one.starts)),
        one.copy_of ? h("a", { href: context.linkTo(one.copy_of), class: "small-text" }, `copy of #${one.copy_of}`) : null,
        h("span", { class: "muted small-text" }, `${tokens(one.tokens)} in ${(BLOCKS[one.block] || one.block).toLowerCase()}`),
        one.by !== "pin" ? h("span", { class: "chip" }, one.by === "system" ? "system prompt" : "first prompt, kept by the policy")
          : report.can_change ? h("button", { class: "link", onclick: () => unpin(context, one.name), "aria-label": `Unpin #${one.message}` }, "Unpin") : h("span", { class: "chip" }, "pinned")))));
  }

  function drawTree(tree) {
    family.hidden = tree.sessions.length < 2;
    if (family.hidden) return;
    put(family, h("div", { class: "card-head" }, h("h2", {}, "Sub-agents and further conversations"),
      h("span", { class: "muted" }, `all together: ${plural(tree.requests, "request")}${tree.usd === null ? "" : `, ${money(tree.usd)}`}`)),
    h("ul", { class: "tree" }, tree.sessions.map((row) => h("li", { class: row.parent ? "child" : null, css: { "--depth": row.session.split(/[/.](?=[^/.]+$)/).length - 1 } },
      row.session === context.where.session ? h("b", {}, h("bdi", {}, visible(shortName(row.session))), " (this one)")
        : h("a", { href: sessionLink({ ...row, branch: "main" }) }, h("bdi", {}, visible(shortName(row.session)))),
      h("span", { class: "muted" }, `${plural(row.requests, "request")}, ${plural(row.messages ?? 0, "message")}`), h("span", { class: "num" }, row.usd === null ? "" : money(row.usd))))));
  }

  async function load() {
    if (!report.is_measured) return;
    try {
      const { contents: kinds } = await get("contents", context.where);
      put(filled, contents(kinds, context.linkTo));
      const found = await get("requests", context.where);
      const saving = found.saving;
      put(figures,
        roomLeft(found),
        stat("Requests", `${whole(found.requests.length)}${found.unreported && found.unreported < found.requests.length ? ` (${whole(found.unreported)} without token usage)` : ""}`, found.unreported ? "If a reply has no token usage, the size of its request is an estimate, and its cost is not known." : null),
        found.cost.usd !== null ? stat("Cost", money(found.cost.usd)) : null,
        found.cost.missed_usd ? stat("of this for cache misses", money(found.cost.missed_usd)) : null,
        stat("Folds", foldCount(report)),
        report.compactions.map((one) => stat(`Compacted by the ${one.by}`, plural(one.messages, "message"), "foldline recorded this, but did not make it. It does not count as a saving of foldline.")),
        saving.tokens > 0 ? stat("Not sent, thanks to folds", `${tokens(saving.tokens)} tokens`) : null,
        saving.tokens > 0 && saving.money !== null ? savedStat(saving) : null);
      chart.draw(found);
      await drawAdvice(todo, context);
    } catch (error) {
      showFault(requests, error);
    }
  }

  draw();
  load();
  if (context.tree) drawTree(context.tree);
  return {
    show(params) { chart.resize(); chart.show(params); },
    update() { draw(); load(); },
    drawTree,
    leave() { chart.leave(); },
  };
}

/** How the number of tokens was determined. */
function sourceText(report) {
  if (report.exact) return "reported by the provider";
  return /usage/.test(report.source) ? "estimated from the usage of the newest reply" : "estimated";
}

/** How many more requests fit before the next fold. A turn is a prompt of the user with all its requests. */
function roomLeft({ requests_left: requests, turns_left: turns, requests_per_turn: each, growth_requests: newest }) {
  if (requests === null) return null;
  const about = !requests ? "less than one more request" : `about ${plural(requests, "request")}`;
  const unit = each ? ` A turn is a prompt with all its requests: here about ${each < 10 ? Number(each.toFixed(1)) : Math.round(each)} for each prompt.` : "";
  return stat("Until the next fold", requests && turns ? `${about} (${plural(turns, "turn")})` : about,
    `If the session goes on growing as in its newest ${plural(newest, "request")}.${unit}`);
}

/** The number of folds that apply, and of those that were taken back. */
function foldCount(report) {
  const undone = report.fold_list.filter((fold) => fold.taken_back_at).length;
  return `${whole(ownFolds(report))}${undone ? ` (${whole(undone)} taken back)` : ""}`;
}

function savedStat(saving) {
  const found = savingText({ usd: saving.money, isEstimate: !saving.from_receipts });
  return stat(found.name, found.amount, "All requests so far, compared with requests without foldline's folds, also folds that were taken back later. The cost of folds is subtracted: they make the provider write its cache again.");
}
