// What policies would have done with a transcript. It is read by foldline on this machine and stored nowhere.

import { post } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, icon, put, visible } from "./dom.js";
import { money, percent, plural, tokens, whole } from "./format.js";

const MAX_BYTES = 60 * 1024 * 1024;
const COLORS = ["--b-history", "--b-digest", "--b-pins", "--b-tools"];
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export async function showReplay(main) {
  let plot = null;
  let report = null;
  let file = null;
  const field = h("input", { type: "file", id: "file", class: "hide", accept: ".json,.jsonl,.gz", onchange: () => { if (field.files[0]) open(field.files[0]); } });
  const drop = h("label", { class: "drop", for: "file",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]); } },
  icon("drop"), h("b", {}, "Drop a transcript here, or choose a file"), h("span", { class: "muted" }, "Claude Code, Codex, pi, OpenAI, Anthropic or Gemini; .json, .jsonl or .gz. Nothing leaves this machine."));
  const size = h("select", { id: "window", onchange: () => { if (file) run(); } }, h("option", { value: "0" }, "The model's window"),
    [32000, 64000, 128000, 200000].map((value) => h("option", { value }, `A window of ${tokens(value, true)}`)));
  const body = h("div", { "aria-live": "polite" });
  put(main, h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, "Replay"), h("p", { class: "muted" }, "What would policies have sent, cost and lost?")),
    field, drop, h("div", { class: "tools" }, h("label", { class: "hide", for: "window" }, "Window"), size), body));
  document.title = "foldline: replay";

  async function open(chosen) {
    if (chosen.size > MAX_BYTES) {
      showFault(body, { message: `The file has ${whole(chosen.size)} bytes`, hint: "use “foldline replay FILE” for it" });
      return;
    }
    const packed = chosen.name.endsWith(".gz");
    const stream = packed ? chosen.stream().pipeThrough(new DecompressionStream("gzip")) : chosen.stream();
    try {
      file = { name: chosen.name.replace(/\.gz$/, ""), text: await new Response(stream).text() };
    } catch {
      showFault(body, { message: `${chosen.name} cannot be read` });
      return;
    }
    run();
  }

  async function run() {
    put(body, h("p", { class: "loading" }, `Replaying ${file.name}…`));
    try {
      report = await post("replay", { name: file.name, text: file.text, window: Number(size.value) });
      draw();
    } catch (error) {
      showFault(body, error);
    }
  }

  function draw() {
    const first = report.policies[0];
    const box = h("div", { class: "chart" });
    put(body, h("section", { class: "card", "aria-label": "Result" },
      h("div", { class: "card-head" }, h("h2", {}, h("bdi", {}, visible(report.name))), h("span", { class: "muted" }, `${report.format}, ${plural(report.messages, "message")}, ${plural(first.requests, "request")}, ${first.model || "unknown model"}`)),
      table(), h("ul", { class: "legend small" }, report.policies.map((row, place) => h("li", {}, h("i", { class: `dot p-${place}` }), row.policy)), h("li", {}, h("i", { class: "dash bad" }), "usable window")), box));
    plotSizes(box);
  }

  function table() {
    const first = report.policies[0];
    return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Policies" }, h("table", { class: "wide" }, h("thead", {}, h("tr", {}, ["policy", "folds", "refused", "sent", "cost", "from cache", "facts kept"].map((title, place) => h("th", { scope: "col", class: place ? "num" : "" }, title)))),
      h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, "everything, always"), h("td", { class: "num" }, ""), h("td", { class: "num" }, first.whole > first.usable ? "does not fit" : ""), h("td", { class: "num" }, tokens(first.everything)), h("td", { class: "num" }, money(first.cost_everything)), h("td", { class: "num" }, ""), h("td", { class: "num" }, "100%")),
        report.policies.map((row) => h("tr", {}, h("th", { scope: "row" }, row.policy), h("td", { class: "num" }, whole(row.folds)), h("td", { class: "num" }, whole(row.refused)),
          h("td", { class: "num" }, `${tokens(row.sent)} (${percent(row.sent / Math.max(1, row.everything))})`),
          h("td", { class: "num" }, row.refused ? "—" : `${money(row.cost)}${row.cost_everything ? ` (${percent(row.cost / row.cost_everything)})` : ""}`),
          h("td", { class: "num" }, percent(row.read / Math.max(1, row.sent))), h("td", { class: "num" }, row.facts ? percent(row.kept / row.facts) : "—"))))));
  }

  function plotSizes(box) {
    plot?.destroy();
    const longest = report.policies[0];
    const axis = { stroke: color("--muted"), font: "12px system-ui, sans-serif", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const data = [longest.sizes.map((_, place) => place * longest.step + 1), ...report.policies.map((row) => row.sizes.map((one) => one || null)), longest.sizes.map(() => longest.usable)];
    const most = Math.max(...report.policies.flatMap((row) => row.sizes), 1);
    plot = new window.uPlot({ width: Math.max(260, box.clientWidth), height: 260, legend: { show: false }, cursor: { y: false, drag: { x: false } },
      scales: { x: { time: false }, y: { range: [0, most > longest.usable / 2 ? Math.max(most, longest.usable) * 1.06 : most * 1.1] } },
      axes: [{ ...axis, size: 30, grid: { show: false } }, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => tokens(tick, true)) }],
      series: [{}, ...report.policies.map((_, place) => ({ stroke: color(COLORS[place % COLORS.length]), width: 2, points: { show: false } })), { stroke: color("--bad"), dash: [5, 4], width: 1.5, points: { show: false } }] },
    data, put(box));
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", "Sizes of the requests under each policy");
  }

  const retheme = () => { const box = main.querySelector(".chart"); if (report && box) plotSizes(box); };
  const resize = () => { const box = main.querySelector(".chart"); if (plot && box) plot.setSize({ width: Math.max(260, box.clientWidth), height: 260 }); };
  document.addEventListener("themechange", retheme);
  addEventListener("resize", resize);
  return () => { plot?.destroy(); document.removeEventListener("themechange", retheme); removeEventListener("resize", resize); };
}
