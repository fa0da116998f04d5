"""Where a fold lands: below its trigger, in chunks, once for a request."""

from __future__ import annotations

from itertools import pairwise

import pytest

from foldline.message import assistant, user
from foldline.policy import Policy
from foldline.session import Session
from support.knobs import small
from support.small_sessions import cuts, recount, session, talk


class TestLanding:
    def test_a_fold_that_had_to_be_made_lands_below_its_trigger_too(self) -> None:
        """A floor of almost the whole window once left a request that asked for the next fold at once."""
        made = session(1_000, "fold when request > 75%", keep_tokens=900)
        made.add(*talk(12, chars=180), user("and?"))
        view = made.view()
        assert made.folds == 1
        assert view.tokens <= 750
        assert not view.need

    @pytest.mark.parametrize("rule", ["history > 200", "history >= 200", "count > 4", "count >= 4"])
    def test_a_fold_satisfies_every_rule_that_asked_for_it(self, rule: str) -> None:
        made = session(1_000, "fold when request > 75%", f"clip when {rule}", target_ratio=0.7)
        made.add(*talk(9), user("and?"))
        view = made.view()
        assert made.folds == 1
        assert not view.need
        assert made.view().messages == view.messages

    def test_at_least_is_already_too_much_when_it_is_reached(self) -> None:
        """`>= 50%` of 1,000 lets 499 stand, not 500."""
        made = session(1_000, "clip when request >= 50%", leave="nothing")
        made.add(*talk(12, chars=200), user("u" * 200))
        assert made.view().tokens < 500

    def test_what_stands_in_front_is_counted_for_each_cut(self) -> None:
        """Seven messages of 57 fit into 400, but in front of a reply they need a line more: then six stay, not none."""
        made = session(400, leave="nothing", keep_tokens=2_000)
        made.add(*talk(12, chars=228), user("and?"))
        view = made.view()
        assert (view.cut, len(view.messages)) == (18, 7)
        assert recount(made, view) == view.tokens == 6 * 57 + 1

    def test_one_request_pays_for_one_fold(self) -> None:
        """By cost, the fold just made once looked like a bargain to make again."""
        made = Session(model="claude-sonnet-5", policy=Policy.preset("thrifty").but(window_tokens=8_000))
        for number in range(60):
            made.add(*talk(1, chars=2_000), user(f"{number}?"))
            folds = made.folds
            messages = made.view().messages
            assert made.view().messages == messages
            assert made.folds - folds <= 1
            made.add(assistant("yes"))
        assert made.folds


class TestClipping:
    @pytest.mark.promise("F14")
    @pytest.mark.parametrize("name", ["balanced", "thrifty"])
    def test_our_own_policies_cut_in_chunks_to_below_the_cap(self, name: str) -> None:
        made = Session(policy=small(name, 6_000, counter="chars/4"))
        found = cuts(made, 200)
        moved = [place for place, (before, after) in enumerate(pairwise(found)) if before != after]
        assert len(moved) == made.folds
        assert all(later - earlier >= 5 for earlier, later in pairwise(moved)), "not turn by turn"
        assert made.timeline.fold is not None
        assert made.timeline.fold.after <= 0.6 * made.usable

    @pytest.mark.promise("F14")
    def test_turn_by_turn_is_left_to_the_preset(self) -> None:
        found = cuts(Session(policy=small("ikigai", 6_000)), 60)
        assert all(after - before == 2 for before, after in pairwise(found[30:]))
