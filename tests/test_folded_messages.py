"""Which messages a fold removed from the view: one definition, for the page, the commands and the printed fold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import foldline
from foldline.fold import Fold
from foldline.message import assistant, system, user
from foldline.plan.timeline import left_handles


@given(
    cut=st.integers(0, 40),
    lead=st.integers(0, 3),
    pinned=st.sets(st.integers(0, 45)),
    carried=st.sets(st.integers(0, 45)),
)
def test_the_messages_that_left_are_those_before_the_cut_that_do_not_stay(
    cut: int, lead: int, pinned: set[int], carried: set[int]
) -> None:
    fold = Fold(cut=cut, lead=lead, pinned=tuple(pinned), carried=tuple(carried))
    left = [index for one in fold.left for index in one]
    assert left == [index for index in range(lead, cut) if index not in pinned | carried]


def test_a_fold_a_preview_and_the_view_name_the_same_messages() -> None:
    session = foldline.Session(model="claude-sonnet-5", policy="balanced")
    session.add(system("You are careful."), user("Begin."))
    for number in range(30):
        session.add(assistant(f"Step {number}: " + "word " * 300), user(f"Go on with {number}."))
    session.pin(handle="#10")
    preview = session.preview(before="#41")
    assert preview is not None
    fold = session.approve(preview)
    seen = {message.text for message in session.view().messages}
    left = [index for one in fold.left for index in one]
    assert left
    assert all((session.timeline.messages[index].text in seen) is (index not in left) for index in range(fold.cut))
    assert preview.leaves == left_handles(fold)
    assert "#10" not in preview.leaves.split(", ")
    assert str(fold).startswith(f"{len(left)} messages left the view")


def test_an_undone_fold_is_not_counted_in_the_list_of_sessions() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("one", model="claude-sonnet-5")
        for number in range(20):
            session.add(user(f"Question {number}: " + "word " * 200), assistant(f"Answer {number}."))
        preview = session.preview(before="#31")
        assert preview is not None
        session.approve(preview)
        assert ledger.sessions()[0].folds == 1
        session.unfold()
        assert ledger.sessions()[0].folds == session.folds == 0
