// The list of sessions, with search, filter, meters and states. It is updated when the ledger changes.

import { get, watch } from "./api.js";
import { h, icon, put, visible } from "./dom.js";
import { ago, money, ownFolds, plural, savingText, tokens, whole } from "./format.js";
import { meter } from "./meter.js";

export const HELD_OUT = "“foldline serve --holdout” never folds this session. The money view compares the other sessions with it";
const STATES = {
  "held out": HELD_OUT,
  folding: "A fold is being made in the background", full: "The request does not fit: the next request must fold", "fold due": "The next request folds",
  warned: "The size is above the policy's warning", "breaker open": "Folds failed repeatedly; foldline waits before it tries again",
  "cold cache": "The provider's prompt cache has expired: the next request pays for all its tokens again, so a fold now costs nothing extra",
};

/** The label of a session's state. Its tooltip explains the state. */
export const stateChip = (state) => h("span", { class: `chip s-${state.replace(/ /g, "-")}`, title: STATES[state] || null }, state);

/** The address of a session. */
export function sessionLink(row, extra = {}) {
  const query = new URLSearchParams({ owner: row.owner, session: row.session, branch: row.branch || "main", ...extra });
  return `#/session?${query}`;
}

export async function showSessions(view, params, signal) {
  let rows = [];
  let others = 0;
  let left = false;
  let queue = Promise.resolve();
  const summaries = new Map();
  const search = h("input", { type: "search", id: "find", placeholder: "Find a session or a model", "aria-label": "Find a session or a model", oninput: () => draw() });
  const inMessages = h("a", { href: "#/search", class: "search-link" });
  const filter = h("select", { "aria-label": "Show", onchange: () => draw() },
    h("option", { value: "" }, "All sessions"), h("option", { value: "ledger" }, "In the ledger"),
    h("option", { value: "file" }, "Session files"), Object.keys(STATES).map((state) => h("option", { value: state }, `State: ${state}`)));
  const count = h("p", { class: "muted", "aria-live": "polite" });
  const list = h("ul", { class: "session-list" });
  const hidden = h("p", { class: "hint" });
  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { sight.unobserve(entry.target); load(entry.target); }
  }, { rootMargin: "200px" });

  async function load(node) {
    const row = rows.find((one) => keyOf(one) === node.dataset.key);
    if (!row || (row.source === "file" && row.messages === null)) return;
    const version = `${row.last_at} ${row.messages} ${row.folds}`;
    if (summaries.get(keyOf(row))?.from === version) return;
    try {
      const summary = await get("summary", { owner: row.owner, session: row.session });
      summaries.set(keyOf(row), { ...summary, from: version });
      fillRow(node, row, summary);
      queue = queue.then(() => loadTotals(row, version));
    } catch (error) {
      node.querySelector(".session-meter").textContent = error.message;
    }
  }

  async function loadTotals(row, version) {
    if (left) return;
    const found = await get("totals", { owner: row.owner, session: row.session }).catch(() => null);
    const summary = summaries.get(keyOf(row));
    if (!found || left || summary?.from !== version) return;
    summary.totals = found;
    const node = [...list.children].find((one) => one.dataset.key === keyOf(row));
    if (node) fillRow(node, row, summary);
  }

  function wanted(row) {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const summary = summaries.get(keyOf(row));
    const text = `${row.session} ${row.owner} ${summary?.model || ""}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) return false;
    if (["ledger", "file"].includes(filter.value)) return row.source === filter.value;
    return !filter.value || (summary?.states || []).includes(filter.value);
  }

  function draw() {
    const names = new Set(rows.map((row) => `${row.owner} ${row.session}`));
    const shown = rows.filter(wanted);
    const tops = shown.filter((row) => !row.parent || !names.has(`${row.owner} ${row.parent}`) || !shown.some((one) => one.owner === row.owner && one.session === row.parent));
    const query = search.value.trim();
    inMessages.href = query ? `#/search?${new URLSearchParams({ q: query })}` : "#/search";
    put(inMessages, icon("search"), query ? `Search all messages for “${query}”` : "Search all messages");
    put(count, shown.length === rows.length ? plural(rows.length, "session") : `${whole(shown.length)} of ${plural(rows.length, "session")}`);
    const nodes = tops.flatMap((row) => withChildren(row, shown, 0)).map(([row, depth]) => sessionRow(row, depth));
    put(list, nodes.length ? nodes : h("li", { class: "empty" }, rows.length ? "No session matches." : others ? "None of the sessions in this ledger is shown." : emptyText()));
    put(hidden, others ? othersText(others) : "");
    hidden.hidden = !others;
    for (const node of nodes) sight.observe(node);
  }

  function sessionRow(row, depth) {
    const node = h("li", { class: depth ? "session child" : "session", css: { "--depth": depth }, data: { key: keyOf(row) } },
      h("a", { href: sessionLink(row), class: "session-link" },
        h("span", { class: "session-name" }, h("bdi", {}, visible(shortName(row.session))), row.source === "file" ? h("span", { class: "chip" }, "file, read-only") : null,
          depth ? h("span", { class: "chip" }, row.session.includes("/") ? "sub-agent" : "further conversation") : null,
          row.is_busy ? h("span", { class: "chip live" }, "answering") : null),
        h("span", { class: "session-facts muted" }, factsOf(row))),
      h("div", { class: "session-money" }), h("div", { class: "session-meter" }), h("div", { class: "session-states" }));
    const summary = summaries.get(keyOf(row));
    if (summary) fillRow(node, row, summary);
    return node;
  }

  function fillRow(node, row, summary) {
    put(node.querySelector(".session-meter"), meter(summary),
      h("span", { class: "figures" }, `${tokens(summary.tokens, summary.exact)} of ${tokens(summary.usable, true)}`));
    put(node.querySelector(".session-states"), summary.states.map(stateChip));
    const totals = summary.totals;
    const saved = savedOf(totals);
    const cost = totals && totals.cost.usd !== null ? `${money(totals.cost.usd)}` : "";
    put(node.querySelector(".session-facts"), summary.model ? `${summary.model} · ` : "", totals ? `${plural(totals.requests, "request")} · ` : "", factsOf(row, ownFolds(summary), summary.compactions), summary.last_fold_at ? ` · last fold ${ago(summary.last_fold_at)}` : "");
    put(node.querySelector(".session-money"), cost ? h("b", {}, cost) : null, saved ? h("span", { class: saved.style, title: saved.title }, saved.text) : null);
  }

  const answer = await get("sessions", {}, signal);
  ({ sessions: rows, of_other_owners: others } = answer);
  put(view, h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, "Sessions"), count),
    h("div", { class: "tools", role: "search" }, search, filter, inMessages), list, hidden));
  draw();
  const stop = watch("sessions", {}, answer.version, (value) => { ({ sessions: rows, of_other_owners: others } = value); draw(); });
  return { title: "foldline: sessions", leave() { left = true; stop(); sight.disconnect(); } };
}

