// Holds a conversation with tool calls by the official SDK of Anthropic: streamed and not streamed in turn.
import { createRequire } from "node:module";
const { default: Anthropic } = createRequire(process.env.NODE_MODULES + "/")("@anthropic-ai/sdk");
const client = new Anthropic();
const messages = [{ role: "user", content: "look around" }];
const schema = { type: "object", properties: { command: { type: "string" } } };
const tools = [{ name: "count", description: "Count.", input_schema: schema }];
const options = { headers: { "x-foldline-session": "node" } };
for (let step = 0; ; step++) {
  const body = { model: "claude-sonnet-4-5", max_tokens: 1000, messages, tools };
  const reply = step % 2 ? await client.messages.stream(body, options).finalMessage() : await client.messages.create(body, options);
  messages.push({ role: "assistant", content: reply.content });
  const calls = reply.content.filter((block) => block.type === "tool_use");
  if (!calls.length) break;
  const text = Array.from({ length: 700 }, (_, number) => step * 100 + number).join("\n");
  messages.push({ role: "user", content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: text })) });
}
console.log(messages.at(-1).content.at(-1).text);
