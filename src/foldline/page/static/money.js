// Tokens and money by day, model, project and session; what misses cost; what folds saved; the hold-out comparison.

import { get } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, put, visible } from "./dom.js";
import { money, percent, plural, savingText, tokens, whole } from "./format.js";
import { stat } from "./changes.js";
import { HELD_OUT, othersText, sessionLink } from "./sessions.js";

const GROUPS = { day: "day", month: "month", model: "model", project: "project", session: "session" };

export async function showMoney(view, params, signal) {
  const by = h("select", { id: "by", onchange: () => load() }, Object.entries(GROUPS).map(([value, title]) => h("option", { value, selected: value === (params.by || "day") }, `By ${title}`)));
  const source = h("select", { id: "source", onchange: () => load() }, h("option", { value: "ledger" }, "The ledger"), h("option", { value: "files", selected: params.source === "files" }, "Session files of agents"));
  const body = h("div", { "aria-live": "polite" });
  put(view, h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, "Money")),
    h("div", { class: "tools" }, h("label", { class: "hide", for: "by" }, "Group"), by, h("label", { class: "hide", for: "source" }, "Source"), source), body));
  let turn = 0;
  async function load() {
    const mine = ++turn;
    history.replaceState(null, "", `#/money?${new URLSearchParams({ by: by.value, source: source.value })}`);
    put(body, h("p", { class: "loading" }, "Reading every request…"));
    try {
      const report = await get("money", { by: by.value, source: source.value }, signal);
      if (mine === turn) put(body, reportView(report));
    } catch (error) {
      if (mine === turn) showFault(body, error);
    }
  }
  load();
  return { title: "foldline: money", leave() { turn += 1; } };
}

function reportView(report) {
  const others = report.of_other_owners ? h("p", { class: "hint" }, othersText(report.of_other_owners)) : null;
  if (!report.total.requests) {
    return [h("p", { class: "empty card" }, report.source === "files" ? "No session file with token usage was found. Claude Code, Codex and pi write such files."
      : `No reply in ${others ? "the sessions that are shown" : "this ledger"} has token usage. Replies that came through “foldline serve” or that were imported from session files have it.`), others].filter(Boolean);
  }
  const total = report.total;
  return [
    h("section", { class: "card", "aria-label": "Total" }, h("h2", {}, "Total"), h("div", { class: "stat-row" },
      stat("Cost", money(total.cost)), stat("Requests", `${whole(total.requests)}${report.unreported ? ` (${whole(report.unreported)} more without token usage)` : ""}`),
      stat("Read from the cache", percent(total.cache_read / Math.max(1, total.cache_read + total.cache_write + total.input))),
      stat("Cache misses", `${tokens(total.missed, true)} tokens, ${money(total.miss_cost)}`),
      report.savings ? stat("Without folding", money(report.savings.untouched_usd)) : null,
      report.source === "files" ? null : !report.saved ? stat("Saved by folds, net", "—") : stat(savingOf(report.saved).name, savingOf(report.saved).amount)),
    report.saved && !report.saved.from_receipts ? h("p", { class: "muted small-text" }, "~ marks an estimate: the cost that the requests would have had without foldline's folds, minus the real cost. For requests through “foldline serve”, the saving is measured.") : null),
    report.savings?.misses.length ? misses(report.savings.misses) : null,
    report.savings ? holdout(report.holdout) : null,
    groups(report),
    others,
    report.unreported ? h("p", { class: "muted" }, `${plural(report.unreported, "request")} ${report.unreported === 1 ? "is" : "are"} not in these figures, because the replies have no token usage, for example after an interruption.`) : null,
    report.without_price.length ? h("p", { class: "muted" }, `Without a known price, so not in the cost: ${report.without_price.join(", ")}`) : null,
  ];
}

const savingOf = (found) => savingText({ usd: found.usd, isEstimate: !found.from_receipts });

