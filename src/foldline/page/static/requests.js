// The chart of request sizes, and the scrubber that shows the window as it was at any request.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { money, moment, percent, plural, tokens, whole } from "./format.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function stroke(draw2d, fromX, fromY, toX, toY) {
  draw2d.beginPath();
  draw2d.moveTo(fromX, fromY);
  draw2d.lineTo(toX, toY);
  draw2d.stroke();
}

export function requestsCard(card, context) {
  let answer = null;
  let plot = null;
  let chosen = 0;
  let turn = 0;
  const box = h("div", { class: "chart" });
  const range = h("input", { type: "range", min: "1", class: "scrubber", "aria-label": "Request", oninput: () => choose(Number(range.value)) });
  const exact = h("input", { type: "number", min: "1", class: "request-number", "aria-label": "Request number", onchange: () => choose(Number(exact.value)) });
  const before = h("button", { class: "button small", "aria-label": "Request before", onclick: () => choose(chosen - 1) }, "‹");
  const after = h("button", { class: "button small", "aria-label": "Next request", onclick: () => choose(chosen + 1) }, "›");
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
    put(card, h("div", { class: "card-head" }, h("h2", {}, "Requests"), legend(rows)), box,
      h("div", { class: "row scrub" }, before, range, after, exact), detail, events);
    range.max = exact.max = String(rows.length);
    plotRows(rows);
    drawEvents(rows);
    choose(grew || !chosen ? rows.length : Math.min(chosen, rows.length));
  }

  function legend(rows) {
    const measured = rows.some((row) => row.exact);
    const items = measured ? [["read", "read from cache"], ["written", "written to cache"], ["fresh", "not cached"]] : [["sent", "sent (estimated)"]];
    return h("ul", { class: "legend small" }, items.map(([name, title]) => h("li", {}, h("i", { class: `dot c-${name}` }), title)),
      h("li", {}, h("i", { class: "dash" }), "without folding"));
  }

  function plotRows(rows) {
    plot?.destroy();
    const numbers = rows.map((row) => row.number);
    const measured = rows.some((row) => row.exact);
    const fresh = rows.map((row) => row.tokens);
    const written = rows.map((row) => (row.exact ? row.read + row.written : 0));
    const read = rows.map((row) => (row.exact ? row.read : 0));
    const whole_ = rows.map((row) => row.whole);
    const steps = window.uPlot.paths.stepped({ align: -1 });
    const area = (name, fill) => ({ label: name, stroke: fill, fill, width: 0, points: { show: false }, paths: steps });
    const data = measured ? [numbers, fresh, written, read, whole_] : [numbers, fresh, whole_];
    const series = [{}, area("fresh", color("--c-fresh"))];
    if (measured) series.push(area("written", color("--c-written")), area("read", color("--c-read")));
    else series[1] = area("sent", color("--c-sent"));
    series.push({ label: "whole", stroke: color("--muted"), width: 1.5, dash: [5, 4], points: { show: false }, paths: steps });
    const axis = { stroke: color("--muted"), font: "12px system-ui, sans-serif", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const most = Math.max(...whole_, 1);
    const roof = most > answer.usable * 0.5 ? Math.min(Math.max(most, answer.usable * 1.05), answer.usable * 2.2) : most * 1.1;
    plot = new window.uPlot({
      width: Math.max(260, box.clientWidth), height: 240, legend: { show: false }, padding: [14, 8, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: [numbers[0] - 1, numbers[numbers.length - 1]] }, y: { range: [0, roof] } },
      axes: [{ ...axis, size: 30, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) && tick > 0 ? tick : "")) },
        { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => tokens(tick, true)) }],
      series, hooks: { draw: [overlay], ready: [(made) => made.over.addEventListener("click", () => { if (made.cursor.idx !== null) choose(rows[made.cursor.idx].number); })] },
    }, data, put(box));
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `Sizes of ${plural(rows.length, "request")}; the largest is ${tokens(Math.max(...fresh), measured)}, without folding ${tokens(most)}. The slider below shows each one.`);
  }

  function overlay(made) {
    const draw2d = made.ctx;
    const { left, top, width, height } = made.bbox;
    const ratio = devicePixelRatio || 1;
    const rows = answer.requests;
    draw2d.save();
    draw2d.lineWidth = ratio;
    draw2d.font = `${11 * ratio}px system-ui, sans-serif`;
    for (const mark of answer.marks) {
      const y = made.valToPos(mark.tokens, "y", true);
      if (y < top) continue;
      draw2d.strokeStyle = color(mark.name === "hard" ? "--bad" : "--warn");
      draw2d.setLineDash([2 * ratio, 3 * ratio]);
      stroke(draw2d, left, y, left + width, y);
    }
    draw2d.setLineDash([]);
    let labelled = -1e9;
    rows.forEach((row, place) => {
      const x = made.valToPos(row.number - 1, "x", true);
      if (place && row.fold !== rows[place - 1].fold) {
        draw2d.strokeStyle = color("--accent");
        draw2d.fillStyle = color("--accent");
        stroke(draw2d, x, top, x, top + height);
        draw2d.textAlign = "left";
        if (x - labelled > 46 * ratio) {
          draw2d.fillText(row.fold > rows[place - 1].fold ? `fold ${row.fold}` : "unfold", x + 4 * ratio, top + 11 * ratio);
          labelled = x;
        }
      }
      if (row.missed) {
        draw2d.fillStyle = color("--bad");
        draw2d.beginPath();
        draw2d.arc(x + (made.valToPos(1, "x", true) - made.valToPos(0, "x", true)) / 2, top + height - 6 * ratio, 3.5 * ratio, 0, 7);
        draw2d.fill();
      }
    });
    if (chosen) {
      const [from, to] = [made.valToPos(chosen - 1, "x", true), made.valToPos(chosen, "x", true)];
      draw2d.fillStyle = color("--select");
      draw2d.fillRect(from, top, Math.max(2 * ratio, to - from), height);
    }
    draw2d.restore();
  }

  function drawEvents(rows) {
    const misses = rows.filter((row) => row.missed);
    const missed = misses.reduce((sum, row) => sum + row.missed, 0);
    put(events, misses.length ? h("details", {}, h("summary", {}, `${plural(misses.length, "cache miss").replace("misss", "misses")}: ${tokens(missed, true)} tokens paid again`),
      h("ul", { class: "misses" }, misses.map((row) => h("li", {}, h("button", { class: "link", onclick: () => choose(row.number) }, `Request ${row.number}`),
        h("span", {}, `${tokens(row.missed, true)} tokens: ${row.cause}`))))) : null);
  }

  async function choose(number) {
    const rows = answer.requests;
    chosen = Math.max(1, Math.min(rows.length, number));
    range.value = exact.value = String(chosen);
    before.disabled = chosen === 1;
    after.disabled = chosen === rows.length;
    plot?.redraw(false);
    const row = rows[chosen - 1];
    const mine = ++turn;
    const table = h("div", { class: "request-kinds" });
    put(detail, h("div", { class: "request-head" },
      h("h3", {}, `Request ${chosen}`), h("span", { class: "muted" }, moment(row.at)),
      h("span", {}, h("b", {}, tokens(row.tokens, row.exact)), " tokens"),
      row.exact ? h("span", { class: "muted" }, `${percent(row.read / Math.max(1, row.tokens))} from the cache`) : null,
      row.whole > row.tokens ? h("span", { class: "muted" }, `${tokens(row.whole)} without folding`) : null,
      row.usd !== null ? h("span", { class: "muted" }, money(row.usd)) : null,
      h("a", { href: context.linkTo(row.message) }, `reply #${row.message}`)),
    row.missed ? h("p", { class: "fault" }, `Cache miss: ${tokens(row.missed, true)} tokens were paid again. Cause: ${row.cause}.`) : null, table);
    try {
      const found = await get("window", { ...context.where, number: chosen });
      if (mine === turn) put(table, kinds(found));
    } catch {
      if (mine === turn) put(table);
    }
  }

  function kinds(found) {
    return h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "In the request"), h("th", { scope: "col", class: "num" }, "Tokens"),
      h("th", { scope: "col", class: "num" }, "Change"))),
    h("tbody", {}, found.kinds.map((kind) => h("tr", {}, h("th", { scope: "row" }, h("i", { class: `dot k-${kind.name.replace(/ /g, "-")}` }), kind.name),
      h("td", { class: "num" }, tokens(kind.tokens)), h("td", { class: `num ${kind.change < 0 ? "down" : kind.change > 0 ? "up" : ""}` }, kind.change ? `${kind.change > 0 ? "+" : "−"}${whole(Math.abs(kind.change))}` : "")))));
  }

  const resize = () => { if (plot && box.clientWidth) plot.setSize({ width: Math.max(260, box.clientWidth), height: 240 }); };
  const watcher = new ResizeObserver(resize);
  watcher.observe(box);
  const retheme = () => { if (answer?.requests.length) plotRows(answer.requests); };
  document.addEventListener("themechange", retheme);
  return { draw, resize, leave() { watcher.disconnect(); document.removeEventListener("themechange", retheme); plot?.destroy(); } };
}
