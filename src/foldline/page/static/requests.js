// The requests of a session: the chart, the slider, and the window at one request, compared with another request.

import { get } from "./api.js";
import { toast } from "./dialogs.js";
import { h, put, withHandles } from "./dom.js";
import { money, moment, percent, plural, tokens, whole } from "./format.js";
import { HIDDEN_WHY } from "./meter.js";
import { requestChart } from "./request_chart.js";

const WHY = {
  "not in any message": HIDDEN_WHY, note: "Texts that foldline or its user added, for example pins", stubs: "Long results of which the request has only the beginning",
  digest: "The summary that replaces earlier messages", "tool definitions": "The tools that the model may call",
};

export function requestsCard(card, context) {
  let answer = null;
  let chosen = 0;
  let against = 0;
  let turn = 0;
  let isListOpen = false;
  const box = h("div", { class: "chart" });
  const key = h("div");
  const chart = requestChart(box, { chosen: () => chosen, choose: (number) => choose(number), linkTo: (number) => context.link({ tab: "folds", fold: number }) });
  const range = h("input", { type: "range", min: "1", class: "scrubber", "aria-label": "Request", oninput: () => choose(Number(range.value)) });
  const exact = h("input", { type: "number", min: "1", class: "request-number", "aria-label": "Request number", onchange: () => ask(exact, (number) => choose(number)) });
  const before = h("button", { class: "button small", "aria-label": "Request before", onclick: () => choose(chosen - 1) }, "‹");
  const after = h("button", { class: "button small", "aria-label": "Next request", onclick: () => choose(chosen + 1) }, "›");
  const other = h("input", { type: "number", min: "1", class: "request-number", id: "against", placeholder: "previous", onchange: () => ask(other, (number) => { against = number; choose(chosen); }) });
  const largest = h("button", { class: "button small", onclick: () => choose(answer.requests.reduce((most, row) => (row.tokens > most.tokens ? row : most)).number) }, "Largest");
  const detail = h("div", { class: "request-detail", "aria-live": "polite" });
  const events = h("div", { class: "events" });

  function draw(found) {
    const grew = answer && found.requests.length > answer.requests.length && chosen === answer.requests.length;
    answer = found;
    const rows = found.requests;
    if (!rows.length) {
      put(card, h("h2", {}, "Requests"), h("p", { class: "empty" }, "There is no reply of a model yet."));
      return;
    }
    if (!box.isConnected) {
      put(card, h("div", { class: "card-head" }, h("h2", {}, "Requests"), key), box,
        h("div", { class: "row scrub" }, before, range, after, exact, largest,
          h("label", { class: "against" }, "compared with", other)), events, detail);
    }
    put(key, legend(rows));
    range.max = exact.max = other.max = String(rows.length);
    chart.draw(found);
    drawEvents(rows);
    choose(grew || !chosen ? rows.length : Math.min(chosen, rows.length), false);
  }

  function legend(rows) {
    const measured = rows.some((row) => row.exact);
    const items = measured ? [["read", "read from cache"], ["written", "written to cache"], ["fresh", "not cached"]] : [["sent", "sent (estimated)"]];
    return h("ul", { class: "legend small" }, items.map(([name, title]) => h("li", {}, h("i", { class: `dot c-${name}` }), title)),
      rows.some((row) => row.whole > row.tokens) ? h("li", {}, h("i", { class: "dash ink" }), "without folding") : null,
      answer.marks.filter((mark) => mark.name === "hard").map((mark) => h("li", { title: "Dotted lines: the sizes at which the policy warns and folds, and the largest request that fits" }, h("i", { class: "dash bad dotted" }), `largest request that fits: ${tokens(mark.tokens, true)}`)),
      rows.some((row) => row.missed) ? h("li", {}, h("i", { class: "dot round bad" }), "cache miss") : null);
  }

  function drawEvents(rows) {
    const misses = rows.filter((row) => row.missed);
    const missed = misses.reduce((sum, row) => sum + row.missed, 0);
    const paid = misses.reduce((sum, row) => sum + (row.missed_usd || 0), 0);
    put(events, misses.length ? h("details", { open: isListOpen, ontoggle: (event) => { isListOpen = event.target.open; } },
      h("summary", {}, `${plural(misses.length, "cache miss", "cache misses")}: ${tokens(missed, true)} tokens paid again${paid ? `, ${money(paid)}` : ""}`),
      h("ul", { class: "misses" }, misses.map((row) => h("li", {}, h("button", { class: "link", onclick: () => choose(row.number) }, `Request ${row.number}`),
        h("span", {}, `${tokens(row.missed, true)} tokens${row.missed_usd ? ` (${money(row.missed_usd)})` : ""}: `, causeText(row)))))) : null);
  }

  /** The cause of a cache miss. The numbers of messages and folds are links. */
  function causeText(row) {
    const [before, number, after] = row.cause.split(/\bfold ([0-9]+)\b/);
    if (!number) return withHandles(row.cause, context.linkTo);
    return [before, h("a", { href: context.link({ tab: "folds", fold: Number(number) }) }, `fold ${number}`), after];
  }

  /** Takes a number from a field. If there is no such request, a message says so, and the field shows the chosen request again. */
  function ask(field, use) {
    const number = Number(field.value) || 0;
    const most = answer.requests.length;
    if (number >= 0 && number <= most && Number.isInteger(number)) return use(number);
    toast(`There is no request ${field.value}: the newest is request ${most}.`, { error: true });
    field.value = field === exact ? String(chosen) : against ? String(against) : "";
    return undefined;
  }

  async function choose(number, isAsked = true) {
    const rows = answer.requests;
    chosen = Math.max(1, Math.min(rows.length, number || 1));
    if (against > rows.length) against = 0;
    range.value = exact.value = String(chosen);
    other.value = against ? String(against) : "";
    before.disabled = chosen === 1;
    after.disabled = chosen === rows.length;
    chart.redraw();
    if (isAsked) context.remember({ tab: "window", request: chosen, ...(against ? { against } : {}) });
    const row = rows[chosen - 1];
    const mine = ++turn;
    const table = detail.querySelector(".request-kinds") || h("div", { class: "request-kinds" });
    put(detail, h("div", { class: "request-head" },
      h("h3", {}, `Request ${chosen}`), h("span", { class: "muted" }, moment(row.at)),
      h("span", {}, h("b", {}, tokens(row.tokens, row.exact)), " tokens"),
      row.exact ? h("span", { class: "muted" }, `${percent(row.read / Math.max(1, row.tokens))} from the cache`) : null,
      row.whole > row.tokens ? h("span", { class: "muted" }, `${tokens(row.whole)} without folding`) : null,
      row.usd !== null ? h("span", { class: "muted" }, money(row.usd)) : null,
      h("a", { href: context.linkTo(row.message) }, `reply #${row.message}`)),
    row.missed ? h("p", { class: "fault" }, `Cache miss: ${tokens(row.missed, true)} tokens were paid again${row.missed_usd ? `, for ${money(row.missed_usd)}` : ""}. Cause: `, causeText(row), ".") : null, table);
    try {
      const found = await get("window", { ...context.where, number: chosen, against });
      if (mine === turn) put(table, kinds(found, row.exact));
    } catch {
      if (mine === turn) put(table);
    }
  }

  function kinds(found, isExact) {
    const compared = found.against && found.against !== found.number - 1;
    const column = (title) => h("th", { scope: "col", class: "num" }, title);
    return [h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "In the request"),
      compared ? column(`Request ${found.against}`) : null, column(compared ? `Request ${found.number}` : "Tokens"), column("Change"))),
    h("tbody", {}, found.kinds.map((kind) => h("tr", {},
      h("th", { scope: "row", title: WHY[kind.name] || null }, h("i", { class: `dot k-${kind.name.replace(/ /g, "-")}` }), kind.name),
      compared ? h("td", { class: "num" }, kind.before ? tokens(kind.before) : "—") : null,
      h("td", { class: "num" }, kind.tokens ? tokens(kind.tokens) : "—"), change(kind.change)))),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Request"), compared ? h("td", { class: "num" }, tokens(found.before, isExact)) : null,
      h("td", { class: "num" }, tokens(found.tokens, isExact)), change(found.tokens - found.before)))),
    found.against ? h("p", { class: "small-text came-went" }, moved("New", found.came), moved("Left", found.went), found.came || found.went ? "" : "The same messages as before.") : null];
  }

  /** The messages that came or left since the other request. */
  const moved = (title, handles) => (handles ? h("span", {}, h("b", {}, `${title}: `), withHandles(handles, context.linkTo), " ") : null);

  const change = (size) => h("td", { class: `num ${size < 0 ? "down" : size > 0 ? "up" : ""}` }, size ? `${size > 0 ? "+" : "−"}${whole(Math.abs(size))}` : "");

  return {
    draw, resize: chart.resize, leave: chart.leave,
    show(params) {
      const [number, compared] = [Number(params.request) || 0, Number(params.against) || 0];
      if (!number || (number === chosen && compared === against)) return;
      chosen = number;
      against = compared;
      if (answer?.requests.length) choose(number, false);
    },
  };
}
