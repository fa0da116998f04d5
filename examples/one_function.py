"""Shorten a list of messages so that it fits a window, with one function."""

from foldline.compat.context_policy import ContextWindowPolicy, transform

messages = [{"role": "system", "content": "Be brief."}]
for number in range(200):
    messages.append({"role": "user", "content": f"Question {number}: what is in part {number}?"})
    messages.append({"role": "assistant", "content": f"Part {number} holds: " + "item " * 200})

policy = ContextWindowPolicy(max_context_tokens=20_000, max_output_tokens=4_000)
fitting = transform(messages, policy)
few = messages[:5]
print(f"{len(messages)} messages in, {len(fitting)} out, the newest unchanged: {fitting[-1] is messages[-1]}")
print(f"a list that fits is returned as the same object: {transform(few, policy) is few}")
