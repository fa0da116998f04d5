"""Writes the digest of a planned fold: with a model, locally, as a marker, or from a text that a person wrote."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from foldline import digesters
from foldline.digest.audit import audit
from foldline.digest.checks import has_visible_text
from foldline.digest.digester import Digester, DigesterCall, DigesterReply, DigestRequest, FoldRefused
from foldline.digest.driver import RetryLimits, write_model_digest
from foldline.digest.extract.extraction import NEWEST_READ, extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.local import MIN_TOKENS, write_local_digest
from foldline.digest.markup import SESSION, body_of, without_header
from foldline.digest.prompt import SUMMARY_SYSTEM, SUMMARY_TEMPLATE, DigestPrompt, cumulative_prompt
from foldline.errors import InputError
from foldline.fold import Digest, Fold
from foldline.message import Message, Thinking, user
from foldline.models.table import model as model_of
from foldline.plan.fold_cost import digest_cost, prices_of, request_cost
from foldline.plan.plan import digest_reserve
from foldline.policy import Policy
from foldline.session.cancellation import StopSignal, current_cancellation
from foldline.session.record import Record
from foldline.session.state import State
from foldline.view.compose import marker

PAGE = 500
"""Number of folded messages that are read at once."""
OPENING_READ = 100
"""Number of the oldest folded messages that are read for the first fold after a session was opened.

The newest `NEWEST_READ` folded messages are read, too. The facts of the messages between them come from the current
digest.
"""
_MAX_LOCAL_SHARE = 0.75
"""A local digest has at most this share of the tokens that leave the view."""
_ENDPOINTS: dict[str, tuple[str, Callable[..., Digester]]] = {
    "openai": ("OPENAI_API_KEY", digesters.openai),
    "anthropic": ("ANTHROPIC_API_KEY", digesters.anthropic),
}
"""For each vendor, the environment variable of the API key, and the client.

This table is used if a digest model is given only by its name.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options for writing one digest."""

    must: bool = False
    """Whether the fold must be made. If so, foldline writes the digest locally when the model fails."""
    can_wait: bool = False
    """Whether the view fits without the fold.

    If the view fits and the model fails, `on_failure` of the policy applies, even to a fold that the user forces.
    """
    local: str = ""
    """The reason to write a local digest although there is a digester; "" to call the digester."""
    instructions: str = ""
    text: str | None = None
    """A digest that a person wrote; None if there is none."""
    cancel: StopSignal = field(default_factory=current_cancellation)
    """The stop signal of the call, or of the background job, that makes the fold."""


def choose_digester(digester: Digester | None, policy: Policy) -> Digester | None:
    """The given digester. If none is given, a digester with the model that the policy names.

    Returns None if the policy names no model, or if the SDK or the API key of that model is missing.
    """
    if digester is not None or not policy.digest_model:
        return digesters.with_policy_model(digester, policy)
    vendor = model_of(policy.digest_model).vendor or "openai"
    key, endpoint = _ENDPOINTS.get(vendor, ("", digesters.openai))
    if not os.environ.get(key) or find_spec(vendor) is None:
        return None
    loaded: list[Digester] = []

    def complete(call: DigesterCall) -> DigesterReply | Awaitable[DigesterReply]:
        if not loaded:
            loaded.append(endpoint(policy.digest_model))  # the SDK is imported when it is first needed
        return loaded[0].complete(call)

    return Digester(complete=complete, model=policy.digest_model)


class DigestWriter:
    """Writes the digests of one session. The facts of the messages are cached, so that no message is read twice."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._facts: Facts | None = None
        self._before: Facts | None = None
        """The facts up to the previous digest. A branch uses them if `_facts` covers messages that the branch does not
        have.
        """
        self._moves = 0

    def begin_with(self, origin: DigestWriter, state: State, *, moves: int) -> None:
        """Take over the facts of messages that this session has in common with another session.

        These messages are then not read again. `origin` is the writer of the other session. `moves` says how often the
        other session was shortened to an earlier message (`Snapshot.moves`). Facts that are older than the last of
        these times are not taken over. `state` is the state of this session.
        """
        known = (origin._facts, origin._before) if origin._moves == moves else ()
        self._facts = next((one for one in known if one is not None and one.end <= len(state.timeline)), None)
        self._moves = state.snapshot.moves

    def write(
        self, state: State, fold: Fold, digester: Digester | None, options: WriteOptions
    ) -> Digest | FoldRefused | None:
        """The digest of a planned fold; None if the fold gets no digest.

        Returns `FoldRefused` if the digest could not be written.
        """
        timeline, policy = state.timeline, state.policy
        lead, before = timeline.lead, timeline.fold
        if fold.cut <= lead or policy.leave == "nothing":
            return None
        if options.text is not None:
            text = without_header(options.text, policy.digest_header)
            if not has_visible_text(text):
                raise InputError("the digest is empty", hint="write the text that replaces the folded messages")
            message = SESSION.message(text, header=policy.digest_header, role=policy.digest_role)
            loss = audit(text, self._facts_so_far(state), kept_indexes=_verbatim(state, fold))
            return Digest(message=message, by="hand", loss=loss)
        if before is not None and before.cut == fold.cut and not options.instructions:
            large = before.digest_tokens > _digest_limit(state, fold)
            if not (large and options.must and before.digest is not None):
                return before.digest
        if policy.leave == "marker":
            return Digest(message=marker(lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried)), by="marker")
        request = self._request(state, fold, digester, options)
        if options.local or digester is None:
            return write_local_digest(request, cause=options.local if digester is not None else "")
        limits = RetryLimits(seconds=policy.digest_seconds)
        return write_model_digest(request, digester, limits, sleep=options.cancel.sleep)

    def _request(self, state: State, fold: Fold, digester: Digester | None, options: WriteOptions) -> DigestRequest:
        """The request for a digest of the messages that are folded now, with the facts of all messages."""
        timeline, policy = state.timeline, state.policy
        kept = _verbatim(state, fold)
        before = timeline.fold
        shown = (
            (*sorted({*before.pinned, *before.carried}), *range(before.cut, fold.cut)) if before else range(fold.cut)
        )
        leaves = [index for index in shown if index >= timeline.lead and index not in kept]
        covered = sum(map(timeline.tokens, leaves)) + (before.digest_tokens if before else 0)
        reserve = _digest_limit(state, fold)
        return DigestRequest(
            messages=[timeline.messages[index] for index in leaves],
            count_tokens=lambda text: state.size(user(text)),
            max_tokens=_local_limit(reserve, covered) if options.local or digester is None else reserve,
            covered_tokens=0 if options.must else covered,
            facts=self._facts_so_far(state),
            cut=fold.cut,
            kept_indexes=kept,
            prior_digest=body_of(before.digest.message.text, policy.digest_header) if before and before.digest else "",
            prompt=_prompt(policy),
            header=policy.digest_header,
            role=policy.digest_role,
            instructions=options.instructions,
            min_coverage=policy.coverage_ratio,
            on_failure="local" if options.must and not options.can_wait else policy.on_failure,
            cached_prefix=_cached_prefix(state, digester, leaves),
            stop_signal=options.cancel,
        )

    def _facts_so_far(self, state: State) -> Facts:
        """The facts of all messages so far. Each message is read only once."""
        timeline, moves = state.timeline, state.snapshot.moves
        if moves != self._moves:
            self._facts, self._before, self._moves = None, None, moves
        if self._facts is not None and self._facts.end < len(timeline):
            self._before = self._facts
        facts = self._facts or self._opening(state)
        start = facts.end if facts is not None else timeline.lead
        while start < timeline.cut:  # only the record has all folded messages
            stop = min(start + PAGE, timeline.cut)
            facts = extract_facts(list(self.record.read(start, stop)), start, facts)
            start = stop
        self._facts = extract_facts(timeline.messages[start:], start, facts)
        return self._facts

    def _opening(self, state: State) -> Facts | None:
        """The facts of the oldest folded messages and of the current digest; None if only few messages are folded.

        They are used for the first fold after a session was opened. The digest stands for the folded messages in the
        middle, which are then not read. So this fold takes the same time for any length of the record.
        """
        timeline, fold = state.timeline, state.timeline.fold
        start, lead = timeline.cut - NEWEST_READ, timeline.lead
        if fold is None or fold.digest is None or start - 1 < lead + OPENING_READ:
            return None
        facts = extract_facts(list(self.record.read(lead, lead + OPENING_READ)), lead)
        return replace(extract_facts([fold.digest.message], start - 1, facts), is_complete=False)