function groups(report) {
  const isBySession = report.by === "session" && report.source === "ledger";
  const total = Math.max(report.total.cost, 1e-9);
  const sorted = [...report.groups].sort((one, other) => other.cost - one.cost);
  const rows = report.by === "day" || report.by === "month" ? [...report.groups].reverse() : report.by === "session" ? inTrees(sorted) : sorted;
  return h("section", { class: "card", "aria-label": `By ${report.by}` }, h("h2", {}, `By ${report.by}`), h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", { class: "wide" },
    h("thead", {}, h("tr", {}, [report.by, "", "cost", ...(isBySession ? ["saved"] : []), "cache misses", "requests", "read from cache", "written", "not cached", "output"].map((title, place) =>
      h("th", { scope: "col", class: place > 1 ? "num" : place ? "track-cell" : "" }, title || h("span", { class: "hide" }, "share of the cost"))))),
    h("tbody", {}, rows.slice(0, 400).map((row) => h("tr", {},
      h("th", { scope: "row", class: row.parent ? "name child" : "name", title: row.name }, nameOf(report, row)),
      h("td", { class: "track-cell" }, h("span", { class: "hbar-track block" }, h("span", { class: "hbar-fill k-after", css: { width: `${100 * row.cost / total}%` }, title: `${percent(row.cost / total)} of the cost` }))),
      cell("cost", "num strong", money(row.cost)), isBySession ? savedCell(row.saved) : null,
      cell("cache misses", "num", row.missed ? [money(row.miss_cost), h("small", { class: "muted" }, ` ${tokens(row.missed, true)}`)] : "—"), cell("requests", "num", whole(row.requests)),
      [["read from cache", row.cache_read], ["written", row.cache_write], ["not cached", row.input], ["output", row.output]].map(([title, size]) => cell(title, "num", tokens(size, true)))))))));
}

/** A cell of a table. On a narrow screen, its title stands before it. */
const cell = (title, style, content) => h("td", { class: style, data: { label: title } }, content);

function savedCell(found) {
  if (!found) return cell("saved", "num", "—");
  const { text, amount, style } = savingOf(found);
  return cell("saved", `num ${style}`, found.usd < 0 ? text : amount);
}

const shortened = (name) => (name.length > 34 ? (name.includes("/") ? `…${name.slice(-33)}` : `${name.slice(0, 33)}…`) : name || "unknown");

/** The sessions as trees: sub-agents and further conversations come after the session that they belong to. */
function inTrees(rows) {
  const names = new Set(rows.map((row) => row.name));
  const below = (row) => [row, ...rows.filter((one) => one.parent === row.name).flatMap(below)];
  return rows.filter((row) => !names.has(row.parent)).flatMap(below);
}

function nameOf(report, row) {
  const name = h("bdi", {}, visible(shortened(row.name)));
  const isSession = report.by === "session" && report.owner !== null && row.name;
  return [isSession ? h("a", { href: sessionLink({ owner: report.owner, session: row.name }) }, name) : name,
    row.is_held_out ? h("span", { class: "chip", title: HELD_OUT }, "held out") : null];
}

function misses(rows) {
  return h("section", { class: "card", "aria-label": "Cache misses by cause" }, h("h2", {}, "Cache misses by cause"), h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Cause"), ["requests", "tokens", "cost"].map((title) => h("th", { scope: "col", class: "num" }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.cause), h("td", { class: "num" }, whole(row.requests)),
      h("td", { class: "num" }, tokens(row.tokens, true)), h("td", { class: "num" }, money(row.usd)))))));
}

function holdout(found) {
  if (!found) {
    return h("section", { class: "card", "aria-label": "Hold-out" }, h("h2", {}, "Hold-out comparison"),
      h("p", { class: "muted" }, "No session is held out. With “foldline serve --holdout 0.05”, 5% of the new sessions are only observed, and the saving is measured against them."));
  }
  const certain = found.low !== null;
  return h("section", { class: "card", "aria-label": "Hold-out" }, h("h2", {}, "Hold-out comparison"), h("div", { class: "stat-row" },
    stat("With folds", `${money(found.folded.per_request)} per request (${plural(found.folded.sessions, "session")})`),
    stat("Only observed", `${money(found.held_out.per_request)} per request (${plural(found.held_out.sessions, "session")})`),
    stat("Saved per request", certain ? `${money(found.difference)}, 95%: ${money(found.low)} to ${money(found.high)}` : `${money(found.difference)}; too few sessions for a 95% interval`)));
}
