"""Shorten a list of messages so that it fits a window, with one function."""

import foldline

messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
messages.append({"role": "user", "content": "Find out what is in the 200 parts. Never open part 13."})
for number in range(200):
    messages.append({"role": "assistant", "content": f"Part {number} holds: " + "item " * 200})
    messages.append({"role": "user", "content": f"What is in part {number + 1}?"})

fitting = foldline.fit(messages, model="gpt-5", budget=20_000)
few = messages[:5]
print(f"{len(messages)} messages in, {len(fitting)} out")
print("the task is unchanged:", messages[1] in fitting, "- the newest message, too:", fitting[-1] is messages[-1])
print("a list that fits is returned as the same object:", foldline.fit(few, model="gpt-5", budget=20_000) is few)
print(next(message["content"] for message in fitting if message["content"].startswith("[session digest"))[:300] + " …")
