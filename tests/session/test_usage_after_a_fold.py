"""What usage taught of the provider is not forgotten by a fold and a new process: both measure the same."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldline
from foldline.message import Message, Meta, Usage, assistant, user
from foldline.policy import Policy
from foldline.session import Session

POLICY = Policy.preset("balanced").but(window_tokens=30_000, reply_tokens=0)


def talk(session: Session, turns: int, hidden: int, chars: int) -> Iterator[None]:
    """Turns in which the provider counts `hidden` tokens that stand in no message."""
    for number in range(turns):
        session.add(user(f"question {number} " + "why " * (chars // 4)))
        said = assistant(f"answer {number} " + "so " * 100)
        meta = Meta(usage=Usage(input=session.view().tokens + (hidden if not number else 0), output=110), model="m")
        session.add(Message(role="assistant", parts=said.parts, meta=meta))
        yield


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 9_000), st.integers(400, 6_000), st.integers(8, 30))
def test_a_new_process_measures_what_the_old_one_does(hidden: int, chars: int, turns: int) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("s", model="claude-sonnet-4-5", policy=POLICY)
        for _ in talk(session, turns, hidden, chars):
            again = ledger.session("s")
            assert (again.load(), again.state.gauge.calibration) == (session.load(), session.state.gauge.calibration)
        session.add(user("and now?"))
        assert ledger.session("s").view().tokens == session.view().tokens


def test_another_model_is_measured_with_the_hidden_tokens_of_the_first_but_without_its_ratio() -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("s", model="claude-sonnet-4-5", policy=POLICY)
        for _ in talk(session, 20, 5_000, 4_000):
            pass
        session.add(user("and now?"))
        assert session.fold(force=True)
        assert session.state.gauge.calibration.hidden > 4_000
        session.use(model="gpt-5")
        assert session.state.gauge.calibration.hidden > 4_000
        assert session.state.gauge.calibration.ratio == 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([0.7, 0.9, 1.2, 1.4]), st.integers(0, 3_000), st.integers(400, 3_000))
def test_a_fold_foretells_the_size_of_the_view_after_it(ratio: float, hidden: int, chars: int) -> None:
    """What the estimator gets wrong in the folded messages leaves the view together with them."""
    folds: list[tuple[int, int]] = []
    session = Session(model="claude-sonnet-4-5", policy=POLICY)
    for number in range(40):
        session.add(user(f"question {number} " + "why " * (chars // 4)))
        before, view = session.folds, session.view()
        fold = session.timeline.fold
        if session.folds > before and fold is not None:
            folds.append((fold.after, view.tokens))
        real = hidden + ratio * sum(map(session.size, view.messages))
        said = assistant(f"answer {number} " + "so " * 100)
        meta = Meta(usage=Usage(input=round(real), output=round(ratio * session.size(said))), model="m")
        session.add(Message(role="assistant", parts=said.parts, meta=meta))
    assert all(abs(after - tokens) <= 0.01 * tokens for after, tokens in folds)
