"""Search: what is found, what is not, and the limits of a result."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import strategies
from foldline import Session, ledger
from foldline.errors import InputError
from foldline.ledger import Branch, Store
from foldline.ledger.index_feed import MAX_UNINDEXED_BYTES, catch_up
from foldline.measure.estimator import CHARS_4, Estimator
from foldline.message import Message, ToolCall, assistant, system, tool, user
from foldline.placeholders import OMISSION
from foldline.recall.excerpt import excerpt, searchable_text
from foldline.recall.ranking import PASSAGE_GAP
from foldline.recall.result import RecallResult
from foldline.recall.search import RecallQuery, search, search_owners
from foldline.recall.terms import STOP
from foldline.recall.text_index import TextIndex
from support.recalls import stored

FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
MANY = settings(max_examples=150)

HOSTILE = [
    '" OR 1=1; DROP TABLE messages; --',
    "NEAR(a b, 3) AND terms:x* ^y",
    "'); SELECT * FROM owners; --",
    "{1,2,3} {}, NULL",
    "\x00\x00nul\x00",
    "\ud800 alone",
    "%s %(x)s ? $1 :name",
    "a" * 1_000_000,
    "word " * 200_000,
    "(" * 5000,
    "\\\\x00 E'\\000'",
    "🎉👩‍👩‍👧",
    "",
    "   \n\t",
    "the of and",
]


def positions(found: RecallResult) -> list[int]:
    return [line.position for result in found.results for line in result.messages]


def ask(store: Store, branch: Branch, query: str, **options: object) -> RecallResult:
    return search(store, branch, RecallQuery(query=query, **options))  # type: ignore[arg-type]  # whatever the test gives


@FEW
@given(
    messages=st.lists(strategies.texts(), max_size=30),
    at=st.integers(0, 30),
    word=st.from_regex(r"[a-z]{9,14}q7", fullmatch=True),
)
def test_a_message_with_a_rare_word_of_the_query_is_found(ground: str, messages: list[str], at: int, word: str) -> None:
    talk = [user(text) for text in messages]
    talk.insert(at, user(f"they said that {word} was it"))
    with stored(ground, talk) as (store, branch):
        where = min(at, len(messages))
        for query in (word, word.upper(), f"What was the {word}?"):
            assert where in positions(ask(store, branch, query))


@FEW
@given(
    query=strategies.texts(),
    messages=st.lists(strategies.sound(), max_size=4),
    tokens=st.integers(50, 900),
    results=st.integers(1, 12),
)
def test_limits_hold_and_everything_shown_is_verbatim(
    ground: str, query: str, messages: list[list[Message]], tokens: int, results: int
) -> None:
    talk = [message for part in messages for message in part]
    with stored(ground, talk) as (store, branch):
        found = ask(store, branch, query, tokens=tokens, results=results)
        assert Estimator().count(str(found)).upper == found.tokens <= tokens or not found.results
        assert len(found.results) <= results
        shown = positions(found)
        assert len(shown) == len(set(shown))
        for result in found.results:
            numbers = [line.position for line in result.messages]
            assert all(1 <= after - before <= PASSAGE_GAP for before, after in pairwise(numbers))
            for line in result.messages:
                text = searchable_text(talk[line.position])
                kept = line.text.removeprefix(f"{OMISSION} ").removesuffix(f" {OMISSION}")
                assert line.text == text if line.is_whole else kept in text
        again = ask(store, branch, query, tokens=tokens, results=results)
        assert again == found


def test_hostile_queries_are_only_text(ground: str) -> None:
    talk = [user("select all from messages, needle"), *map(user, HOSTILE), assistant("1=1 owners")]
    with stored(ground, talk) as (store, branch):
        for query in HOSTILE:
            assert ask(store, branch, query).tokens <= 2000
        assert 0 in positions(ask(store, branch, "needle"))
        assert [stored.message for stored in store.read(branch)] == talk


@pytest.mark.promise("I17")
def test_messages_of_another_owner_are_not_found(ground: str) -> None:
    """Ten owners with the same session names and nearly the same words."""
    secrets = ["apple", "birch", "cedar", "daisy", "elder", "fern", "grape", "hazel", "iris", "juniper"]
    first = ledger.open(ground, owner="isolated apple", index=TextIndex())
    stores = [first, *(ledger.for_owner(first, f"isolated {secret}") for secret in secrets[1:])]
    for secret, store in zip(secrets, stores, strict=True):
        store.append(store.session("talk"), [user(f"the secret word is {secret}"), assistant("noted, the secret")])
    for number, store in enumerate(stores):
        branch = store.session("talk")
        for everywhere in (False, True):
            found = str(ask(store, branch, "the secret word", everywhere=everywhere))
            assert [secret for secret in secrets if secret in found] == [secrets[number]]
            assert not ask(store, branch, secrets[number - 1], everywhere=everywhere).results
    first.close()


def test_other_sessions_of_the_owner_are_found_with_everywhere(ground: str) -> None:
    with stored(ground, [user("the worker listens on 8081")], session="ticket-41") as (store, _):
        other = store.session("ticket-42")
        store.append(other, [user("hello"), assistant("hi")])
        assert not ask(store, other, "worker 8081").results
        found = ask(store, other, "worker 8081", everywhere=True)
        assert found.results[0].session == "ticket-41"
        assert "8081" in str(found)


def test_a_search_covers_the_messages_of_its_branch(ground: str) -> None:
    with stored(ground, [user("shared alpha"), assistant("yes"), user("only main beta")]) as (store, main):
        side = store.fork(main, "side", at=2)
        store.append(side, [user("only side gamma")])
        assert positions(ask(store, main, "beta"))
        assert not ask(store, side, "beta").results
        assert 2 in positions(ask(store, side, "gamma"))
        assert not ask(store, main, "gamma").results
        for branch in (main, side):
            assert 0 in positions(ask(store, branch, "alpha"))


def test_messages_in_the_view_can_be_left_out(ground: str) -> None:
    with stored(ground, [user("port 8081"), assistant("port 8081 again"), user("port 8081 once more")]) as (
        store,
        branch,
    ):
        assert positions(ask(store, branch, "port", before=1)) == [0]


@pytest.mark.parametrize(
    ("message", "query"),
    [
        (assistant("", ToolCall(id="c", name="read_file", arguments='{"path": "src/worker_pool.py"}')), "workerPool"),
        (tool("c", "Traceback: KeyError 'tenantId' in resolve_tenant"), "tenant id KeyError"),
        (user("東京都に住んでいます"), "東京"),
        (user("commit 4d9a5ca1b2c3d4e5f60718293a4b5c6d7e8f9012 broke it"), "4d9a5ca"),
        (system("Never push to the branch release/2024-11"), "release branch 2024-11"),
    ],
)
def test_calls_results_and_any_script_are_searched(ground: str, message: Message, query: str) -> None:
    talk = [user("good morning"), assistant("hello"), message, user("and now?"), assistant("let us see")]
    with stored(ground, talk) as (store, branch):
        assert 2 in positions(ask(store, branch, query))


def test_the_best_excerpt_of_a_long_result_is_shown(ground: str) -> None:
    lines = [f"line {number}: nothing to see" for number in range(5000)]
    lines[4321] = "line 4321: FATAL could not bind to port 8081"
    with stored(ground, [tool("c", "\n".join(lines))]) as (store, branch):
        found = ask(store, branch, "which port could not be bound?")
        assert "could not bind to port 8081" in str(found)
        assert len(str(found)) < 1_200


def test_a_rare_word_in_a_huge_result_outranks_common_words(ground: str) -> None:
    words = "request handler timeout retry connection server client worker queue".split()  # noqa: SIM905
    talk = [user(f"the {words[at % 9]} and the {words[at * 5 % 9]} of the {words[at * 7 % 9]}") for at in range(120)]
    talk[60] = tool("c", " ".join(words) * 900 + " zebra-4711 " + " ".join(words) * 900)
    with stored(ground, talk) as (store, branch):
        best = ask(store, branch, "zebra-4711").results[0]
        assert 60 in [line.position for line in best.messages]
        assert "zebra-4711" in str(best)


def test_messages_written_without_the_index_are_found(ground: str) -> None:
    with stored(ground, [user("indexed alpha")]) as (store, branch):
        store.index = None
        store.append(branch, [user("forgotten beta"), assistant("yes")])
        assert 1 in positions(ask(store, branch, "beta"))
        assert catch_up(store.tx, TextIndex()) == 0


def test_an_older_ledger_is_indexed_again(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with stored(str(path), [user("old alpha"), assistant("older beta")]) as (store, _):
        catch_up(store.tx, TextIndex())
        undo = [f"ALTER TABLE {table} RENAME COLUMN segment TO strand" for table in ("messages", "remarks", "entries")]
        undo += ["ALTER TABLE segments RENAME TO strands", "ALTER TABLE documents RENAME COLUMN segment TO strand"]
        undo += ["DROP TABLE unread", "DELETE FROM migrations WHERE name IN ('unread', 'segments')"]
        store.tx.pool.write(lambda connection: [connection.run(sql) for sql in undo])
        owner = store.owner
    store = ledger.open(path, owner=owner)
    branch = store.session("talk")
    assert positions(ask(store, branch, "alpha"))
    assert positions(ask(store, branch, "beta", everywhere=True))
    store.close()


def test_unindexed_messages_are_indexed_by_the_next_search(ground: str) -> None:
    """However much is written, little is left unread, and every message is found."""
    with stored(ground, []) as (store, branch):
        for number in range(60):
            store.append(branch, [user(f"mark{number}x and {'plain words ' * 400}")])
        sql = "SELECT COALESCE(SUM(stop - start), 0) FROM unread WHERE owner = ?"
        left = store.tx.read(lambda connection: connection.run(sql, (store.tx.owner.id,)))[0][0]
        assert left * 4800 <= MAX_UNINDEXED_BYTES
        for number in range(60):
            assert number in positions(ask(store, branch, f"mark{number}x"))


def test_a_whole_discussion_comes_back_as_one_result(ground: str) -> None:
    talk = [user(f"{number}: about the weather and the lunch") for number in range(40)]
    talk[20:26] = [
        user("the battery should be solar"),
        assistant("solar is expensive"),
        user("how much?"),
        assistant("four euros a unit"),
        user("then a kinetic battery"),
        assistant("agreed"),
    ]
    with stored(ground, talk) as (store, branch):
        best = ask(store, branch, "what was said about the solar battery?").results[0]
        assert {20, 21, 22, 23, 24, 25} <= {line.position for line in best.messages}


@pytest.mark.promise("I19")
def test_omitted_text_is_marked_and_can_be_recalled(ground: str) -> None:
    with stored(ground, [user("needle " + "hay " * 2000)]) as (store, branch):
        found = ask(store, branch, "needle")
        assert OMISSION in found.results[0].messages[0].text
        assert not found.results[0].messages[0].is_whole
        assert found.results[0].handle == "#1"
        assert "recall by handle" in str(found)


def test_both_databases_rank_alike(shared_postgres: str) -> None:
    talk = [user(f"topic{number % 7} and word{number % 11} of {number}") for number in range(120)]
    answers = []
    for url in (":memory:", shared_postgres):
        with stored(url, talk) as (store, branch):
            answers.append(
                [ask(store, branch, query) for query in ("topic3", "word5 topic2", "word1 77 topic0 topic6")]
            )
    assert answers[0] == answers[1]


def test_retention_removes_messages_from_the_index(ground: str) -> None:
    with stored(ground, [user("old needle")], session="old") as (store, _):
        store.prune(older_than=2e11)
        new = store.session("new")
        store.append(new, [user("fresh hay")])
        for everywhere in (False, True):
            assert not ask(store, new, "needle", everywhere=everywhere).results
            assert ask(store, new, "hay", everywhere=everywhere).results


def test_impossible_limits_are_refused() -> None:
    for options in ({"tokens": 10}, {"results": 0}):
        with pytest.raises(InputError, match="too few"):
            RecallQuery(query="x", **options)  # type: ignore[arg-type]  # on purpose


@MANY
@given(
    text=strategies.texts(),
    wanted=st.dictionaries(strategies.texts().filter(bool), st.floats(0, 9), max_size=4),
    chars=st.integers(12, 400),
)
@example(text="x" * 500, wanted={"x": 1.0}, chars=12)
@example(text="a b " * 400, wanted={"a": 1.0, "b": 1.0}, chars=20)
def test_an_excerpt_is_short_and_verbatim(text: str, wanted: dict[str, float], chars: int) -> None:
    shown = excerpt(text, wanted, chars)
    assert len(shown) <= max(chars, 12)
    if len(text) <= chars:
        assert shown == text
    else:
        assert shown.removeprefix(f"{OMISSION} ").removesuffix(f" {OMISSION}") in text


def test_a_query_of_question_words_alone_is_searched(ground: str) -> None:
    assert "what" not in STOP
    with stored(ground, [user("The song is called What Why How"), assistant("I see")]) as (store, branch):
        assert 0 in positions(ask(store, branch, "what why how"))


def test_the_token_limit_holds_with_any_counter(ground: str) -> None:
    with stored(ground, [user("東京 " * 300) for _ in range(20)]) as (store, branch):
        found = search(store, branch, RecallQuery(query="東京", tokens=300))
        assert Estimator().count(str(found)).upper <= 300
        loose = search(store, branch, RecallQuery(query="東京", tokens=300), CHARS_4)
        assert CHARS_4.count(str(loose)).upper <= 300
        assert len(str(loose)) > len(str(found))


def test_the_answer_to_a_question_that_was_asked_before_is_shown_with_it() -> None:
    session = Session()
    for number in range(8):
        session.add(*_asked(f"Where is helper_{number} used?", f"helper_{number} decides when to retry.", 4))
    session.add(*_asked("Where is filesOverlap used?", "In PostCommit, line 607.", 5))
    session.add(*_asked("And how is filesOverlap tested?", "Not at all yet.", 5))
    found = session.recall("where is filesOverlap used?")
    assert [message.text for message in found.results[0].messages] == ["Where is filesOverlap used?"]
    assert "In PostCommit, line 607." in str(found.results[1])


def test_the_answer_at_the_end_of_a_long_turn_is_shown_with_its_prompt() -> None:
    session, prompt = Session(), "How can we solve the border colour of the editor?"
    answer = (
        "Done. " + "The theme maps each level to a token that was there before. " * 12 + "paint() draws the border."
    )
    session.add(*_asked(prompt, answer, 40))
    for number in range(3):
        session.add(*_asked(f"And {number}?", "The border colour of the editor is blue. " + "So it is. " * 20, 1))
    shown = [message.text for passage in session.recall("how did we solve it?") for message in passage.messages]
    assert shown == [prompt]
    shown = [message.text for passage in session.recall("solve the border colour") for message in passage.messages]
    assert prompt in shown
    assert any("paint() draws the border" in text for text in shown)


def test_a_message_that_does_not_match_is_not_shown_beside_a_match_of_another_turn() -> None:
    session = Session()
    session.add(*_asked("Rename the parser.", "The parser has a new name.", 1))
    session.add(*_asked("Which port does the worker use?", "7091.", 1))
    session.add(*_asked("Then write the tests.", "Written.", 1))
    shown = {message.text for passage in session.recall("worker port") for message in passage.messages}
    assert {"Which port does the worker use?", "7091."} <= shown
    assert not shown & {"The parser has a new name.", "Then write the tests."}


def test_tokens_that_are_left_lengthen_the_excerpts_of_replies() -> None:
    session = Session()
    lists = [
        f"The worktree {number} is dirty: " + ", ".join(f"file_{at}.py" for at in range(30)) for number in range(4)
    ]
    for text in lists:
        session.add(*_asked("Status?", text, 1))
    shown = {message.text for passage in session.recall("which worktree is dirty?") for message in passage.messages}
    assert set(lists) <= shown


@pytest.mark.parametrize(
    ("said", "query"), [("PR 132 is open", "which pull request?"), ("this repository", "the repo")]
)
def test_an_abbreviation_and_its_long_form_find_each_other(said: str, query: str) -> None:
    session = Session()
    session.add(*_asked("Rename the parser.", "Renamed.", 1))
    session.add(*_asked("What now?", said, 1))
    assert said in str(session.recall(query))


def test_the_sessions_of_several_owners_are_searched_together(ground: str) -> None:
    with stored(ground, [user("the worker listens on port 7091")]) as (one, _):
        other = ledger.for_owner(one, "owner of another session")
        other.append(other.session("chat"), [user("the worker listens on port 7092")])
        stranger = ledger.for_owner(one, "owner who is not asked for")
        stranger.append(stranger.session("chat"), [user("the worker listens on port 7093")])
        found = search_owners([one, other], RecallQuery(query="worker port"))
        assert {(passage.owner, passage.messages[0].text[-4:]) for passage in found} == {
            (one.owner, "7091"),
            (other.owner, "7092"),
        }


def test_calls_and_results_that_match_badly_are_left_out() -> None:
    session = Session()
    session.add(*_asked("Which port does the worker use?", "The worker listens on port 7091.", 6))
    for number in range(30):
        session.add(*_asked(f"Rename part {number}.", "Renamed.", 1))
    shown = [message for passage in session.recall("which port?").results for message in passage.messages]
    assert any("7091" in message.text for message in shown)
    assert not any(message.role == "tool" for message in shown)


def _asked(prompt: str, answer: str, calls: int) -> list[Message]:
    """A turn with some calls before its answer."""
    made: list[Message] = [user(prompt)]
    for number in range(calls):
        call = ToolCall(id=f"{prompt} {number}", name="edit", arguments='{"path": "a.go"}')
        made += [assistant("", call), tool(call.id, "The file a.go has been updated successfully.")]
    return [*made, assistant(answer)]


@pytest.mark.parametrize("query", ["which port has part 3", "port of src/part3.py", "part3.py"])
def test_a_call_that_matches_is_shown_with_its_result(query: str) -> None:
    session = Session()
    session.add(user("Look at all parts of the service."))
    for number in range(40):
        call = ToolCall(id=f"call {number}", name="read", arguments=f'{{"path": "src/part{number}.py"}}')
        comment = "# the queue keeps its order in any case\n"
        session.add(
            assistant("", call), tool(call.id, f"{comment * 40}PORT_{number} = {7000 + number}\n{comment * 40}")
        )
    assert "PORT_3 = 7003" in str(session.recall(query).results[0])


def test_a_call_that_is_shown_beside_a_better_match_is_shown_with_its_result() -> None:
    session = Session()
    rows = [f"row {row}: the proxy keeps a secret of its own" for row in range(60)]
    for number in range(60):
        call = ToolCall(id=f"read {number}", name="read", arguments=f'{{"path": "src/part{number}.py"}}')
        lines = [f"SECRET_PORT_PART{number} = {70_000 + number}", *rows[: 40 + number % 20]]
        session.add(user(f"Please check module part{number} and report."), assistant("I begin to read.", call))
        session.add(tool(call.id, "\n".join(lines)), assistant("All is well."))
    without = []
    for number in range(60):
        found = session.recall(f"what is the secret port of part{number}")
        shown = {message.position for passage in found.results for message in passage.messages}
        if 4 * number + 1 in shown and f"= {70_000 + number}" not in str(found):
            without.append(number)
    assert not without


def test_of_several_calls_in_one_message_the_result_of_the_matching_call_is_shown() -> None:
    session = Session()
    calls = [
        ToolCall(id=f"call {name}", name="read", arguments=f'{{"path": "src/{name}.py"}}') for name in ("one", "two")
    ]
    session.add(user("Look at both."), assistant("", *calls))
    session.add(tool("call one", "LIMIT = 10"), tool("call two", "SPEED = 20"), assistant("Done."))
    for number in range(8):
        session.add(*_asked(f"Rename part {number}.", "Renamed.", 1))
    shown = str(session.recall("what is in two?"))
    assert "SPEED = 20" in shown
    assert "LIMIT = 10" not in shown


@pytest.mark.parametrize("query", ["gRPC port", "what is the gRPC port", "which port"])
def test_the_question_that_is_being_answered_does_not_hide_the_result_with_the_answer(query: str) -> None:
    session = Session()
    session.add(user("Find the bug."))
    for number in range(30):
        call = ToolCall(id=f"t{number}", name="bash", arguments=f'{{"command": "cat file{number}.txt"}}')
        session.add(Message(role="assistant", parts=(call,)))
        line = f"line {number}: def handler_{number}(job): return {number * 7}"
        session.add(tool(call.id, 'data:\n  GRPC_PORT: "50977"' if number == 5 else line))
    session.add(assistant("Done so far."), user("What is the gRPC port?"))
    assert "50977" in str(session.recall(query))


def test_a_question_that_was_answered_is_found() -> None:
    session = Session()
    session.add(user("What is the gRPC port?"), assistant("It is 50977."))
    assert "What is the gRPC port?" in str(session.recall("gRPC port"))


@pytest.mark.parametrize("query", ["billing port", "which port does billing use?", "what is the billing port number"])
@pytest.mark.parametrize("setting", ["BILLING_PORT = 7341", "billing_port: 7341", "billingPort: 7341"])
@pytest.mark.parametrize("lines", [0, 30, 100])
def test_a_prompt_with_the_words_of_a_setting_does_not_hide_the_result_with_the_setting(
    query: str, setting: str, lines: int
) -> None:
    session = Session(model="claude-sonnet-5", tools=[])
    session.add({"role": "user", "content": "Port the billing service to asyncio."})
    more = "".join(f"LIMIT_{number} = {number}\n" for number in range(lines))
    files = {"a.py": "import os\n", "config.py": f"DEBUG = False\n{more}{setting}\n{more}", "b.py": "import json\n"}
    for name, body in files.items():
        call = {"type": "tool_use", "id": name, "name": "bash", "input": {"command": f"cat src/{name}"}}
        session.add({"role": "assistant", "content": [call]})
        session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": body}]})
    session.add({"role": "assistant", "content": "I have read the files."})
    session.add({"role": "user", "content": "Go on."})
    session.add({"role": "assistant", "content": "Done."})
    assert setting in str(session.recall(query))