/** What the folds of a session saved or cost in addition, for its row; null if nothing was folded. */
function savedOf(totals) {
  if (!totals || totals.saving.tokens <= 0) return null;
  const { tokens: left, money: usd, from_receipts: isMeasured } = totals.saving;
  if (usd === null) return { text: `saved ${tokens(left)} tokens`, style: "saved" };
  return { ...savingText({ usd, isEstimate: !isMeasured }), title: usd < 0 ? "Compared with requests without folds: a fold makes the provider write its cache again" : null };
}

/** A session and those that belong to it, each with its depth. */
function withChildren(row, shown, depth) {
  const own = shown.filter((one) => one !== row && one.owner === row.owner && one.parent === row.session);
  return [[row, depth], ...own.flatMap((one) => withChildren(one, shown, depth + 1))];
}

const keyOf = (row) => `${row.owner}\n${row.session}`;
const emptyText = () => "There are no sessions yet. Add one with “foldline import FILE”, or run an agent through “foldline serve”.";

/** How many sessions of the ledger are not shown, and how to see them. */
export const othersText = (count) => `${plural(count, "session")} of other owners ${count === 1 ? "is" : "are"} not shown. “foldline serve” records each conversation under an owner that stands for the client's API key. To see ${count === 1 ? "it" : "them"}, start the page with “foldline page --all-owners”.`;

/** A name without the folders of a session file. */
export const shortName = (name) => (name.startsWith("/") ? name.split("/").slice(-2).join("/") : name);

function factsOf(row, folds = 0, compactions = []) {
  const facts = [row.messages === null ? "not opened yet" : plural(row.messages, "message")];
  if (folds) facts.push(plural(folds, "fold"));
  facts.push(...compactions.map((one) => `${whole(one.messages)} compacted by the ${one.by}`));
  if (row.branches.length > 1) facts.push(plural(row.branches.length, "branch", "branches"));
  facts.push(ago(row.last_at));
  return facts.join(" · ");
}
