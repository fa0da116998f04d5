/**
 * foldline for pi. A compaction asks no model: foldline writes the digest and keeps every message in its ledger. The
 * tool `recall` reads messages back that are no longer shown. If foldline fails, pi makes its own compaction.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

const COMMAND = process.env.FOLDLINE_COMMAND ?? "foldline";
const LIMITS = { timeout: 60_000, maxBuffer: 16 * 1024 * 1024 };

/** Run a command of foldline and return what it prints. */
async function foldline(args: string[], signal?: AbortSignal): Promise<string> {
	return (await promisify(execFile)(COMMAND, args, { ...LIMITS, signal })).stdout.trim();
}

/** The name of the session in the ledger. */
const nameOf = (ctx: ExtensionContext) => `pi-${ctx.sessionManager.getSessionId()}`;

export default function (pi: ExtensionAPI) {
	let last: Promise<unknown> = Promise.resolve();

	pi.on("session_before_compact", ({ preparation, branchEntries, signal }, ctx) => {
		// pi may end the context while foldline works, so it is read only here
		const [name, header, model, ui] = [nameOf(ctx), ctx.sessionManager.getHeader(), ctx.model, ctx.hasUI ? ctx.ui : null];
		const { firstKeptEntryId, tokensBefore } = preparation;
		const compact = async () => {
			const cut = branchEntries.findIndex((entry) => entry.id === firstKeptEntryId);
			const folder = await mkdtemp(join(tmpdir(), "foldline-"));
			const write = async (file: string, end: number) => {
				const lines = [header, ...branchEntries.slice(0, end)].filter(Boolean).map((each) => JSON.stringify(each));
				await writeFile(join(folder, file), `${lines.join("\n")}\n`, { mode: 0o600 });
				return join(folder, file);
			};
			try {
				const all = await write("all.jsonl", branchEntries.length);
				await foldline(["import", all, "--format", "pi", "--session", name], signal);
				const removed = await write("removed.jsonl", cut < 0 ? branchEntries.length : cut);
				const window = model ? ["--window", String(model.contextWindow)] : [];
				const summary = await foldline(["handoff", removed, "--to", "digest", ...window], signal);
				return { compaction: { summary, firstKeptEntryId, tokensBefore } };
			} catch (error) {
				if (!signal.aborted) ui?.notify(`foldline failed, so pi compacts: ${error}`, "warning");
				return undefined;
			} finally {
				await rm(folder, { recursive: true, force: true });
			}
		};
		// pi can begin a compaction while another one is made: the second one waits for the first
		const compaction = last.then(compact);
		last = compaction.catch(() => undefined);
		return compaction;
	});

	pi.registerTool({
		name: "recall",
		label: "Recall",
		description:
			"Read earlier messages of this conversation, also those that are no longer shown: search with a question or" +
			" keywords, or give a handle such as #120-131 to get those messages word for word. Give either query or handle.",
		parameters: {
			type: "object",
			properties: { query: { type: "string" }, handle: { type: "string" } },
			additionalProperties: false,
		} as any,
		async execute(_id: string, given: any, signal: AbortSignal | undefined, _onUpdate: unknown, ctx: ExtensionContext) {
			const wanted = given.handle ? ["--handle", String(given.handle)] : ["--", String(given.query ?? "")];
			const text = await foldline(["recall", "--session", nameOf(ctx), ...wanted], signal);
			return { content: [{ type: "text" as const, text }], details: {} };
		},
	});
}
