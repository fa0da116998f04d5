// One session: its head with the meter, and four tabs.

import { get, watch } from "./api.js";
import { h, put, visible } from "./dom.js";
import { plural, tokens, whole } from "./format.js";
import { showFault } from "./dialogs.js";
import { foldsTab } from "./folds.js";
import { meter } from "./meter.js";
import { recallTab } from "./recall.js";
import { sessionLink, shortName, stateChip } from "./sessions.js";
import { transcriptTab } from "./transcript.js";
import { windowTab } from "./window_tab.js";

const TABS = { window: "Window", transcript: "Transcript", folds: "Folds", recall: "Recall" };
const BUILD = { window: windowTab, transcript: transcriptTab, folds: foldsTab, recall: recallTab };

const UNMEASURED = { is_measured: false, tokens: 0, usable: 1, exact: false, states: [], marks: [], blocks: [], reason: "", notice: "", assumption: "", refusal: null };

export async function showSession(view, params, signal) {
  const where = { owner: params.owner || "", session: params.session || "", branch: params.branch || "main" };
  let report = { ...UNMEASURED, ...(await get("outline", where, signal)) };
  const context = {
    where,
    get report() { return report; },
    link: (extra) => sessionLink(where, extra),
    linkTo: (number, find = "") => sessionLink(where, { tab: "transcript", message: number, ...(find ? { find } : {}) }),
    /** Puts the state of a view into the address, so that going back and reloading show it again. */
    remember: (extra) => history.replaceState(null, "", sessionLink(where, extra)),
    /** Shows at once that a message is pinned (`name`) or no longer pinned (""). `copy` is the number of the pinned copy of a folded message. `isRemoved` says that the message left the request with its pin. */
    showPin: (...change) => { for (const one of Object.values(views)) one.showPin?.(...change); },
    refresh: async () => changed(await get("session", where)),
  };
  let parent = "";
  let left = false;
  const panels = {};
  const views = {};
  const head = h("div", { class: "session-head" });
  const links = {};
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the session", onkeydown: arrowKeys });
  for (const [name, title] of Object.entries(TABS)) {
    links[name] = h("a", { role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, href: context.link({ tab: name }) }, title);
    tabs.append(links[name]);
    panels[name] = h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: `panel panel-${name}`, hidden: true });
  }
  put(view, h("div", { class: "page session-page" }, head, tabs, Object.values(panels)));

  function drawHead() {
    const branches = report.branches.length > 1 ? h("select", { "aria-label": "Branch",
      onchange: (event) => { location.hash = sessionLink({ ...where, branch: event.target.value }); } },
    report.branches.map((name) => h("option", { value: name, selected: name === where.branch }, name))) : null;
    put(head,
      h("div", { class: "crumbs" }, h("a", { href: "#/" }, "Sessions"), " / ", parent ? [h("a", { href: sessionLink({ ...where, session: parent, branch: "main" }) }, h("bdi", {}, visible(shortName(parent)))), " / "] : null),
      h("h1", { title: where.session }, h("bdi", {}, visible(shortName(where.session)))),
      h("div", { class: "head-facts muted" }, h("span", {}, report.model || "model not known"), h("span", {}, `${whole(report.messages - report.removed.length)} messages`, report.removed.length ? `, ${plural(report.removed.length, "removed note")}` : ""),
        branches, report.can_change ? null : h("span", { class: "chip" }, "read-only"),
        report.states.map(stateChip),
        h("a", { class: "button small", href: `#/replay?${new URLSearchParams(where)}`, title: "What other policies would have sent, and what that would have cost" }, "Replay")),
      h("div", { class: "head-meter" }, !report.is_measured ? h("span", { class: "muted" }, "Measuring…") : [meter(report), h("span", { class: "figures" },
        h("b", {}, tokens(report.tokens, report.exact)), ` of ${tokens(report.usable, true)} usable`)]));
  }

  function changed(value) {
    const before = report;
    report = { ...value, is_measured: true };
    drawHead();
    for (const one of Object.values(views)) one.update?.(before);
  }

  function go(next) {
    const name = Object.hasOwn(TABS, next.tab) ? next.tab : "window";
    for (const [key, tab] of Object.entries(links)) {
      tab.setAttribute("aria-selected", String(key === name));
      tab.tabIndex = key === name ? 0 : -1;
      panels[key].hidden = key !== name;
    }
    if (!views[name]) {
      try {
        views[name] = BUILD[name](panels[name], context);
      } catch (error) {
        showFault(panels[name], error);
        throw error;
      }
    }
    views[name].show?.(next);
  }

  drawHead();
  go(params);
  const showTree = (tree) => {
    if (left) return;
    parent = tree.sessions.find((row) => row.session === where.session)?.parent || "";
    context.tree = tree;
    drawHead();
    for (const one of Object.values(views)) one.drawTree?.(tree);
  };
  let stop = () => {};
  const measure = async () => {
    try {
      const found = await get("session", where);
      if (left) return;
      changed(found);
      get("tree", where).then(showTree).catch(() => {});
      stop = watch("session", where, found.version, changed);
    } catch (error) {
      if (!left) put(head.querySelector(".head-meter"), h("span", { class: "fault" }, error.message));
    }
  };
  setTimeout(measure, params.tab === "transcript" ? 250 : 0); // the rows come first
  return {
    title: `${where.session}: foldline`, go,
    leave() { left = true; stop(); for (const one of Object.values(views)) one.leave?.(); },
  };
}

function arrowKeys(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...event.currentTarget.querySelectorAll("[role=tab]")];
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.click();
  next.focus();
}
