// Calls of the page's own API. Every address is relative, so the page works below any path.

const TOKEN = "foldline-token";

/** Moves the token from the address (#token=…) to the storage of the tab. */
export function takeToken() {
  const found = /[#&]token=([^&]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]));
  history.replaceState(null, "", `${location.pathname}#/`);
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** Whether calls are sent with a token. */
export const hasToken = () => Boolean(sessionStorage.getItem(TOKEN));

export class ApiError extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint || "";
  }
}

function headers(extra = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}`, ...extra } : extra;
}

async function answer(response) {
  let value = null;
  try {
    value = await response.json();
  } catch {
    throw new ApiError(response.status, "the server gave no answer", "is foldline still running?");
  }
  if (!response.ok) throw new ApiError(response.status, value.error || `status ${response.status}`, value.hint);
  return value;
}

async function send(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "foldline cannot be reached", "is it still running?");
  }
}

export async function get(path, params = {}, signal = undefined) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== undefined));
  return answer(await send(`api/${path}?${query}`, { headers: headers(), signal }));
}

export async function post(path, body, signal = undefined) {
  const extra = { "Content-Type": "application/json", "X-Foldline": "1" };
  return answer(await send(`api/${path}`, { method: "POST", headers: headers(extra), body: JSON.stringify(body), signal }));
}

/** Asks again every second while the tab is visible, and calls `changed` with each new version. Returns a stop function. */
export function watch(path, params, version, changed) {
  let known = version;
  let stopped = false;
  const query = new URLSearchParams(params);
  async function ask() {
    if (stopped) return;
    if (!document.hidden) {
      try {
        const response = await send(`api/${path}?${query}`, { headers: headers({ "If-None-Match": `"${known}"` }) });
        if (!stopped && response.status === 200) {
          const value = await response.json();
          if (value.version !== known) {
            known = value.version;
            changed(value);
          }
        }
        document.body.classList.remove("offline");
      } catch {
        document.body.classList.add("offline");
      }
    }
    if (!stopped) setTimeout(ask, document.body.classList.contains("offline") ? 5000 : 1000);
  }
  setTimeout(ask, 1000);
  return () => { stopped = true; };
}
