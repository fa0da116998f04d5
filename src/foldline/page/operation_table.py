"""The table of all operations of the page's API."""

from __future__ import annotations

from foldline.page.actions import PageActions
from foldline.page.api import PageApi
from foldline.page.operations import SESSION, Operation, Parameter
from foldline.page.replay_report import replay_report

_NUMBER = Parameter(name="number", about="The number, counted from 1.", type="integer", required=True, least=1)


def _answer(**names: str) -> dict[str, str]:
    """The fields of an answer with their types. Each keyword is a type; its value lists the fields of this type.

    In a keyword, `_or_null` says that the fields may be null.

    >>> _answer(string="id version", object_or_null="digest")
    {'id': 'string', 'version': 'string', 'digest': 'object|null'}
    """
    return {name: kind.replace("_or_", "|") for kind, listed in names.items() for name in listed.split()}


_SUMMARY = _answer(
    string="version model cache",
    integer="tokens usable window folds",
    boolean="exact reports_usage",
    array="marks states compactions",
    number_or_null="last_fold_at",
)
_OUTLINE = _answer(
    string="version model session branch folded owner",
    integer="messages folds cut left",
    array="branches pins removed fold_list compactions policy",
    boolean="can_change",
)
_REPORT = _answer(string="source assumption need reason notice", array="blocks", object_or_null="refusal")


def operation_table(api: PageApi, actions: PageActions) -> tuple[Operation, ...]:
    """All operations."""
    return (
        *_session_operations(api),
        *_message_operations(api),
        *_report_operations(api),
        *_fold_operations(actions),
        *_pin_operations(actions),
    )


def _session_operations(api: PageApi) -> tuple[Operation, ...]:
    against = Parameter(
        name="against", about="The request to compare with; 0: the previous one.", type="integer", default=0, least=0
    )
    return (
        Operation(
            path="status",
            call=api.status,
            summary="What the page serves",
            returns=_answer(string="foldline ledger", integer="owners", array="logs", boolean="read_only"),
        ),
        Operation(
            path="sessions",
            call=api.sessions,
            summary="List the sessions",
            returns=_answer(string="version", array="sessions", integer="of_other_owners"),
        ),
        Operation(
            path="summary",
            call=api.summary,
            summary="The meter and the states of a session",
            parameters=SESSION,
            returns=_SUMMARY,
        ),
        Operation(
            path="session",
            call=api.session,
            summary="A session without its messages",
            parameters=SESSION,
            returns={**_OUTLINE, **_SUMMARY, **_REPORT},
        ),
        Operation(
            path="outline",
            call=api.outline,
            summary="The folds, pins and settings of a session; fast even for a long session",
            parameters=SESSION,
            returns=_OUTLINE,
        ),
        Operation(
            path="contents",
            call=api.contents,
            summary="The content of history and pins: tokens by kind, tool, MCP server and file",
            parameters=SESSION,
            returns=_answer(string="version", array="contents"),
        ),
        Operation(
            path="requests",
            call=api.requests,
            summary="The requests of a session, with cache, misses and savings",
            parameters=SESSION,
            returns=_answer(
                string="version",
                array="requests marks folds",
                object="saving cost",
                integer="usable window hidden growth_requests unreported",
                integer_or_null="turns_left requests_left",
                number_or_null="requests_per_turn",
            ),
        ),
        Operation(
            path="window",
            call=api.window,
            summary="The window at a request by kind of content, compared with another request",
            parameters=(*SESSION, _NUMBER, against),
            returns=_answer(
                integer="number against message tokens before cut", array="added kinds", string="came went"
            ),
        ),
        Operation(
            path="tree",
            call=api.tree,
            summary="A conversation, its sub-agents and its further conversations, with their cost",
            parameters=SESSION,
            returns=_answer(array="sessions", integer="requests", number_or_null="usd"),
        ),
    )


