// Search of all messages: in one session, in all sessions of its owner, or in the whole ledger.

import { get } from "./api.js";
import { showFault } from "./dialogs.js";
import { h, icon, put, queryPattern, visible, withMarks } from "./dom.js";
import { plural, whole } from "./format.js";
import { badge, removedChip } from "./message_view.js";
import { sessionLink } from "./sessions.js";

const FIRST = 10;
const STATES = { related: "related", near: "near a match" };

/** Whether a line has words of the query (`match`), was found for its meaning (`related`), or is only near such a line (`near`). */
function stateOf(line, pattern) {
  if (!line.match) return "near";
  return visible(line.text).search(pattern) >= 0 ? "match" : "related";
}

/** The label of a message that is no longer in the request; null if it is. */
function placeChip(line) {
  if (line.removed) return removedChip(line);
  return line.folded ? h("span", { class: "chip", title: "It is no longer in the request: a fold removed it" }, "folded") : null;
}

/** A search form with its results. `ask(query, results)` calls the API, `remember(query)` puts the query into the address,
 * `link(passage, number, query)` is the address of a message, `every(query)` the address of all places of a text, `options` are further fields of the form. */
function searchPanel(panel, { ask, remember, link, every = null, options = null, hint }) {
  const field = h("input", { type: "search", id: "query", "aria-label": "Search what was said", placeholder: "A question, a file, an error, an id…" });
  const results = h("div", { class: "results", "aria-live": "polite" });
  let turn = 0;
  put(panel, h("form", { class: "tools", role: "search", onsubmit: (event) => { event.preventDefault(); run(); } },
    field, options, h("button", { class: "button primary" }, icon("search"), "Search")), results);
  put(results, h("p", { class: "empty" }, hint));

  async function run(count = FIRST) {
    const query = field.value.trim();
    if (!query) return;
    const mine = ++turn;
    remember(query);
    if (count === FIRST) put(results, h("p", { class: "loading" }, "Searching…"));
    try {
      const found = await ask(query, count);
      if (mine === turn) draw(query, found);
    } catch (error) {
      if (mine === turn) showFault(results, error);
    }
  }

  function draw(query, found) {
    const pattern = queryPattern(query);
    const shown = found.results.length;
    if (!shown) {
      put(results, h("p", { class: "empty" }, found.complete ? "No message matches." : "Nothing was found, but the newest messages are not indexed yet."));
      return;
    }
    const counts = { match: 0, related: 0, near: 0 };
    for (const line of found.results.flatMap((passage) => passage.lines)) counts[stateOf(line, pattern)] += 1;
    const parts = [`${plural(counts.match, "message")} with words of the search`, counts.related ? `${whole(counts.related)} related` : "", counts.near ? `${whole(counts.near)} near a match` : ""].filter(Boolean);
    const more = found.has_more ? h("button", { class: "button", onclick: () => run(shown + 2 * FIRST) }, "Show more") : null;
    put(results, h("p", { class: "muted" }, `${found.has_more ? "The first " : ""}${plural(shown, "passage")}, the best first: ${parts.join(", ")}. `,
      found.has_more ? "The list is cut: show more below. " : "", every ? h("a", { href: every(query) }, `Find every place of “${query}”`) : null),
      found.results.map((passage) => passageCard(passage, pattern, query)), more ? h("div", { class: "row" }, more) : null);
  }

  function passageCard(passage, pattern, query) {
    return h("article", { class: "card passage" },
      passage.session ? h("p", { class: "muted" }, "Session ", h("bdi", {}, visible(passage.session))) : null,
      passage.lines.map((line) => h("div", { class: line.match ? "passage-line" : "passage-line near", onclick: (event) => {
        if (!event.target.closest("a, details") && !String(getSelection())) location.hash = link(passage, line.message, query);
      } },
      h("a", { href: link(passage, line.message, query), class: "m-number" }, `#${line.message}`),
      badge(line.author || line.role),
      h("span", {}, placeChip(line), stateOf(line, pattern) === "match" ? null : h("span", { class: "chip" }, STATES[stateOf(line, pattern)])),
      line.match ? h("pre", {}, withMarks(visible(line.text), pattern))
        : h("details", {}, h("summary", {}, h("span", { class: "near-text" }, visible(line.text.slice(0, 120)))), h("pre", {}, visible(line.text))))));
  }

  return {
    show(query) {
      if (!query || (query === field.value && results.childElementCount > 1)) return;
      field.value = query;
      run();
    },
  };
}

const linkTo = (session, number, query) => sessionLink(session, { tab: "transcript", message: number, find: query });

/** The tab Recall of a session. */
export function recallTab(panel, context) {
  const everywhere = h("input", { type: "checkbox", id: "everywhere" });
  const search = searchPanel(panel, {
    ask: (query, results) => get("recall", { ...context.where, query, results, everywhere: everywhere.checked }),
    remember: (query) => context.remember({ tab: "recall", q: query, ...(everywhere.checked ? { all: 1 } : {}) }),
    link: (passage, number, query) => (passage.session && passage.session !== context.where.session
      ? linkTo({ ...context.where, session: passage.session, branch: "main" }, number, query) : context.linkTo(number, query)),
    every: (query) => context.link({ tab: "transcript", find: query }),
    options: h("label", { class: "check" }, everywhere, "All sessions"),
    hint: "Nothing in this session is ever lost: search finds folded messages, too.",
  });
  return {
    show(params) {
      if (params.q) everywhere.checked = Boolean(params.all);
      search.show(params.q);
    },
  };
}

/** The search of all sessions in the ledger. */
export async function showSearch(view, params) {
  const panel = h("div", {});
  put(view, h("div", { class: "page" }, h("div", { class: "crumbs" }, h("a", { href: "#/" }, "Sessions"), " /"), h("div", { class: "page-head" }, h("h1", {}, "Search all messages")), panel));
  const search = searchPanel(panel, {
    ask: (query, results) => get("search", { query, results }),
    remember: (query) => history.replaceState(null, "", `#/search?${new URLSearchParams({ q: query })}`),
    link: (passage, number, query) => linkTo({ owner: passage.owner, session: passage.session, branch: "main" }, number, query),
    hint: "The search finds messages in all sessions of the ledger, also folded ones.",
  });
  search.show(params.q);
  return { title: "foldline: search", go: (next) => search.show(next.q) };
}
