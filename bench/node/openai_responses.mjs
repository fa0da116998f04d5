// Holds a conversation with tool calls by the official SDK of OpenAI with the Responses API: streamed and not streamed.
import { createRequire } from "node:module";
const { default: OpenAI } = createRequire(process.env.NODE_MODULES + "/")("openai");
const client = new OpenAI();
const input = [{ type: "message", role: "user", content: "look around" }];
const parameters = { type: "object", properties: { command: { type: "string" } } };
const tools = [{ type: "function", name: "count", description: "Count.", strict: false, parameters }];
const options = { headers: { "x-foldline-session": "node" } };
for (let step = 0; ; step++) {
  const body = { model: "gpt-5.1", input, tools, store: false, include: ["reasoning.encrypted_content"] };
  const reply = step % 2 ? await client.responses.stream(body, options).finalResponse() : await client.responses.create(body, options);
  input.push(...reply.output.map(({ parsed_arguments, ...item }) => item.type === "message"
    ? { ...item, content: item.content.map(({ parsed, ...part }) => part) } : item));
  const calls = reply.output.filter((item) => item.type === "function_call");
  if (!calls.length) break;
  const output = Array.from({ length: 700 }, (_, number) => step * 100 + number).join("\n");
  for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output });
}
console.log(input.at(-1).content[0].text);