def _message_operations(api: PageApi) -> tuple[Operation, ...]:
    start = Parameter(name="start", about="The first message, counted from 0.", type="integer", default=0, least=0)
    stop = Parameter(name="stop", about="The end of the range.", type="integer", default=100, least=0)
    whole = Parameter(name="whole", about="Do not shorten long parts.", type="boolean", default=False)
    query = Parameter(name="query", about="A question or some words.", required=True)
    results = Parameter(name="results", about="Maximum number of passages.", type="integer", default=10, least=1)
    everywhere = Parameter(name="everywhere", about="Search all sessions of the owner.", type="boolean", default=False)
    return (
        Operation(
            path="messages",
            call=api.messages,
            summary="A range of messages, shortened",
            parameters=(*SESSION, start, stop),
            returns=_answer(integer="start total cut", array="messages"),
        ),
        Operation(
            path="message",
            call=api.message,
            summary="One message with all its parts",
            parameters=(*SESSION, _NUMBER, whole),
            returns=_answer(integer="number tokens", string="role starts", array="parts", array_or_null="shown"),
        ),
        Operation(
            path="fold",
            call=api.fold,
            summary="One fold with its digest, its loss report and the difference to the previous fold",
            parameters=(*SESSION, _NUMBER),
            returns=_answer(
                integer="number cut left made_at before after",
                number="at",
                string="id folded reason first back",
                object_or_null="digest",
                boolean="applies can_refold is_final",
                number_or_null="taken_back_at",
                integer_or_null="previous",
                array="stays changes",
            ),
        ),
        Operation(
            path="lost_facts",
            call=api.lost_facts,
            summary="All facts that the digest of a fold does not show",
            parameters=(*SESSION, _NUMBER),
            returns=_answer(array="missing"),
        ),
        Operation(
            path="recall",
            call=api.recall,
            summary="Search the messages",
            parameters=(*SESSION, query, everywhere, results),
            returns=_answer(string="query", array="results", integer="tokens", boolean="complete has_more"),
        ),
        Operation(
            path="find",
            call=api.find,
            summary="Find a text: the numbers of the messages that contain it, and how often it occurs in each message",
            parameters=(*SESSION, Parameter(name="query", about="The text to find.", required=True)),
            returns=_answer(string="query", array="messages", integer="places"),
        ),
        Operation(
            path="search",
            call=api.search,
            summary="Search the messages of all sessions in the ledger",
            parameters=(query, results),
            returns=_answer(string="query", array="results", integer="tokens", boolean="complete has_more"),
        ),
    )


def _report_operations(api: PageApi) -> tuple[Operation, ...]:
    by = Parameter(name="by", about="Group by day, month, project, model or session.", default="day")
    source = Parameter(name="source", about="Read the ledger or the files of agents.", default="ledger")
    policies = Parameter(name="policies", about="Names of policies, with commas.", default="")
    window = Parameter(
        name="window", about="The window in tokens; 0: the session's.", type="integer", default=0, least=0
    )
    return (
        Operation(
            path="advice",
            call=api.advice,
            summary="The messages that could leave the window now, and what a fold up to each would free and cost",
            parameters=SESSION,
            returns=_answer(string="version cache", array="rows"),
        ),
        Operation(
            path="totals",
            call=api.totals,
            summary="The number of requests of a session, and what foldline's folds saved",
            parameters=SESSION,
            returns=_answer(integer="requests", object="saving cost"),
        ),
        Operation(
            path="money",
            call=api.money,
            summary="Tokens and money of all sessions, what misses cost, and what foldline's folds saved",
            parameters=(by, source),
            returns=_answer(
                string="by source",
                string_or_null="owner",
                integer="unreported of_other_owners",
                array="groups without_price",
                object="total",
                object_or_null="saved savings holdout",
            ),
        ),
        Operation(
            path="replay_session",
            call=api.replay_session,
            summary="What policies would have done with a session, beside what was really sent",
            parameters=(*SESSION, policies, window),
            returns=_answer(string="name format", integer="messages", array="policies", object_or_null="recorded"),
        ),
        Operation(
            path="replay",
            call=replay_report,
            summary="What policies would have done with a transcript; nothing is stored",
            parameters=(
                Parameter(name="name", about="The name of the file.", required=True),
                Parameter(name="text", about="The transcript.", required=True),
                policies,
                Parameter(
                    name="window", about="The window in tokens; 0: the model's.", type="integer", default=0, least=0
                ),
                Parameter(name="model", about="The model; by default the transcript's.", default=""),
                Parameter(name="format", about="The format of the transcript; by default it is detected.", default=""),
            ),
            changes=True,
            returns=_answer(string="name format", integer="messages", array="policies"),
        ),
    )


