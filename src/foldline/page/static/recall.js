// Search over everything that was ever said in the session, or in all sessions of its owner.

import { get } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, icon, put, visible, withMarks } from "./dom.js";
import { plural } from "./format.js";
import { sessionLink } from "./sessions.js";

export function recallTab(panel, context) {
  const field = h("input", { type: "search", id: "query", "aria-label": "Search what was said", placeholder: "A question, a file, an error, an id…" });
  const everywhere = h("input", { type: "checkbox", id: "everywhere" });
  const results = h("div", { class: "results", "aria-live": "polite" });
  let turn = 0;
  const form = h("form", { class: "tools", role: "search", onsubmit: (event) => { event.preventDefault(); run(); } },
    field, h("label", { class: "check" }, everywhere, "All sessions"), h("button", { class: "button primary" }, icon("search"), "Search"));
  put(panel, form, results);
  put(results, h("p", { class: "empty" }, "Nothing in this session is ever lost: search finds folded messages, too."));

  async function run() {
    const query = field.value.trim();
    if (!query) return;
    const mine = ++turn;
    put(results, h("p", { class: "loading" }, "Searching…"));
    try {
      const found = await get("recall", { ...context.where, query, everywhere: everywhere.checked });
      if (mine === turn) draw(query, found);
    } catch (error) {
      if (mine === turn) showFault(results, error);
    }
  }

  function draw(query, found) {
    const words = query.split(/[\s,;:"'()]+/).filter(Boolean);
    if (!found.results.length) {
      put(results, h("p", { class: "empty" }, found.complete ? "No message matches." : "Nothing was found, but the newest messages are not indexed yet."));
      return;
    }
    put(results, h("p", { class: "muted" }, plural(found.results.length, "passage"), ", the best first"), found.results.map((passage) => passageCard(passage, words)));
  }

  function passageCard(passage, words) {
    const cut = context.report.cut;
    const other = passage.session && passage.session !== context.where.session;
    const link = (number) => (other ? sessionLink({ ...context.where, session: passage.session, branch: "main" }, { tab: "transcript", message: number }) : context.linkTo(number));
    return h("article", { class: "card passage" },
      passage.session ? h("p", { class: "muted" }, "Session ", h("bdi", {}, visible(passage.session))) : null,
      passage.lines.map((line) => h("div", { class: "passage-line" },
        h("a", { href: link(line.message), class: "m-number" }, `#${line.message}`),
        h("span", { class: `badge r-${line.role}` }, line.role),
        !other && line.message <= cut ? h("span", { class: "chip" }, "folded") : null,
        h("pre", {}, withMarks(visible(line.text), words)))));
  }

  return {
    show(params) {
      if (params.q && params.q !== field.value) { field.value = params.q; run(); }
      else field.focus({ preventScroll: true });
    },
  };
}
