"""Sessions (in memory or on a ledger), and `open`, which opens a ledger.

ledger = foldline.open("agent.db")
session = ledger.session("ticket-42", model="claude-sonnet-5")
session.add({"role": "user", "content": "Why does the build fail?"})
body = session.view().render().body
"""

from foldline.session.open_ledger import Ledger, open  # noqa: A004  # called as foldline.open
from foldline.session.preview import Preview
from foldline.session.session import Session

__all__ = ["Ledger", "Preview", "Session", "open"]
