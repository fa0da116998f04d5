"""Writes the digest of a planned fold: with a model, locally, as a marker, or from a text that a person wrote."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from foldline.digest import endpoints
from foldline.digest.audit import audit
from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.digester import Digester, DigesterCall, DigesterReply, with_policy_model
from foldline.digest.driver import RetryLimits, write_model_digest
from foldline.digest.extract.facts import Facts, extract_facts
from foldline.digest.local import local_limit, write_local_digest
from foldline.digest.markup import SESSION, body_of
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
NEWEST_READ, OPENING_READ = 2_000, 100
"""How many of the newest and of the first folded messages a session reads again after it was opened.

The folded messages between these two groups are skipped.
"""
_ENDPOINTS: dict[str, tuple[str, Callable[..., Digester]]] = {
    "openai": ("OPENAI_API_KEY", endpoints.openai),
    "anthropic": ("ANTHROPIC_API_KEY", endpoints.anthropic),
}
"""For each vendor, the environment variable of the API key, and the client.

Used if a digest model is given only by its name.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options for writing one digest."""

    must: bool = False
    """Whether the fold must be made. If so, a local digest is used when the model fails."""
    local: str = ""
    """The reason to write a local digest although there is a digester; "" to call the digester."""
    instructions: str = ""
    text: str | None = None
    """A digest that a person wrote; None if there is none."""
    cancel: StopSignal = field(default_factory=current_cancellation)
    """The stop signal of the call, or of the background job, that makes the fold."""


def choose_digester(digester: Digester | None, policy: Policy) -> Digester | None:
    """The given digester, or else one for the model that the policy names.

    Returns None if the SDK or the API key of that model is missing.
    """
    if digester is not None or not policy.digest_model:
        return with_policy_model(digester, policy)
    vendor = model_of(policy.digest_model).vendor or "openai"
    key, endpoint = _ENDPOINTS.get(vendor, ("", endpoints.openai))
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
        self._moves = 0

    def write(
        self, state: State, fold: Fold, digester: Digester | None, options: WriteOptions
    ) -> Digest | FoldRefused | None:
        """The digest of a planned fold; None if the policy wants none.

        Returns `FoldRefused` if the digest could not be written.
        """
        timeline, policy = state.timeline, state.policy
        lead, before = timeline.lead, timeline.fold
        if fold.cut <= lead or policy.leave == "nothing":
            return None
        if options.text is not None:
            if not options.text.strip():
                raise InputError("the digest is empty", hint="write the text that replaces the folded messages")
            message = SESSION.message(options.text, header=policy.digest_header, role=policy.digest_role)
            loss = audit(options.text, self._facts_so_far(state), kept_indexes=_verbatim(state, fold))
            return Digest(message=message, by="hand", loss=loss)
        if before is not None and before.cut == fold.cut and not options.instructions:
            large = before.digest_tokens > digest_reserve(policy, state.usable)
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
        leaves = [index for index in range(timeline.cut, fold.cut) if index not in kept]
        before = timeline.fold
        covered = sum(map(timeline.tokens, leaves)) + (before.digest_tokens if before else 0)
        reserve = digest_reserve(policy, state.usable)
        return DigestRequest(
            messages=[timeline.messages[index] for index in leaves],
            count_tokens=lambda text: state.size(user(text)),
            max_tokens=local_limit(reserve, covered) if options.local or digester is None else reserve,
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
            on_failure="local" if options.must else policy.on_failure,
            cached_prefix=_cached_prefix(state, digester, leaves),
            stop_signal=options.cancel,
        )

    def _facts_so_far(self, state: State) -> Facts:
        """The facts of all messages so far. Each message is read only once."""
        timeline, moves = state.timeline, state.snapshot.moves
        if moves != self._moves:
            self._facts, self._moves = None, moves
        facts = self._facts or self._opening(state)
        start = facts.end if facts is not None else timeline.lead
        while start < timeline.cut:  # only the record has all of the folded part
            stop = min(start + PAGE, timeline.cut)
            facts = extract_facts(list(self.record.read(start, stop)), start, facts)
            start = stop
        self._facts = extract_facts(timeline.messages[start:], start, facts)
        return self._facts

    def _opening(self, state: State) -> Facts | None:
        """The facts of the first folded messages and of the current digest. None if few messages are folded.

        If the result is None, all folded messages are read. Otherwise only the newest ones are read afterwards, so the
        first fold after opening takes the same time for any length of the record.
        """
        timeline, fold = state.timeline, state.timeline.fold
        start, lead = timeline.cut - NEWEST_READ, timeline.lead
        if fold is None or fold.digest is None or start - 1 < lead + OPENING_READ:
            return None
        facts = extract_facts(list(self.record.read(lead, lead + OPENING_READ)), lead)
        return extract_facts([fold.digest.message], start - 1, facts)


def _prompt(policy: Policy) -> DigestPrompt | None:
    """The prompt for the digester; None for the default prompt, which asks for sections."""
    if policy.digest_form != "cumulative":
        return None
    return cumulative_prompt(
        policy.digest_system_prompt or SUMMARY_SYSTEM, policy.digest_user_prompt or SUMMARY_TEMPLATE
    )


def _verbatim(state: State, fold: Fold) -> frozenset[int]:
    """Positions of the messages that stay in the view unchanged."""
    timeline = state.timeline
    whole = (index for index in range(fold.cut, len(timeline)) if timeline.shown[index] is timeline.messages[index])
    return frozenset((*fold.pinned, *fold.carried, *whole)).difference(fold.stubs)


def _cached_prefix(state: State, digester: Digester | None, leaves: Sequence[int]) -> tuple[Message, ...]:
    """The current view, if a digest request that continues it is cheaper than one with the folded messages; else ().

    A view with thinking is not used: the digest request does not have the session's thinking settings, so the provider
    would not read its cache.
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
