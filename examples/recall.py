"""Search a conversation, and read messages back by their handle.

python examples/recall.py
"""

from __future__ import annotations

import json

from foldline import Session


def main() -> None:
    """Ask a question, and read one message back."""
    session = Session()
    talk = [
        ("user", "The worker listens on port 7091, because 8080 is taken by the proxy."),
        ("assistant", "Noted: the worker uses port 7091."),
        ("user", "Then write the tests for the parser."),
        ("assistant", "The parser has 14 tests now. All of them pass."),
    ]
    for role, content in talk:
        session.add({"role": role, "content": content})

    found = session.recall("Which port does the worker use?")
    print(found)
    for passage in found:
        print(passage.handle, len(passage.messages), "messages")
    print(json.dumps(found.to_dict()["results"][0]["lines"][0]))
    print(session.recall(handle="#4"))


if __name__ == "__main__":
    main()
