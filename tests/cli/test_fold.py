"""`foldline fold`: every format, reports, and files that must not be overwritten."""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from foldline.testing.provider import judge
from foldline.wire import parse, read
from support.command import BAD, ENTRY, EXAMPLE, clean, foldline, one_sentence
from support.compacted_session import claude_code_session
from support.sessions import SESSIONS
from support.shapes import documented, wrong

WINDOW = ("--window", "12000")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    file = tmp_path / "session.jsonl"
    file.write_text(SESSIONS["claude-code"]())
    return file


@pytest.mark.parametrize("name", SESSIONS)
def test_every_format_is_written_in_its_own_format(name: str, tmp_path: Path) -> None:
    file, out = tmp_path / "in.json", tmp_path / "out.json"
    file.write_text(SESSIONS[name]())
    done = foldline("fold", str(file), "-o", str(out), *WINDOW, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not wrong(report, documented("fold"))
    assert report["after"] < report["usable"] < report["before"]
    back = read(out)
    assert back.format == read(file).format
    assert any("7091" in message.text for message in back.messages), "the task is still there"
    again = json.loads(foldline("inspect", str(out), *WINDOW, "--json").stdout)
    assert again["fold"]["need"] == "NONE", "what was folded to fit fits"


def test_the_report_names_the_folded_messages_and_the_digest(session: Path, tmp_path: Path) -> None:
    done = foldline("fold", str(session), "-o", str(tmp_path / "out.jsonl"), *WINDOW)
    assert done.returncode == 0
    assert "folded" in done.stdout
    assert "digest: local" in done.stdout
    assert f"wrote {tmp_path / 'out.jsonl'}" in done.stdout


def test_a_transcript_that_fits_is_written_unchanged(session: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    report = json.loads(foldline("fold", str(session), "-o", str(out), "--json").stdout)
    assert report["fold"] is None
    assert out.read_bytes() == session.read_bytes()
    assert "fits without a fold" in foldline("fold", str(session), "-o", str(out), "--force").stdout


def test_a_broken_request_is_written_repaired(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert foldline("fold", str(EXAMPLE), "-o", str(out)).returncode == 0
    report = json.loads(foldline("inspect", str(out), "--json").stdout)
    assert report["broken"] == []
    assert json.loads(out.read_text())["model"] == json.loads(EXAMPLE.read_text())["model"]


def test_standard_output_gets_the_file_and_standard_error_the_report(session: Path) -> None:
    done = foldline("fold", str(session), "-o", "-", *WINDOW)
    assert parse(done.stdout).format == "claude-code"
    assert "digest: local" in done.stderr
    done = foldline("fold", str(session), "-o", "-", *WINDOW, "--json")
    assert parse(done.stdout).format == "claude-code"
    assert not wrong(json.loads(done.stderr), documented("fold"))


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "gemini"])
def test_a_session_file_can_be_written_as_a_request(provider: str, session: Path, tmp_path: Path) -> None:
    out = tmp_path / "request.json"
    assert foldline("fold", str(session), "-o", str(out), *WINDOW, "--to", provider).returncode == 0
    assert read(out).format == provider
    assert json.loads(foldline("inspect", str(out), "--json").stdout)["broken"] == []


def test_no_file_is_overwritten_without_force(session: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    assert "--force" in one_sentence(foldline("fold", str(session), "-o", str(out), *WINDOW))
    assert out.read_text() == "mine"
    assert foldline("fold", str(session), "-o", str(out), *WINDOW, "--force").returncode == 0
    assert out.read_text() != "mine"
    before = session.read_bytes()
    assert "is also the input" in one_sentence(foldline("fold", str(session), "-o", str(session), "--force"))
    link = tmp_path / "link.jsonl"
    link.symlink_to(session)
    assert "is also the input" in one_sentence(foldline("fold", str(session), "-o", str(link), "--force"))
    assert session.read_bytes() == before


def test_an_output_that_cannot_be_written_is_refused(session: Path, tmp_path: Path) -> None:
    assert "is a folder" in one_sentence(foldline("fold", str(session), "-o", str(tmp_path)), code=4)
    missing = str(tmp_path / "a" / "b")
    assert "there is no folder" in one_sentence(foldline("fold", str(session), "-o", missing), code=4)
    assert "Missing option" in foldline("fold", str(session)).stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_refused(session: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "closed" in one_sentence(foldline("fold", str(session), "-o", str(closed / "x")), code=4)


def test_an_output_file_that_cannot_be_made_is_named(session: Path, tmp_path: Path) -> None:
    out = str(tmp_path / ("x" * 250))  # the name of the temporary file is too long
    assert f"{out}: File name too long" in one_sentence(foldline("fold", str(session), "-o", out), code=4)


def test_a_conversation_that_cannot_fit_exits_with_3_and_writes_no_file(session: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    said = one_sentence(foldline("fold", str(session), "-o", str(out), "--window", "40"), code=3)
    assert "raise --window to" in said
    said = one_sentence(foldline("fold", str(session), "-o", str(out), *WINDOW, "-p", "verbatim"), code=3)
    assert "never folds: use --policy balanced, or raise --window to" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["session.jsonl"]


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_error_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(BAD[name])
    assert "bad.json" in one_sentence(foldline("fold", str(file), "-o", str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


def test_missing_files_folders_and_files_with_many_conversations_are_refused(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    for path in (tmp_path / "nowhere.json", tmp_path):
        assert str(path) in one_sentence(foldline("fold", str(path), "-o", out))
    many = tmp_path / "many.json"
    many.write_text(json.dumps({"runs": [[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]]}))
    assert "contains 2 conversations" in one_sentence(foldline("fold", str(many), "-o", out))


def test_a_format_that_cannot_be_written_names_the_alternative(tmp_path: Path) -> None:
    records = [{"id": "0", "type": "user", "content": "word " * 4_000}]
    records += [{"id": str(n), "type": ("gemini", "user")[n % 2], "content": "word " * 400} for n in range(1, 40)]
    file = tmp_path / "recording.json"
    file.write_text(json.dumps({"sessionId": "s", "messages": records}))
    said = one_sentence(foldline("fold", str(file), "-o", str(tmp_path / "out"), *WINDOW))
    assert "gemini-cli" in said
    assert "--to" in said
    assert foldline("fold", str(file), "-o", str(tmp_path / "out"), *WINDOW, "--to", "gemini").returncode == 0


def test_a_compressed_file_is_read(session: Path, tmp_path: Path) -> None:
    packed = tmp_path / "session.jsonl.gz"
    packed.write_bytes(gzip.compress(session.read_bytes()))
    for source in (session, packed):
        foldline("fold", str(source), "-o", f"{source}.out", *WINDOW)
    assert Path(f"{session}.out").read_bytes() == Path(f"{packed}.out").read_bytes()


def test_a_closed_pipe_is_no_error(session: Path) -> None:
    command = [*ENTRY, "fold", str(session), "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean()) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
    assert running.returncode == 0


def test_a_handle_means_the_same_message_in_report_digest_and_ledger(tmp_path: Path) -> None:
    source, out = tmp_path / "session.jsonl", tmp_path / "folded.jsonl"
    source.write_text(claude_code_session(old=40, new=31, words=80))
    done = foldline("fold", str(source), "-o", str(out), "--window", "5000", "--system-tokens", "0", "--json")
    report = json.loads(done.stdout)
    assert report["fold"]["folded"].startswith("#41-")
    digest = next(message for message in read(out).messages if message.kind == "digest")
    named = {int(number) for number in re.findall(r"\[#(\d+)\]", digest.text)}
    assert named
    assert any(number > 41 for number in named)
    foldline("import", str(source), "--ledger", str(tmp_path / "a.db"))
    all_messages = read(source).messages
    for number in named:
        found = foldline("recall", "--handle", f"#{number}", "--ledger", str(tmp_path / "a.db"))
        assert all_messages[number - 1].text.split()[1] in found.stdout


def test_a_digest_without_a_model_is_never_said_to_claim_what_has_no_source(tmp_path: Path) -> None:
    source = tmp_path / "session.jsonl"
    digest = 'The user asked: "has that skill filtering been applied?"'
    source.write_text(claude_code_session(old=40, new=31, words=80, digest=digest))
    done = foldline("fold", str(source), "-o", str(tmp_path / "folded.jsonl"), "-w", "5000", "--system-tokens", "0")
    assert "policy balanced: #41-" in done.stdout
    assert "not in the folded messages" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
def test_a_device_is_written_to_and_never_replaced(session: Path, tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        pytest.skip("no devices can be made here")
    for flags in ((), ("--force",)):
        done = foldline("fold", str(session), "-o", str(device), *WINDOW, *flags)
        assert done.returncode == 0, done.stderr
        assert stat.S_ISCHR(device.stat().st_mode)


def test_a_folded_gemini_request_is_one_that_gemini_accepts(tmp_path: Path) -> None:
    turns = [
        {"role": role, "parts": [{"text": f"{place} " + "word " * 150}]}
        for place in range(60)
        for role in ("user", "model")
    ]
    body = {"contents": [*turns, {"role": "user", "parts": [{"text": "Go on."}]}]}
    assert judge("gemini", body, model="gemini-2.5-pro") is None
    for name, value in (("body", body), ("list", body["contents"])):
        file, out = tmp_path / f"{name}.json", tmp_path / f"{name}.out.json"
        file.write_text(json.dumps(value))
        assert foldline("fold", str(file), "-o", str(out), *WINDOW, "-m", "gemini-2.5-pro").returncode == 0
        written = json.loads(out.read_text())
        written = written if name == "body" else {"contents": written}
        assert len(written["contents"]) < len(body["contents"])
        assert judge("gemini", written, model="gemini-2.5-pro") is None
