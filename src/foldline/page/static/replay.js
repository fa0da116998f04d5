// What policies would have done with a transcript. foldline reads the transcript on this machine and does not store it.

import { get, post } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, icon, put, visible } from "./dom.js";
import { FACTS, money, percent, plural, tokens, whole } from "./format.js";
import { sessionLink, shortName } from "./sessions.js";
import { limitText, refusalText, remedyText, windowFor } from "./replay_texts.js";

const WINDOWS = [32000, 64000, 128000, 200000];
const MAX_BYTES = 60 * 1024 * 1024;
const FORMATS = { anthropic: "Anthropic Messages", openai: "OpenAI Chat Completions", "openai-responses": "OpenAI Responses", gemini: "Gemini",
  "claude-code": "Claude Code session", "stream-json": "Claude Code stream-json", codex: "Codex session", pi: "pi session", "gemini-cli": "Gemini CLI session", openhands: "OpenHands events" };
const COLORS = ["--b-history", "--b-digest", "--b-pins", "--b-tools"];
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The policies that are compared, each with what it does. */
const POLICIES = {
  balanced: "folds at 90% of the usable window, down to half of it",
  thrifty: "folds when a fold is worth its price, or when the cache has expired",
  verbatim: "never folds; a request that does not fit is refused",
};
/** The file or session, the choices and the result that are shown again after another view. */
const last = { file: null, report: null, window: "0", format: "" };

