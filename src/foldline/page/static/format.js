// Numbers, sizes, money and times as text.

/** A size as the commands print it: 812, 9.5k, 77k, 1.2M; an estimate starts with ~. */
export function tokens(count, exact = false) {
  const sign = exact ? "" : "~";
  if (Math.abs(count) < 1000) return `${sign}${count}`;
  for (const [unit, size] of [["k", 1e3], ["M", 1e6]]) {
    for (const [digits, below] of [[1, 10], [0, 1000]]) {
      const shown = Number((count / size).toFixed(digits));
      if (Math.abs(shown) < below) return `${sign}${shown.toFixed(digits).replace(/\.0$/, "")}${unit}`;
    }
  }
  return `${sign}${Math.round(count / 1e6).toLocaleString("en")}M`;
}

/** What a loss report counts. */
export const FACTS = "A fact is a request, a changed file, a failed command, an error, or a name, value, path or number. Of the names, paths and numbers, only the 150 that are most likely to be needed again are counted. All other text is not counted.";

const WRITERS = {
  local: "foldline itself, on this machine: it takes the facts from the messages and asks no model",
  marker: "No digest: a short text says which messages left the request",
  hand: "A person wrote or edited it",
};

/** Why a fold costs nothing, by the state of the provider's prompt cache. */
export const NO_REWRITE = {
  expired: "the cache has expired", none: "the provider reports no cache", warm: "cached tokens cost as much as others",
  unsent: "no request was sent since the last fold, and the next one writes the cache again in any case",
};

/** What the writer of a digest is. */
export const writerOf = (by) => WRITERS[by] || "The model that wrote the digest";

/** The number of folds that foldline made. The others are compactions by the agent, its client or its provider. */
export const ownFolds = (report) => report.folds - report.compactions.reduce((sum, one) => sum + one.folds, 0);

export const whole = (number) => number.toLocaleString("en");
export const percent = (share) => `${Math.round(share * 100)}%`;

export function money(dollars) {
  if (dollars === null || dollars === undefined) return "—";
  const size = Math.abs(dollars);
  const digits = size >= 1 || size === 0 ? 2 : size >= 0.01 ? 3 : 4;
  return `${dollars < 0 ? "−" : ""}$${size.toFixed(digits)}`;
}

/** What folds saved, or what they cost in addition: the word before the amount, the amount, and the class for its colour. */
export function savingText({ usd, isEstimate }) {
  const amount = `${isEstimate ? "~" : ""}${money(Math.abs(usd))}`;
  return usd < 0 ? { text: `cost ${amount} more`, name: "Folds cost more than they saved", amount, style: "lost" }
    : { text: `saved ${amount}`, name: "Saved by folds, net", amount, style: "saved" };
}

export function plural(count, noun, many = `${noun}s`) {
  return `${whole(count)} ${count === 1 ? noun : many}`;
}

/** A time: relative if it is recent, else a date. A time in the future, from another clock, is shown with its date. */
export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  if (past < -50) return moment(seconds);
  if (past < 50) return "now";
  if (past < 3600) return `${Math.round(past / 60)} min ago`;
  if (past < 86400) return `${Math.round(past / 3600)} h ago`;
  if (past < 7 * 86400) return `${Math.round(past / 86400)} d ago`;
  return new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

export function moment(seconds) {
  if (!seconds) return "";
  return new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
