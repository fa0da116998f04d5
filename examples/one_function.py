"""List in, list out: a conversation that does not fit becomes one that does, whatever the messages are."""

from foldline.compat.context_policy import ContextWindowPolicy, transform

messages = [{"role": "system", "content": "Be brief."}]
for number in range(200):
    messages.append({"role": "user", "content": f"Question {number}: what is in part {number}?"})
    messages.append({"role": "assistant", "content": f"Part {number} holds: " + "item " * 200})

policy = ContextWindowPolicy(max_context_tokens=20_000, max_output_tokens=4_000)
fitting = transform(messages, policy)
short = transform(messages[:5], policy)
print(f"{len(messages)} messages in, {len(fitting)} out, the newest as it was: {fitting[-1] is messages[-1]}")
print(f"what fits is given back as it is: {all(one is other for one, other in zip(short, messages, strict=False))}")