export async function showReplay(view, params, signal) {
  let plot = null;
  const where = params.session ? { owner: params.owner || "", session: params.session, branch: params.branch || "main" } : null;
  const isShown = !where || JSON.stringify(where) === JSON.stringify(last.file?.where);
  let { report, file } = isShown ? last : { report: null, file: { name: params.session, where } };
  let turn = 0;
  const note = h("div", { class: "chart-note", hidden: true, "aria-hidden": "true" });
  const field = h("input", { type: "file", id: "file", class: "hide", accept: ".json,.jsonl,.gz", onchange: () => { if (field.files[0]) open(field.files[0]); } });
  const drop = h("label", { class: "drop", for: "file",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]); } },
  icon("drop"), h("b", {}, "Drop a transcript here, or choose a file"), h("span", { class: "muted" }, "Claude Code, Codex, pi, OpenAI, Anthropic or Gemini; .json, .jsonl or .gz. Nothing leaves this machine."));
  const windowField = h("select", { id: "window", onchange: () => { if (file) run(); } }, h("option", { value: "0" }, where ? "The session's window" : "The model's window"),
    WINDOWS.map((value) => h("option", { value }, `A window of ${tokens(value, true)}`)));
  const format = h("select", { id: "format", onchange: () => { if (file) run(); } }, h("option", { value: "" }, "Detect the format"),
    Object.entries(FORMATS).map(([value, title]) => h("option", { value }, title)));
  const body = h("div", { "aria-live": "polite" });
  put(view, h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, "Replay"), h("p", { class: "muted" }, "What would each policy have sent, what would it have cost, and which facts would be lost?")),
    field, drop, h("div", { class: "tools" }, h("label", { class: "hide", for: "window" }, "Window"), windowField, h("label", { class: "hide", for: "format" }, "Format"), format), body));

  async function open(chosen) {
    if (chosen.size > MAX_BYTES) {
      showFault(body, { message: `The file has ${whole(chosen.size)} bytes`, hint: "use “foldline replay FILE” for it" });
      return;
    }
    const packed = chosen.name.endsWith(".gz");
    const stream = packed ? chosen.stream().pipeThrough(new DecompressionStream("gzip")) : chosen.stream();
    let text = "";
    try {
      text = await new Response(stream).text();
    } catch {
      showFault(body, { message: `${chosen.name} cannot be read` });
      return;
    }
    if (/[\u0000\ufffd]/.test(text.slice(0, 4096))) {
      showFault(body, { message: `${chosen.name} is not a text file`, hint: "choose a transcript in .json or .jsonl" });
      return;
    }
    file = { name: chosen.name.replace(/\.gz$/, ""), text };
    run();
  }

  async function run() {
    const mine = ++turn;
    format.hidden = Boolean(file.where);
    const names = Object.keys(POLICIES);
    const found = [];
    const used = file;
    try {
      for (const policies of names) {
        put(body, h("div", { class: "loading" }, h("p", {}, `Replaying ${used.name} with ${policies} (${found.length + 1} of ${names.length})…`), h("progress", { max: String(names.length), value: String(found.length), "aria-label": "Progress" })));
        const choice = { policies, window: Number(windowField.value) };
        found.push(await (used.where ? get("replay_session", { ...used.where, ...choice }, signal) : post("replay", { name: used.name, text: used.text, format: format.value, ...choice }, signal)));
        if (mine !== turn) return;
      }
      report = { ...found[0], policies: found.flatMap((one) => one.policies) };
      Object.assign(last, { file: used, report, window: windowField.value, format: format.value });
      draw();
    } catch (error) {
      if (mine === turn) showFault(body, error);
    }
  }

  function draw() {
    const first = report.policies[0];
    const box = h("div", { class: "chart" });
    put(body, h("section", { class: "card", "aria-label": "Result" },
      h("div", { class: "card-head" }, h("h2", {}, file.where ? h("a", { href: sessionLink(file.where) }, h("bdi", {}, visible(shortName(report.name)))) : h("bdi", {}, visible(report.name))), h("span", { class: "muted" }, `${report.format}, ${plural(report.messages, "message")}, ${plural(first.requests, "request")}, ${first.model || "unknown model"}`)),
      table(), h("p", { class: "muted small-text" }, "Facts kept: the share of the facts in folded messages that the digests show. The full text is available by recall. ", FACTS),
      refusals(),
      sendsAny() ? [legend(), samePolicies() ? h("p", { class: "muted small-text" }, "All policies send the same: their lines lie on each other.") : null, box, h("p", { class: "muted small-text" }, limitText(report.policies))]
        : h("p", { class: "empty" }, "No request fits, so there is nothing to draw.")));
    if (sendsAny()) plotSizes(box);
  }

  function legend() {
    const { usable, ceiling } = report.policies[0];
    const limits = [h("li", {}, h("i", { class: "dash bad" }), `usable window: ${tokens(usable, true)}`),
      ceiling < usable ? h("li", {}, h("i", { class: "dash bad dotted" }), `largest estimate that is sent: ${tokens(ceiling)}`) : null];
    return h("ul", { class: "legend small" }, report.policies.map((row, place) => h("li", {}, h("i", { class: `dot p-${place}` }), row.policy, sameAs(row, place))), showsLimit() ? limits : null);
  }

  /** Why requests were refused, and what would help. Policies with the same reason are named together. */
  function refusals() {
    const groups = Map.groupBy(report.policies.filter((row) => row.refused), (row) => `${row.refused} ${refusalText(row)} ${remedyText(row)}`);
    return [...groups.values()].map((rows) => refusal(rows.map((row) => row.policy).join(" and "), rows[0]));
  }

  function refusal(names, row) {
    const larger = windowFor(row, WINDOWS);
    return h("div", { class: "hint refused" }, h("p", {}, h("b", {}, `${names} refused ${whole(row.refused)} of ${plural(row.requests, "request")}. `), refusalText(row)),
      h("p", {}, remedyText(row), larger ? [" ", h("button", { class: "button small", onclick: () => { windowField.value = String(larger); run(); } }, `Replay with a window of ${tokens(larger, true)}`)] : null));
  }

  const sendsAny = () => report.policies.some((row) => row.refused < row.requests);
  const largest = () => Math.max(...report.policies.flatMap((row) => row.sizes), 1);
  const showsLimit = () => largest() > report.policies[0].usable / 2;
  const samePolicies = () => new Set(report.policies.map((row) => row.sizes.join())).size === 1;

  /** Names an earlier policy whose line hides the line of this policy. */
  function sameAs(row, place) {
    const other = report.policies.slice(0, place).find((one) => one.sizes.join() === row.sizes.join());
    return other && !samePolicies() ? ` (sends the same as ${other.policy})` : "";
  }

  /** A cell of the table. On a narrow screen, its title stands before it. */
  const cell = (title, content) => h("td", { class: "num", data: { label: title } }, content);

  function table() {
    const first = report.policies[0];
    return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Policies" }, h("table", { class: "wide" }, h("thead", {}, h("tr", {}, ["policy", "folds", "refused", "sent", "cost", "from cache", "facts kept"].map((title, place) => h("th", { scope: "col", class: place ? "num" : "" }, title)))),
      h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, "everything, always"), h("td", { class: "num" }), first.whole > first.usable ? cell("refused", "does not fit") : h("td", { class: "num" }), cell("sent", tokens(first.everything)), cell("cost", money(first.cost_everything)), h("td", { class: "num" }), cell("facts kept", "all text is sent")),
        report.recorded ? recordedRow(report.recorded) : null,
        report.policies.map((row) => h("tr", {}, h("th", { scope: "row" }, row.policy, h("div", { class: "muted small-text policy-about" }, POLICIES[row.policy] || "")), cell("folds", whole(row.folds)), cell("refused", whole(row.refused)),
          cell("sent", `${tokens(row.sent)} (${percent(row.sent / Math.max(1, row.everything))})`),
          cell("cost", row.refused ? "—" : `${money(row.cost)}${row.cost_everything ? ` (${percent(row.cost / row.cost_everything)})` : ""}`),
          cell("from cache", percent(row.read / Math.max(1, row.sent))), cell("facts kept", row.facts ? percent(row.kept / row.facts) : row.folds || row.refused ? "—" : "all text is sent"))))));
  }

  /** What was really sent. */
  function recordedRow(row) {
    const about = `as the provider reported it${row.unreported ? `, without ${plural(row.unreported, "request")} that ${row.unreported === 1 ? "has" : "have"} no token usage` : ""}; all other rows are estimates`;
    return h("tr", {}, h("th", { scope: "row" }, "as recorded", h("div", { class: "muted small-text policy-about" }, about)), cell("folds", whole(row.folds)), h("td", { class: "num" }), cell("sent", tokens(row.sent, true)), cell("cost", money(row.cost)),
      cell("from cache", percent(row.read / Math.max(1, row.sent))), cell("facts kept", row.facts ? percent(row.kept / row.facts) : row.folds ? "—" : "all text is sent"));
  }

  function plotSizes(box) {
    plot?.destroy();
    const longest = report.policies[0];
    const axis = { stroke: color("--muted"), font: "12px system-ui, sans-serif", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const data = [longest.sizes.map((_, place) => place * longest.step + 1), ...report.policies.map((row) => row.sizes.map((one) => one || null)), longest.sizes.map(() => longest.usable), longest.sizes.map(() => longest.ceiling)];
    const most = largest();
    const limit = (dash) => ({ stroke: color("--bad"), dash, width: 1.5, points: { show: false } });
    plot = new window.uPlot({ width: Math.max(260, box.clientWidth), height: 260, legend: { show: false }, cursor: { y: false, drag: { x: false } }, hooks: { setCursor: [showNote] },
      scales: { x: { time: false, range: [0.5, longest.sizes.length * longest.step + 0.5] }, y: { range: [0, showsLimit() ? Math.max(most, longest.usable) * 1.06 : most * 1.1] } },
      axes: [{ ...axis, size: 30, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => tokens(tick, true)) }],
      series: [{}, ...report.policies.map((_, place) => ({ stroke: color(COLORS[place % COLORS.length]), width: 2, points: { show: false } })), limit([5, 4]), limit(longest.ceiling < longest.usable ? [2, 3] : [5, 4])] },
    data, put(box));
    box.append(note);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", "Sizes of the requests under each policy");
  }

  /** The sizes of the request under the pointer. */
  function showNote(made) {
    const { left, idx } = made.cursor;
    note.hidden = left === undefined || left < 0 || idx === null || idx === undefined;
    if (note.hidden) return;
    put(note, h("b", {}, `Request ${whole(made.data[0][idx])}`), report.policies.map((row) => h("span", {}, `${row.policy}: ${row.sizes[idx] ? tokens(row.sizes[idx]) : "refused"}`)));
    note.style.setProperty("left", `${Math.min(Math.max(0, made.over.offsetLeft + left + 12), made.root.clientWidth - 190)}px`);
  }

  if (isShown) {
    windowField.value = last.window;
    format.value = last.format;
  }
  if (report) draw();
  else if (file) run();
  const retheme = () => { const box = view.querySelector(".chart"); if (report && box) plotSizes(box); };
  const resize = () => { const box = view.querySelector(".chart"); if (plot && box) plot.setSize({ width: Math.max(260, box.clientWidth), height: 260 }); };
  document.addEventListener("themechange", retheme);
  addEventListener("resize", resize);
  return {
    title: "foldline: replay",
    leave() { turn += 1; plot?.destroy(); document.removeEventListener("themechange", retheme); removeEventListener("resize", resize); },
  };
}
