// Chooses the view for the address, and keeps the frame around it: navigation, title, theme, messages.
//
// A view is a function of an element of its own, the parameters in the address, and a signal that aborts its calls when the
// view is left. It returns { title, go, leave }: the title of the document; optionally a function for new parameters of the
// same view, and a function that ends the view.

import { ApiError, get, hasToken, setToken, takeToken } from "./api.js";
import { h, icon, put } from "./dom.js";
import { showMoney } from "./money.js";
import { showSearch } from "./recall.js";
import { showReplay } from "./replay.js";
import { showSession } from "./session.js";
import { showSessions } from "./sessions.js";

const main = document.getElementById("main");
const VIEWS = { sessions: showSessions, search: showSearch, session: showSession, money: showMoney, replay: showReplay };
let shown = null; // the view in sight: { title, go, leave }
let current = "";
let visit = new AbortController(); // aborted when another view begins

/** The view and its parameters in the address: `#/session?session=…`. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const page = path || "sessions";
  return { page, params: Object.fromEntries(new URLSearchParams(query || "")) };
}

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return; // the link to the content
  const { page, params } = place();
  const key = page === "session" ? `${page} ${params.owner} ${params.session} ${params.branch}` : page;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.page === page || (["session", "search"].includes(page) && link.dataset.page === "sessions");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (key === current && shown?.go) {
    shown.go(params);
    return;
  }
  visit.abort();
  shown?.leave?.();
  shown = null;
  current = key;
  const { signal } = visit = new AbortController();
  const box = put(h("div"), h("p", { class: "loading" }, "Loading…"));
  put(main, box); // a view that was left can only change its own element, which is no longer shown
  try {
    if (!Object.hasOwn(VIEWS, page)) throw new ApiError(404, `There is no view “${page}”`, "choose a view above");
    const made = await VIEWS[page](box, params, signal);
    if (signal.aborted) {
      made.leave?.();
      return;
    }
    shown = made;
    document.title = made.title;
  } catch (error) {
    if (signal.aborted) return;
    current = "";
    showError(error);
  }
}

function showError(error) {
  if (error instanceof ApiError && error.status === 401) {
    askForToken(hasToken());
    return;
  }
  if (!(error instanceof ApiError)) console.error(error);
  put(main, h("section", { class: "card notice" },
    h("h1", {}, "This cannot be shown"),
    h("p", {}, error.message, error.hint ? `: ${error.hint}` : ""),
    h("button", { class: "button", onclick: show }, "Try again")));
}

/** Asks for the token. `isWrong` says that a token was given, and was refused. */
function askForToken(isWrong) {
  const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const form = h("form", {
    class: "card notice",
    onsubmit: (event) => {
      event.preventDefault();
      setToken(field.value);
      current = "";
      show();
    },
  }, h("h1", {}, "Token"), h("label", { for: "token" }, "This page needs the token that foldline was started with."),
  isWrong ? h("p", { class: "fault", role: "alert" }, "This token was refused.") : null,
  h("div", { class: "row" }, field, h("button", { class: "button primary" }, "Open")));
  put(main, form);
  field.focus();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  put(button, icon(theme === "dark" ? "sun" : "moon"));
  document.dispatchEvent(new Event("themechange"));
}

document.getElementById("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("foldline-theme", next);
  setTheme(next);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  if (!localStorage.getItem("foldline-theme")) setTheme(event.matches ? "dark" : "light");
});

document.addEventListener("wheel", () => { // the wheel scrolls the page; it does not change a number
  if (document.activeElement?.type === "number") document.activeElement.blur();
}, { passive: true, capture: true });

takeToken();
setTheme(document.documentElement.dataset.theme);
addEventListener("hashchange", show);
show();
get("status").then((status) => {
  put(document.getElementById("place"), status.ledger ? h("span", { title: status.ledger }, status.ledger) : "");
}).catch(() => {});
