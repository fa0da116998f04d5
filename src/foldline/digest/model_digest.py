"""Writes a digest with a model. `model_digest_flow` is a generator: it yields calls, receives replies and never waits.

    flow = model_digest_flow(request, digester)
    call = next(flow)             # the first `DigesterCall`
    call = flow.send(reply)       # send its `DigesterReply` and get the next call
    call = flow.throw(error)      # if a call failed: pass the exception on
    # at the end, StopIteration contains the digest

The transcript is cut into chunks that fit the digester's window, and the model writes a digest of each chunk. These
digests are merged in the same way until one is left. If anything fails, the local digest is written or the fold is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from foldline.digest.checks import check_size, clean_reply, reject_body, reject_reply
from foldline.digest.digester import Digester, DigesterCall, DigesterReply, DigestRequest, FoldRefused
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.local import ADDED_SECTIONS, CountTokens, with_certain_facts, write_local_digest
from foldline.digest.markup import REFERENCE, remove_instructions
from foldline.digest.prompt import flatten_transcript, sections_prompt, transcript_lines
from foldline.fold import Digest
from foldline.message import Usage, user
from foldline.placeholders import without_handles
from foldline.redact.redact import redact, redact_error

_CAUSE_CHARS = 300
_ABOVE = "(everything above this message)"
"""Replaces the transcript in the prompt if the request already contains the transcript as its prefix."""
_SHRINK_ATTEMPTS, _SHRINK_RATIO = 5, 0.6
"""If a request is too long, the transcript is split into chunks that are smaller by this factor, so many times."""
_WORDS_PER_TOKEN = 0.6
"""English words per token, rounded down. The word limit in the prompt is the token limit times this number."""
_MAX_CHARS_PER_TOKEN = 64
"""A reply with more characters than this number times the token limit is rejected before its content is checked."""
_MIN_SHARE, _MIN_TOKENS = 0.01, 24
"""The smallest allowed size of a digest: this share of the folded tokens, but at most this number of tokens."""
_NARRATIVE_SHARE = 0.6
"""The share of a digest that the model may write. The rest is for facts that are taken from the record."""
_ADDED = (
    "The user's words, the changed files, the outcomes of commands and the open calls are added below your digest as "
    "they are recorded. Do not list them: say what was done and why, where things stand, and what comes next."
)
_FRAMING_TOKENS, _MIN_ROOM = 16, 64
"""Number of tokens that a provider adds around two messages, and the smallest number of tokens for a transcript."""
_OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|too many tokens|(?:prompt|input) is too long|request too large|"
    r"exceeds? the available context|token limit",
    re.IGNORECASE,
)
_TOO_LONG = "too many tokens for the digester's window"

Calls: TypeAlias = Generator[DigesterCall, DigesterReply, str]


class DigestRejected(Exception):
    """The model's digest cannot be used."""


def model_digest_flow(
    request: DigestRequest, digester: Digester
) -> Generator[DigesterCall, DigesterReply, Digest | FoldRefused]:
    """The digest that a digester writes; if the digester fails, the local digest or a refusal of the fold."""
    flow = _ModelDigest(request, digester)
    try:
        return flow.finish((yield from flow.body()))
    except DigestRejected as rejected:
        cause = str(rejected)
    except Exception as error:  # noqa: BLE001 (a digester may raise anything, and the session must go on)
        cause = redact_error(error) + _unreached_address(error)
    digest = write_local_digest(request, cause=cause, partial_digests=flow.partial_digests)
    return digest if isinstance(digest, FoldRefused) else replace(digest, usage=flow.usage)


def _unreached_address(error: Exception) -> str:
    """The address of a server that did not answer, in brackets; "" for other errors.

    The SDKs name the address only in the request of such an error.
    """
    with suppress(Exception):  # the attributes of a foreign error may raise anything
        if not hasattr(error, "response"):
            return f" ({redact(str(error.request.url))})"  # type: ignore[attr-defined]
    return ""


