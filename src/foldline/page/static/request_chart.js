// The chart of request sizes: a bar for each request, the size without folding, folds, cache misses and limits.

import { h, put } from "./dom.js";
import { money, plural, tokens } from "./format.js";

const HEIGHT = 254;
const ROW = 15;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000];
const MARKS = { warn: "warns", fold: "folds", clip: "folds", pause: "pauses", hard: "largest request" };
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Draws the chart into `box`. `chosen()` is the number of the chosen request, `choose(number)` is called for a click.
 * `linkTo(number)` is the address of a fold. */
export function requestChart(box, { chosen, choose, linkTo }) {
  let answer = null;
  let plot = null;
  let roof = 1;
  const note = h("div", { class: "chart-note", hidden: true, "aria-hidden": "true" });
  const labels = h("div", { class: "chart-folds" });

  function draw(found) {
    answer = found;
    plot?.destroy();
    const rows = answer.requests;
    const measured = rows.some((row) => row.exact);
    const numbers = rows.map((row) => row.number);
    const sent = rows.map((row) => row.tokens);
    const bars = window.uPlot.paths.bars({ size: [1, Infinity], align: 0 });
    const area = (fill) => ({ stroke: fill, fill, width: 0, points: { show: false }, paths: bars });
    const data = measured ? [numbers, sent, rows.map((row) => (row.exact ? row.read + row.written : 0)), rows.map((row) => (row.exact ? row.read : 0))] : [numbers, sent];
    const series = [{}, ...(measured ? ["--c-fresh", "--c-written", "--c-read"] : ["--c-sent"]).map((name) => area(color(name)))];
    const axis = { stroke: color("--muted"), font: "12px system-ui, sans-serif", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const most = Math.max(...rows.map((row) => row.whole), ...sent, 1);
    roof = most > answer.usable * 0.5 ? Math.min(Math.max(most, answer.usable) * 1.06, Math.max(answer.usable * 2.2, Math.max(...sent) * 1.06)) : most * 1.1;
    plot = new window.uPlot({
      width: width(), height: HEIGHT, legend: { show: false }, padding: [2 * ROW + 2, 8, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: [0.5, rows.length + 0.5] }, y: { range: [0, roof] } },
      axes: [{ ...axis, size: 30, incrs: STEPS, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) && tick >= 1 && tick <= rows.length ? tick : "")) },
        { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => tokens(tick, true)) }],
      series, hooks: { draw: [overlay], setCursor: [showNote],
        ready: [(made) => made.over.addEventListener("click", (event) => choose(requestAt(made, event.offsetX)))] },
    }, data, put(box));
    box.append(labels, note);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `Sizes of ${plural(rows.length, "request")}; the largest is ${tokens(Math.max(...sent), measured)}, without folding ${tokens(most)}. The slider below shows each one.`);
  }

  const width = () => Math.max(260, box.clientWidth);
  const requestAt = (made, x) => Math.max(1, Math.min(answer.requests.length, Math.round(made.posToVal(x, "x"))));

  function showNote(made) {
    const { left } = made.cursor;
    note.hidden = left === undefined || left < 0;
    if (note.hidden) return;
    const row = answer.requests[requestAt(made, left) - 1];
    const parts = row.exact ? [`${tokens(row.read, true)} read`, `${tokens(row.written, true)} written`, `${tokens(row.fresh, true)} not cached`] : [];
    put(note, h("b", {}, `Request ${row.number}: ${tokens(row.tokens, row.exact)}`),
      parts.length ? h("span", {}, parts.join(", ")) : null,
      row.whole > row.tokens ? h("span", {}, `${tokens(row.whole)} without folding`) : null,
      row.usd !== null ? h("span", {}, money(row.usd)) : null,
      row.missed ? h("span", { class: "bad-text" }, `cache miss: ${tokens(row.missed, true)}, because ${row.cause}`) : null);
    const middle = made.over.offsetLeft + left;
    note.style.setProperty("left", `${Math.min(Math.max(0, middle + 12), box.clientWidth - 190)}px`);
  }

  function overlay(made) {
    const pen = made.ctx;
    const { left, top, width: wide, height } = made.bbox;
    const ratio = devicePixelRatio || 1;
    const rows = answer.requests;
    const x = (number) => made.valToPos(number, "x", true);
    const y = (size) => made.valToPos(size, "y", true);
    pen.save();
    pen.lineWidth = ratio;
    pen.font = `${11 * ratio}px system-ui, sans-serif`;
    if (chosen()) {
      pen.fillStyle = color("--select");
      pen.fillRect(x(chosen() - 0.5), top, Math.max(2 * ratio, x(chosen() + 0.5) - x(chosen() - 0.5)), height);
    }
    let above = 1e9;
    for (const mark of answer.marks) {
      if (mark.tokens > roof) continue;
      pen.strokeStyle = color(mark.name === "hard" ? "--bad" : mark.name === "warn" ? "--warn" : "--accent");
      pen.setLineDash([2 * ratio, 3 * ratio]);
      line(pen, left, y(mark.tokens), left + wide, y(mark.tokens));
      if (above - y(mark.tokens) > 13 * ratio) label(pen, `${MARKS[mark.name] || mark.name} ${tokens(mark.tokens, true)}`, left + 4 * ratio, y(mark.tokens) - 3 * ratio, pen.strokeStyle);
      above = Math.min(above, y(mark.tokens));
    }
    if (rows.some((row) => row.whole !== row.tokens)) drawWhole(pen, rows, x, y, top, ratio);
    pen.setLineDash([]);
    pen.strokeStyle = color("--accent");
    for (const [before] of foldPlaces()) line(pen, x(before + 0.5), top, x(before + 0.5), top + height);
    rows.forEach((row) => {
      if (row.missed) {
        pen.fillStyle = color("--card");
        dot(pen, x(row.number), top + height - 7 * ratio, 5 * ratio);
        pen.fillStyle = color("--bad");
        dot(pen, x(row.number), top + height - 7 * ratio, 3.5 * ratio);
      }
    });
    pen.restore();
    drawLabels(made);
  }

  /** The folds and unfolds by the number of requests before them. */
  function foldPlaces() {
    const places = new Map();
    for (const mark of answer.folds) places.set(mark.requests_before, [...(places.get(mark.requests_before) || []), mark]);
    return places;
  }

  /** The numbers of the folds and unfolds above the chart, as links to the fold. A number that would cover another one is
   * in the second row. If there is no room in either row, a dot is drawn instead. */
  function drawLabels(made) {
    const ends = [-1e9, -1e9];
    put(labels, h("span", { class: "muted" }, "folds"), [...foldPlaces()].map(([before, marks]) => {
      const mark = marks[marks.length - 1];
      const left = made.over.offsetLeft + made.valToPos(before + 0.5, "x");
      const name = `${mark.kind === "unfold" ? "↩" : ""}${mark.fold}`;
      const width = 7 * name.length + 6;
      const row = ends.findIndex((end) => left - width / 2 >= end);
      const text = row < 0 ? "•" : name;
      const title = marks.map((one) => `${{ fold: "Fold", unfold: "Unfold of fold", refold: "Restored: fold" }[one.kind]} ${one.fold}`).join(", ");
      if (row >= 0) ends[row] = left + width / 2;
      return h("a", { href: linkTo(mark.fold), title, "aria-label": title, css: { left: `${left}px`, top: `${Math.max(0, row) * ROW}px`, width: `${row < 0 ? 6 : width}px` } }, text);
    }));
  }

  function drawWhole(pen, rows, x, y, top, ratio) {
    pen.strokeStyle = color("--ink");
    pen.setLineDash([5 * ratio, 4 * ratio]);
    pen.lineWidth = 1.5 * ratio;
    pen.beginPath();
    for (const row of rows) {
      const level = Math.max(top, y(row.whole));
      pen.lineTo(x(row.number - 0.5), level);
      pen.lineTo(x(row.number + 0.5), level);
    }
    pen.stroke();
    pen.lineWidth = ratio;
    const over = rows.find((row) => row.whole > roof);
    if (over) label(pen, `without folding: ${tokens(rows[rows.length - 1].whole)} ↑`, x(rows.length + 0.5) - 4 * ratio, top + 12 * ratio, color("--ink"), "right");
  }

  function label(pen, text, x, y, fill, align = "left") {
    pen.textAlign = align;
    const size = pen.measureText(text).width;
    const height = 12 * (devicePixelRatio || 1);
    pen.save();
    pen.globalAlpha = 0.8;
    pen.fillStyle = color("--card");
    pen.fillRect(align === "right" ? x - size - 2 : x - 2, y - height + 3, size + 4, height);
    pen.restore();
    pen.fillStyle = fill;
    pen.fillText(text, x, y);
  }

  const resize = () => { if (plot && box.clientWidth) plot.setSize({ width: width(), height: HEIGHT }); };
  const retheme = () => { if (answer?.requests.length) draw(answer); };
  const watcher = new ResizeObserver(resize);
  watcher.observe(box);
  document.addEventListener("themechange", retheme);
  return {
    draw, resize, redraw: () => plot?.redraw(false),
    leave() { watcher.disconnect(); document.removeEventListener("themechange", retheme); plot?.destroy(); },
  };
}

function line(pen, fromX, fromY, toX, toY) {
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.lineTo(toX, toY);
  pen.stroke();
}

function dot(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fill();
}
