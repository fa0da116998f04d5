"""A long agent session kept inside a small window: add messages, send the view."""

from foldline import Policy, Session

policy = Policy.preset("balanced").but(window_tokens=20_000, reply_tokens=4_000)
session = Session(model="claude-sonnet-4-5", policy=policy)
session.add({"role": "user", "content": "Find out why the worker drops jobs. It listens on port 7091."})

for number in range(40):
    call = {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {"path": f"src/part_{number}.py"}}
    text = "\n".join(f"def step_{number}_{line}(job): return queue.put(job)" for line in range(60))
    result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": text}
    session.add({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
    body = session.view().render("anthropic").body  # valid, and fits the window: send it

view = session.view()
print(view)
print(f"{len(view.messages)} of {len(session.timeline)} messages are sent, after {session.folds} folds")
