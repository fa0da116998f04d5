"""A session that is opened anew reads a bounded part of what is folded, and its next digest still tells what held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import foldline
from foldline.digest.extract.extraction import NEWEST_READ
from foldline.message import Message, assistant, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.session.digest_writer import OPENING_READ
from foldline.session.record import BranchRecord

POLICY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, keep_first_prompt=False)


class Counted(BranchRecord):
    """A record that counts what is read of it."""

    read_so_far = 0

    def read(self, start: int, stop: int) -> Iterator[Message]:
        """The same messages."""
        for message in super().read(start, stop):
            self.read_so_far += 1
            yield message


def test_a_long_session_opened_anew_folds_without_reading_all_of_it(tmp_path: Path) -> None:
    length = 2 * (NEWEST_READ + OPENING_READ)
    with foldline.open(tmp_path / "agent.db") as ledger:
        first = ledger.session("long", policy=POLICY)
        first.add(user("Mend the parser. You must never touch src/legacy/table.py."))
        said = ((f"I decided to keep step {n}.", f"Then look at src/part_{n % 7}.py.") for n in range(length))
        first.add(*(message for done, then in said for message in (assistant(done), user(then))))
        first.view()
        record = first.record
        assert isinstance(record, BranchRecord)
        assert first.timeline.cut > NEWEST_READ + 2 * OPENING_READ
        counted = Counted(record.store, record.branch)
        again = Session(record=counted)
        counted.read_so_far = 0
        again.add(*(user(f"And src/late_{number}.py, too.") for number in range(40)))
        fold = again.fold()
        assert fold is not None
        assert fold.digest is not None
        assert counted.read_so_far <= NEWEST_READ + OPENING_READ
        assert "never touch src/legacy/table.py" in fold.digest.message.text


def test_a_branch_does_not_read_what_its_origin_has_read_and_writes_the_same_digest(tmp_path: Path) -> None:
    late = [user(f"And src/late_{number}.py, too. " + "It is needed. " * 60) for number in range(40)]
    texts = []
    with foldline.open(tmp_path / "agent.db") as ledger:
        first = ledger.session("long", policy=POLICY)
        first.add(user("Mend the parser. You must never touch src/legacy/table.py."))
        said = ((f"I decided to keep step {n}.", f"Then look at src/part_{n % 7}.py.") for n in range(400))
        first.add(*(message for done, then in said for message in (assistant(done), user(then))))
        first.view()
        assert first.timeline.cut > 100
        for name in ("side", "other"):
            branch = first.branch(name)
            record = branch.record
            assert isinstance(record, BranchRecord)
            counted = Counted(record.store, record.branch)
            if name == "side":
                branch.writer.record = counted
            else:
                branch = Session(record=counted)
            counted.read_so_far = 0
            branch.add(*late)
            fold = branch.fold()
            assert fold is not None
            assert fold.digest is not None
            assert (counted.read_so_far == 0) is (name == "side")
            texts.append(fold.digest.message.text)
    assert texts[0] == texts[1]
