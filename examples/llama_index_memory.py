"""A memory of LlamaIndex that stays inside a window and keeps every message. It needs no key and no model."""

from llama_index.core.base.llms.types import ChatMessage

import foldline
from foldline.integrations.llama_index import FoldlineMemory

WINDOW, TURNS = 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)

with foldline.open(":memory:") as ledger:
    session = ledger.session("work", model="gpt-5.6", policy=POLICY)
    memory = FoldlineMemory(session)
    largest = 0
    for turn in range(TURNS):
        memory.put(ChatMessage(role="user", content=f"Check part {turn}: " + "a line of code\n" * 150))
        memory.put(ChatMessage(role="assistant", content=f"Part {turn} is fine."))
        memory.get()
        largest = max(largest, session.load().request)
    messages = memory.get_all()
    print(f"all messages: {len(messages)}, {sum(map(session.size, session.messages)):,} tokens")
    print(f"to send: {len(memory.get())} messages, never more than {largest:,} tokens, {session.folds} folds")
