// What the replay view says about its limits, and about requests that a policy refused.

import { percent, tokens } from "./format.js";
import { BLOCKS } from "./meter.js";

const FIXED = ["system", "tools", "memory", "hidden"];
const NAMES = { ...BLOCKS, hidden: "system prompt and tools that are not in the file" };

/** What the usable window is, and why the largest estimate that is sent is smaller. */
export function limitText(rows) {
  const [{ window, usable, ceiling }] = rows;
  const reply = `The usable window is the window of ${tokens(window, true)} minus ${tokens(window - usable, true)} for the reply.`;
  if (ceiling >= usable) return reply;
  const margin = percent(usable / ceiling - 1);
  const folds = rows.filter((row) => row.folds_at && row.folds_at < row.ceiling);
  const early = folds.length ? ` For the same reason, ${folds.map((row) => `${row.policy} folds at ${tokens(row.folds_at)}`).join(", and ")} at the latest.` : "";
  return `${reply} All sizes here are estimates, and the provider may count up to ${margin} more. So a request is sent only if its estimate plus ${margin} fits: up to ${tokens(ceiling)}.${early} In a live session, the margin is smaller as soon as replies report the size of their requests.`;
}

/** Why the largest refused request does not fit. */
export function refusalText(row) {
  const { margin = 0, ...parts } = row.refused_parts;
  if ("media" in parts) return `The largest of these requests: ${row.refusal.split(" (")[0]}.`;
  const size = Object.values(parts).reduce((sum, one) => sum + one, 0);
  const counted = `${tokens(size)} tokens${margin ? ` (${tokens(size + margin)} with the margin of an estimate)` : ""}`;
  const first = row.folds_at ? `Even after everything is folded that a fold may remove, the largest of these requests has ${counted}.`
    : `It does not fold, so all messages must fit. The largest of these requests has ${counted}.`;
  return `${first} The usable window is ${tokens(row.usable, true)}. ${aloneText(row, parts)} ${partsText(parts)}`;
}

/** The part that alone is larger than the window; "" if there is none. */
function aloneText(row, parts) {
  const fixed = FIXED.filter((name) => parts[name]);
  const size = fixed.reduce((sum, name) => sum + parts[name], 0);
  if (size > row.ceiling) return `No fold can remove the ${fixed.map((name) => NAMES[name].toLowerCase()).join(", ")}: ${tokens(size)}, which alone is too large.`;
  if (row.largest_message_tokens > row.ceiling) return `Message #${row.largest_message} alone is too large: ${tokens(row.largest_message_tokens)}.`;
  return row.folds_at ? "No part alone is too large, but their sum is." : "";
}

function partsText(parts) {
  const sorted = Object.entries(parts).filter(([, size]) => size).sort(([, one], [, other]) => other - one);
  return `Its parts: ${sorted.map(([name, size]) => `${(NAMES[name] || name).toLowerCase()} ${tokens(size)}`).join(", ")}.`;
}

/** What would make the largest refused request fit. */
export function remedyText(row) {
  const help = row.remedy.replace(/^this policy never folds: /, "").replace("raise window_tokens to", "choose a window of at least")
    .replace(/use Policy\.preset\("balanced"\)\.but\([^)]*\)/, "use a policy that folds, such as balanced")
    .replace("shorten the hidden part (the system prompt and tools that are in no message)", "use fewer or shorter tools");
  return `What would help: ${help}.`;
}

/** The smallest of some windows in which the largest refused request fits; undefined if there is none. */
export function windowFor(row, windows) {
  const size = "media" in row.refused_parts ? Infinity : Object.values(row.refused_parts).reduce((sum, one) => sum + one, 0);
  return windows.find((one) => one > row.window && one * row.usable / row.window >= size);
}