class _ModelDigest:
    """One model digest in progress: the calls so far and their usage."""

    def __init__(self, request: DigestRequest, digester: Digester) -> None:
        self.request, self.digester = request, digester
        self.prompt = request.prompt or sections_prompt(request.scope)
        self.added = "" if request.plain_list or request.prompt is not None else _ADDED
        wanted = int(request.max_tokens * _NARRATIVE_SHARE) if self.added else request.max_tokens
        self.reply_tokens = max(1, min(wanted, digester.reply, digester.window // 4))
        """Longest reply in tokens. The limit is at most a quarter of the window, because two replies must fit into the
        request that merges them.
        """
        self.user_text = "\n".join(message.text for message in request.messages if message.is_prompt)
        self.room_share = 1.0
        """The share of the available tokens that the transcript may use. It is reduced if a request was too long."""
        self.partial_digests: list[str] = []
        self.usage: Usage | None = None
        self.removed_instructions = 0

    def body(self) -> Calls:
        """The digest's text; if a request is too long, smaller chunks are tried."""
        for _ in range(_SHRINK_ATTEMPTS):
            try:
                if self.request.cached_prefix and self.room_share == 1.0:
                    return (yield from self._call(_ABOVE, last=True))
                return (yield from self._digest_chunks())
            except DigestRejected:
                raise
            except Exception as error:
                if not _OVERFLOW.search(redact_error(error)):
                    raise
                self.room_share *= _SHRINK_RATIO
                self.partial_digests.clear()
        raise DigestRejected("the digester rejects every request as too long")

    def _digest_chunks(self) -> Calls:
        """Makes one call if the transcript fits. Otherwise, one for each chunk, and more to merge the results."""
        request, size = self.request, self.digester.size
        room, prior = self._room(), redact(request.prior_digest)
        if request.facts is not None:  # the sections below the model's text are written again from the facts
            prior = ADDED_SECTIONS.split(prior, maxsplit=1)[0].strip()
        thinking = request.with_thinking
        texts = ["\n".join(transcript_lines(message, with_thinking=thinking)) for message in request.messages]
        if size(prior) > room // 3:
            texts, prior = [*transcript_lines(user(prior, kind="digest")), *texts], ""
        room -= size(prior)
        chunks = chunked(filter(None, texts), room, size)
        while len(chunks) > 1:
            self.partial_digests.clear()
            for chunk in chunks:
                self.partial_digests.append((yield from self._call(chunk)))
            lines = (line for part in self.partial_digests for line in transcript_lines(user(part, kind="digest")))
            merged = chunked(lines, room, size)
            if len(merged) >= len(chunks):
                raise DigestRejected("the digester's window is too small to merge its digests")
            chunks = merged
        return (yield from self._call("".join(chunks), prior_digest=prior, last=True))

    def _room(self) -> int:
        """The number of tokens for a transcript."""
        window = self.digester.window
        around = self._prompt("", prior_digest="none", last=True)
        room = window - self.reply_tokens - self.digester.size(self.prompt.system + around) - _FRAMING_TOKENS
        if room < _MIN_ROOM:
            raise DigestRejected(f"the digester's window of {window:,} tokens has no room for a transcript")
        return max(_MIN_ROOM, int(room * self.room_share))

    def _prompt(self, transcript: str, *, prior_digest: str, last: bool) -> str:
        return self.prompt.write(
            transcript,
            prior_digest=prior_digest,
            max_words=int(self.reply_tokens * _WORDS_PER_TOKEN) if self.request.prompt is None else 0,
            instructions=self.request.instructions if last else "",
            added=self.added,
        )

    def _call(self, transcript: str, *, prior_digest: str = "", last: bool = False) -> Calls:
        request = self.request
        call = DigesterCall(
            system=self.prompt.system,
            text=self._prompt(transcript, prior_digest=prior_digest, last=last),
            model=self.digester.model,
            max_tokens=self.reply_tokens,
            reasoning=self.digester.reasoning,
            signal=request.stop_signal,
            prefix=request.cached_prefix if self.room_share == 1.0 else (),
        )
        if not call.prefix and self.digester.size(call.system + call.text) + self.reply_tokens > self.digester.window:
            raise ValueError(_TOO_LONG)  # joined chunks may have more tokens than the sum of their sizes
        reply = yield call
        if not isinstance(reply, DigesterReply):
            raise DigestRejected(f"the digester returned {type(reply).__name__} instead of a DigesterReply")
        if reply.usage is not None:
            pairs = zip(self.usage or Usage(), reply.usage, strict=True)
            self.usage = Usage(*(left + right for left, right in pairs))
        is_long = len(reply.text) > _MAX_CHARS_PER_TOKEN * request.max_tokens
        cause = check_size(request.count_tokens(reply.text), most=request.max_tokens) if is_long else ""
        asked = (self.prompt.system, self.prompt.template)
        _reject(redact(cause or reject_reply(reply, prompt=call.text, instructions=asked))[:_CAUSE_CHARS])
        text, removed = clean_reply(reply.text, allowed=self.user_text)
        self.removed_instructions += removed
        _reject(reject_body(text, sections=request.prompt is None))
        return text

    def finish(self, body: str) -> Digest:
        """The finished digest, with facts from the record added. Raises `DigestRejected` if the size is wrong."""
        request, count_tokens = self.request, self.request.count_tokens
        facts = request.facts or extract_facts(request.messages, request.first_index)
        reference = "" if request.plain_list else f"{REFERENCE}\n"
        head = count_tokens(request.scope.message(reference, header=request.header).text)
        if (least := request.min_tokens) is None:
            covered = request.covered_tokens or count_tokens(flatten_transcript(request.messages))
            least = min(_MIN_TOKENS, int(_MIN_SHARE * covered))
        size = count_tokens(body)
        _reject(check_size(size + head, most=request.max_tokens) or check_size(size, least=least))
        text, loss = with_certain_facts(
            body,
            facts,
            min_coverage=request.min_coverage,
            max_tokens=request.max_tokens - head,
            count_tokens=count_tokens,
            kept_indexes=request.kept_indexes,
            plain_list=request.plain_list,
        )
        text = without_handles(text) if request.plain_list else text
        text, removed = remove_instructions(text, allowed=f"{self.user_text}\n{facts.user_text}", has_turns=True)
        message = request.scope.message(f"{reference}{text}", header=request.header, role=request.role)
        if request.covered_tokens:
            _reject(check_size(count_tokens(message.text), covered=request.covered_tokens))
        removed += self.removed_instructions
        if removed:
            loss = replace(loss, unsourced=(*loss.unsourced, f"orders to the reader: {removed}"))
        return Digest(message=message, by=self.digester.name, loss=loss, usage=self.usage)


def _reject(cause: str) -> None:
    if cause:
        raise DigestRejected(cause)


# Splitting a transcript into chunks. A chunk that continues a message begins with the speaker's mark again. So text
# inside a message cannot look like a speaker's mark at the start of a chunk.

CONTINUED = " (goes on): "
_SPEAKER = re.compile(r"» [^\s:]{1,40}(?: [^\s:]{1,80}(?=:))?")


def chunked(texts: Iterable[str], max_tokens: int, count_tokens: CountTokens) -> list[str]:
    r"""The texts in order, joined into chunks of at most `max_tokens`.

    >>> chunked(["» you: the first line\nthe second line", "» agent: yes"], 36, len)
    ['» you: the first line', '» you (goes on): the second line', '» agent: yes']
    """
    chunks: list[str] = []
    batch: list[str] = []
    used = 0
    for text in texts:
        for piece in _split(text, max_tokens, count_tokens):
            tokens = count_tokens(piece) + 1
            if batch and used + tokens > max_tokens:
                chunks.append("\n".join(batch))
                batch, used = [], 0
            batch.append(piece)
            used += tokens
    return [*chunks, "\n".join(batch)] if batch else chunks


def _split(text: str, max_tokens: int, count_tokens: CountTokens) -> Iterator[str]:
    """The pieces of a text. A piece ends after a line if possible, and otherwise after a word if possible."""
    found = _SPEAKER.match(text)
    prefix, mark = "", (found[0] if found else "»") + CONTINUED
    while text:
        end = len(text)
        while (tokens := count_tokens(prefix + text[:end]) + 1) > max_tokens and end > 1:
            end = max(1, min(end - 1, end * max_tokens // tokens))
        if end < len(text):
            cuts = (text.rfind(space, end // 2, end) for space in "\n ")
            end = next((cut + 1 for cut in cuts if cut > 0), end)
        yield prefix + text[:end].removesuffix("\n")
        text, prefix = text[end:], mark
