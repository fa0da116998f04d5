// What fills the window now, how it grew request by request, and what to do about it.

import { get } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, put, visible } from "./dom.js";
import { money, plural, tokens, whole } from "./format.js";
import { stat, unpin } from "./changes.js";
import { drawAdvice } from "./advice.js";
import { contents, windowBar } from "./meter.js";
import { requestsCard } from "./requests.js";

export function windowTab(panel, context) {
  const now = h("section", { class: "card", "aria-label": "The window now" });
  const figures = h("div", { class: "stat-row" });
  const requests = h("section", { class: "card", "aria-label": "Requests" });
  const pins = h("section", { class: "card", "aria-label": "Pins" });
  const todo = h("section", { class: "card", "aria-label": "What to do now", hidden: true });
  const chart = requestsCard(requests, context);
  put(panel, now, requests, todo, pins);
  let report = null;

  const filled = h("div", { class: "filled" });

  function draw() {
    report = context.report;
    if (!report.is_measured) {
      put(now, h("p", { class: "loading" }, "Measuring the window…"));
      return;
    }
    put(now, h("div", { class: "card-head" }, h("h2", {}, "The window now"),
      h("span", { class: "muted" }, report.exact ? "counted" : "estimated", report.source ? ` (${report.source})` : "")),
    windowBar(report), figures,
    report.notice || report.reason ? h("p", { class: "hint" }, report.reason || report.notice) : null,
    report.assumption ? h("p", { class: "hint" }, report.assumption) : null,
    h("h3", {}, "What fills the history"), filled);
    drawPins();
  }

  function drawPins() {
    pins.hidden = !report.pins.length;
    put(pins, h("h2", {}, "Pins"), h("ul", { class: "pins" }, report.pins.map((one) => h("li", {},
      h("a", { href: context.linkTo(one.message), class: "m-number" }, `#${one.message}`), h("bdi", {}, visible(one.starts)),
      report.can_change ? h("button", { class: "link", onclick: () => unpin(context, one.name) }, "Unpin") : null))));
  }

  async function load() {
    if (!report.is_measured) return;
    try {
      const { contents: kinds } = await get("contents", context.where);
      put(filled, contents(kinds, report));
      const found = await get("requests", context.where);
      const saving = found.saving;
      put(figures,
        roomLeft(found),
        stat("Requests", whole(found.requests.length)),
        stat("Folds in force", whole(report.folds)),
        saving.tokens > 0 ? stat("Not sent, thanks to folds", `${tokens(saving.tokens)} tokens`) : null,
        saving.tokens > 0 && saving.money !== null ? stat(saving.from_receipts ? "Saved" : "Saved, at cache prices", `${saving.from_receipts ? "" : "~"}${money(saving.money)}`) : null);
      chart.draw(found);
      await drawAdvice(todo, context);
    } catch (error) {
      showFault(requests, error);
    }
  }

  draw();
  load();
  return {
    show() { chart.resize(); },
    update() { draw(); load(); },
    leave() { chart.leave(); },
  };
}

function roomLeft({ turns_left: turns, requests_left: requests }) {
  if (turns) return stat("Until the next fold", `about ${plural(turns, "turn")}`);
  if (requests !== null) return stat("Until the next fold", requests ? `about ${plural(requests, "request")}` : "next request");
  return null;
}