def _local_limit(max_tokens: int, covered_tokens: int) -> int:
    """Maximum size of a local digest in tokens: `max_tokens`, or less if few tokens leave the view.

    So even a fold of few messages makes the view smaller.
    """
    smaller = int(_MAX_LOCAL_SHARE * covered_tokens)
    return min(max_tokens, smaller) if smaller >= MIN_TOKENS else max_tokens


def _digest_limit(state: State, fold: Fold) -> int:
    """The maximum size of the digest of a planned fold, in tokens.

    Usually this is the size that the policy reserves. It is smaller if the provider refused the last view, because the
    fold is then planned for a smaller window. It is also smaller if the view would not fit otherwise.
    """
    return min(digest_reserve(state.policy, state.usable), fold.digest_tokens)


def _prompt(policy: Policy) -> DigestPrompt | None:
    """The prompt for the digester; None for the default prompt, which asks for a digest in sections."""
    if policy.digest_form != "cumulative":
        return None
    return cumulative_prompt(
        policy.digest_system_prompt or SUMMARY_SYSTEM, policy.digest_user_prompt or SUMMARY_TEMPLATE
    )


def _verbatim(state: State, fold: Fold) -> frozenset[int]:
    """Positions of the messages that stay in the view unchanged."""
    timeline = state.timeline
    whole = (index for index in range(fold.cut, len(timeline)) if timeline.shown[index] is timeline.messages[index])
    return frozenset((*fold.pinned, *fold.carried, *whole)).difference(fold.stubs, fold.removed)


def _cached_prefix(state: State, digester: Digester | None, leaves: Sequence[int]) -> tuple[Message, ...]:
    """The messages of the current view, if the digest request can begin with them at a lower cost; otherwise ().

    The provider reads the view from its cache. This may cost less than a request that has only the folded messages. If
    the view has thinking, the result is (): the digest request does not have the session's thinking settings, so the
    provider would not read such a view from its cache.
    """
    own, policy = state.model, state.policy
    if not policy.digest_shared or digester is None or digester.model != own.name:
        return ()
    view, reply = state.load().request, policy.digest_tokens
    shared = request_cost(prices_of(own), tokens=view + reply, common=view, warm=True)
    anew = digest_cost(prices_of(digester.known), covered=sum(map(state.timeline.tokens, leaves)), digest=0)
    if view + 2 * reply > digester.window or shared >= anew:
        return ()
    messages = state.messages()
    return () if any(isinstance(part, Thinking) for message in messages for part in message.parts) else messages
