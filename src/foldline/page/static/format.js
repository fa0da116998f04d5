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

export const whole = (number) => number.toLocaleString("en");
export const percent = (share) => `${Math.round(share * 100)}%`;

export function money(dollars) {
  if (dollars === null || dollars === undefined) return "—";
  const size = Math.abs(dollars);
  const digits = size >= 1 || size === 0 ? 2 : size >= 0.01 ? 3 : 4;
  return `${dollars < 0 ? "−" : ""}$${size.toFixed(digits)}`;
}

export function plural(count, noun) {
  return `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A time: relative if it is recent, else a date. */
export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
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
