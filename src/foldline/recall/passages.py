"""Chooses which candidates are shown, and returns them as passages within the token budget.

The best messages are chosen first. A prompt is shortened to at most `PROMPT_CHARS` characters. A long reply or tool
result is shortened to an excerpt. The rest of the budget is used to make the excerpts of replies longer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from foldline.measure.estimator import Counter
from foldline.message import Message, Text
from foldline.placeholders import OMISSION
from foldline.plan.timeline import handle
from foldline.recall import ranking
from foldline.recall.candidates import Candidates
from foldline.recall.excerpt import Excerpts, indexed_text
from foldline.recall.ranking import Document
from foldline.recall.result import RecalledMessage, RecalledPassage, RecallResult, text_of_passages
from foldline.recall.text_index import IndexReader

PROMPT_CHARS = 500
LONG_REPLY_CHARS = 1000
"""Maximum length in characters of a long excerpt. The best replies and tool results are shown as long excerpts.

The length must be large enough for an answer to the query.
"""
OTHER_CHARS = 150
CHARS_PER_TOKEN = 4
SURPLUS_SHARE = 0.7
"""If the text is too large, messages with this share of the surplus characters are dropped, and the text is counted
again. The surplus is only an estimate, so dropping all of it at once could remove too many messages.
"""
ROLE_CHARS = 20
LINE_CHARS = 14
"""Assumed length of the handle and the role that are shown before a message, in characters."""


class PassageBuilder:
    """Builds the passages for the candidates of one query."""

    def __init__(self, index: IndexReader, known: Candidates, *, results: int, tokens: int) -> None:
        self.index, self.known, self.results, self.tokens = index, known, results, tokens
        self.excerpts = Excerpts(known.phrases, known.term_scores)

    def build(self, counter: Counter) -> RecallResult:
        """The chosen messages that fit the token budget.

        If the messages do not fit, the messages that were chosen last are dropped. If only one message is left, its
        text is shortened.
        """
        chars = self._selection()
        read = self.index.messages([doc.id for doc in chars])
        chosen = [doc for doc in chars if doc.id in read]  # retention may have deleted some
        shown = {doc: self._recalled(doc, read[doc.id], chars[doc]) for doc in chosen}
        while chosen:
            results = self._passages(chosen, shown)
            text = text_of_passages(results)
            size = counter.count(text).upper
            if size <= self.tokens:
                return RecallResult(results=results, tokens=size)
            first, surplus = chosen[0], SURPLUS_SHARE * (size - self.tokens) * len(text) / size
            if len(chosen) > 1:
                while len(chosen) > 1 and surplus > 0:
                    surplus -= len(shown[chosen.pop()].text) + LINE_CHARS
            elif len(shown[first].text) > 2 * len(OMISSION):
                shown[first] = self._recalled(first, read[first.id], len(shown[first].text) // 2)
            else:
                break
        return RecallResult(results=())

    def _selection(self) -> dict[Document, int]:
        """The messages to show, best first, each with its maximum number of characters.

        A message that has only tool calls or results is shown only in two cases:

        - The message itself matches well, or it is a full match (see `ranking.FULL_MATCH`).
        - It is the result of a call that is shown. If the call matches well, the result is ranked directly after the
          call. Otherwise, the result is ranked last, so it is shown only if tokens are left.
        """
        docs, own, known = self.known.docs, self.known.own_scores, self.known
        full = ranking.full_matches([known.matches.get(doc.id, 0.0) for doc in docs])
        order, at_length = ranking.worth_showing(docs, own, known.scores, OTHER_CHARS, full)
        first = [at for at, doc in enumerate(docs) if doc.id in known.phrase_counts]
        first.sort(key=lambda at: (-known.phrase_counts[docs[at].id], -known.scores[at], -docs[at].id))
        order = [*first, *(at for at in order if docs[at].id not in known.phrase_counts)]
        at_id = {doc.id: at for at, doc in enumerate(docs)}
        results = {at_id[call]: [at_id[id_] for id_ in ids] for call, ids in known.call_results.items()}
        order = [one for at in order for one in (at, known.answers.get(at, at), *results.get(at, ()))]
        order = list(dict.fromkeys(order))
        chars = [PROMPT_CHARS if doc.is_prompt else OTHER_CHARS for doc in docs]
        for at in known.answers.values():
            chars[at] = LONG_REPLY_CHARS if docs[at].id in known.exact else PROMPT_CHARS
        for at in (*at_length, *first[: ranking.LONG_REPLIES]):
            chars[at] = LONG_REPLY_CHARS
        least = ranking.REPLY_FLOOR * max(own, default=0.0)
        weak = {at for at in order if own[at] < least and docs[at].id not in known.phrase_counts} - full
        weak -= {one for at in results.keys() - weak for one in results[at]}
        chosen = self._choose(order, chars)
        empty = self._without_words(weak & set(chosen))
        if empty:  # others take their place
            chosen = self._choose([at for at in order if at not in empty], chars)
            empty = self._without_words(weak & set(chosen))
            chosen = [at for at in chosen if at not in empty]
        chosen = self._beside_a_match(chosen)
        called = [one for at in chosen for one in results.get(at, ())]
        chosen = self._choose(list(dict.fromkeys([*chosen, *called])), chars)
        self._lengthen(chosen, chars)
        return {docs[at]: chars[at] for at in chosen}

    def _choose(self, order: Sequence[int], chars: Sequence[int]) -> list[int]:
        """The messages to show, best first, as indexes into the candidates.

        Messages that contain the whole query come first.
        """
        docs, exact = self.known.docs, self.known.exact
        costs = [_cost(doc, most) for doc, most in zip(docs, chars, strict=True)]
        first = ranking.choose(
            docs, [at for at in order if docs[at].id in exact], costs, results=self.results, budget=self.tokens
        )
        results = self.results - len(self._grouped([docs[at] for at in first]))
        budget = self.tokens - sum(costs[at] for at in first)
        others = [at for at in order if docs[at].id not in exact]
        return [*first, *ranking.choose(docs, others, costs, results=results, budget=budget)]

    def _lengthen(self, chosen: Sequence[int], chars: list[int]) -> None:
        """Use the rest of the budget for longer excerpts of replies, beginning with the best reply. Changes `chars`."""
        docs = self.known.docs
        left = self.tokens - sum(_cost(docs[at], chars[at]) for at in chosen)
        for at in chosen:
            more = _cost(docs[at], PROMPT_CHARS) - _cost(docs[at], chars[at])
            if 0 < more <= left:
                chars[at] = PROMPT_CHARS
                left -= more

    def _beside_a_match(self, chosen: Sequence[int]) -> list[int]:
        """The messages in `chosen`, without the passages in which no message matches.

        A message that does not match may have been chosen because its neighbours match.
        """
        docs, own = self.known.docs, self.known.own_scores
        matching = {docs[at] for at in chosen if own[at] > 0 or docs[at].id in self.known.exact}
        passages = self._grouped([docs[at] for at in chosen])
        shown = {doc for passage in passages if not matching.isdisjoint(passage) for doc in passage}
        return [at for at in chosen if docs[at] in shown]

    def _without_words(self, some: Collection[int]) -> set[int]:
        """The messages in `some` that have only tool calls or results.

        Messages are given as indexes into the candidates.
        """
        docs = self.known.docs
        read = self.index.messages([docs[at].id for at in some])
        return {at for at in some if docs[at].id in read and not _has_words(read[docs[at].id])}

    def _passages(
        self, chosen: Sequence[Document], shown: Mapping[Document, RecalledMessage]
    ) -> tuple[RecalledPassage, ...]:
        """The chosen messages, grouped into passages. The passage with the best message comes first."""
        passages = self._grouped(chosen)
        order = {doc: number for number, doc in enumerate(chosen)}
        passages.sort(key=lambda passage: min(order[doc] for doc in passage))
        return tuple([self._passage(docs, tuple([shown[doc] for doc in docs])) for docs in passages[: self.results]])

    def _grouped(self, chosen: Sequence[Document]) -> list[list[Document]]:
        """Groups of messages that are close to each other.

        Messages in `Candidates.exact`, such as those with the whole query, are grouped only with each other.
        """
        exact = self.known.exact
        passages: list[list[Document]] = []
        for doc in sorted(chosen, key=lambda doc: (doc.id not in exact, doc.segment, doc.position)):
            last = passages[-1][-1] if passages else None
            same = last is not None and (last.id in exact) == (doc.id in exact)
            if last is not None and same and ranking.in_one_passage(last, doc):
                passages[-1].append(doc)
            else:
                passages.append([doc])
        return passages

    def _recalled(self, doc: Document, message: Message, chars: int) -> RecalledMessage:
        text = indexed_text(message)
        shown = self.excerpts.of(text, chars)
        return RecalledMessage(
            position=doc.position,
            role=message.shown_role[:ROLE_CHARS],
            text=shown,
            is_whole=shown == text,
            is_match=doc.id in self.known.matches,
        )

    def _passage(self, docs: Sequence[Document], messages: tuple[RecalledMessage, ...]) -> RecalledPassage:
        segment = docs[0].segment
        owner, session = self.index.session_of(segment) if segment else ("", "")
        name = f"{segment or ''}{handle(docs[0].position, docs[-1].position)}"
        return RecalledPassage(handle=name, messages=messages, session=session, owner=owner)


def _cost(doc: Document, chars: int) -> float:
    """The assumed size in tokens of an excerpt that has at most `chars` characters."""
    return (min(doc.size, chars) + LINE_CHARS) / CHARS_PER_TOKEN


def _has_words(message: Message) -> bool:
    return any(isinstance(part, Text) and part.text.strip() for part in message.parts)
