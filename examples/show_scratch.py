"""Watch a recorded agent stream and print its working notes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from foldline.compat.context_budget import ScratchModel, ScratchWriter
from foldline.watch.watcher import Watcher

with tempfile.TemporaryDirectory() as worktree:
    watch = Watcher(writer=ScratchWriter(worktree), model=ScratchModel(job="the table test", phase="WORK"))
    for line in Path("examples/agent-stream.jsonl").read_text().splitlines():
        watch.feed(json.loads(line))
    print((Path(worktree) / ".context" / "scratch.md").read_text(), end="")