def _fold_operations(actions: PageActions) -> tuple[Operation, ...]:
    through = Parameter(name="through", about='Fold this message, its step and everything before: "#120".', default="")
    before = Parameter(name="before", about='Fold everything before this message: "#120".', default="")
    force = Parameter(name="force", about="Fold everything before the last user turn.", type="boolean", default=False)
    words = Parameter(name="instructions", about="Instructions for the digest's writer.", default="")
    preview = Parameter(name="preview", about="The id of the preview.", required=True)
    digest = Parameter(name="digest", about="Your own text in place of the preview's digest.")
    fold = Parameter(name="fold", about="The `id` of the fold in `fold_list`.", required=True)
    return (
        Operation(
            path="preview",
            call=actions.preview,
            summary="Preview a fold; nothing is changed",
            parameters=(*SESSION, through, before, force, words),
            changes=True,
            returns=_answer(string="id skip_reason"),
        ),
        Operation(
            path="revise",
            call=actions.revise,
            summary="The preview of a fold, computed again with another digest; nothing is changed",
            parameters=(
                *SESSION,
                preview,
                Parameter(name="digest", about="The text in place of the preview's digest.", required=True),
            ),
            changes=True,
            returns=_answer(string="leaves cache", integer="before after", object_or_null="digest"),
        ),
        Operation(
            path="approve",
            call=actions.approve,
            summary="Make the fold of a preview",
            parameters=(*SESSION, preview, digest),
            changes=True,
            returns=_answer(integer="folds cut before after", string="fold"),
        ),
        Operation(
            path="unfold_preview",
            call=actions.unfold_preview,
            summary="What taking back a fold would do, which must be the newest one; nothing is changed",
            parameters=(*SESSION, fold),
            changes=True,
            returns=_answer(
                integer="tokens usable rewrites",
                string="back need cache",
                boolean="folds_again",
                integer_or_null="previous",
                number_or_null="costs each_before each_after",
            ),
        ),
        Operation(
            path="unfold",
            call=actions.unfold,
            summary="Take back a fold, which must be the newest one",
            parameters=(*SESSION, fold),
            changes=True,
            returns=_answer(integer="folds tokens usable", string="need back", boolean="folds_again"),
        ),
        Operation(
            path="refold",
            call=actions.refold,
            summary="Restore a fold, which must be the one that was taken back last",
            parameters=(*SESSION, fold),
            changes=True,
            returns=_answer(integer="folds tokens usable"),
        ),
    )


def _pin_operations(actions: PageActions) -> tuple[Operation, ...]:
    return (
        Operation(
            path="pin",
            call=actions.pin,
            summary="Keep messages or a text in every view",
            parameters=(
                *SESSION,
                Parameter(name="handle", about='The messages: "#12", "#12-20".', default=""),
                Parameter(name="text", about="A text that is added as a note.", default=""),
                Parameter(name="name", about="The name of the pin.", default=""),
            ),
            changes=True,
            returns=_answer(array="pins messages added", boolean="without_thinking"),
        ),
        Operation(
            path="unpin",
            call=actions.unpin,
            summary="Remove a pin; a note that was added only to be pinned leaves the request",
            parameters=(*SESSION, Parameter(name="name", about="The name of the pin.", required=True)),
            changes=True,
            returns=_answer(
                array="pins",
                integer="message rewrites",
                boolean="left",
                string="kept_by cache",
                integer_or_null="copy_of",
                number_or_null="costs",
            ),
        ),
    )
