// Holds a conversation with tool calls by the official SDK of OpenAI with Chat Completions: streamed and not streamed.
import { createRequire } from "node:module";
const { default: OpenAI } = createRequire(process.env.NODE_MODULES + "/")("openai");
const client = new OpenAI();
const messages = [{ role: "user", content: "look around" }];
const parameters = { type: "object", properties: { command: { type: "string" } } };
const tools = [{ type: "function", function: { name: "count", description: "Count.", parameters } }];
const options = { headers: { "x-foldline-session": "node" } };
for (let step = 0; ; step++) {
  const body = { model: "gpt-5.1", messages, tools };
  const reply = step % 2
    ? await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }, options).finalChatCompletion()
    : await client.chat.completions.create(body, options);
  const { role, content, tool_calls } = reply.choices[0].message;
  messages.push({ role, content, ...(tool_calls?.length ? { tool_calls: tool_calls.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } })) } : {}) });
  if (!tool_calls?.length) break;
  const text = Array.from({ length: 700 }, (_, number) => step * 100 + number).join("\n");
  for (const { id } of tool_calls) messages.push({ role: "tool", tool_call_id: id, content: text });
}
console.log(messages.at(-1).content);
