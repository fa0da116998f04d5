"""`foldline install` changes its own entries in a settings file and nothing else."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.watch.agent_hooks import EVENTS
from foldline.watch.installer import TARGETS, SettingsChange, is_foldline_entry, plan_change, settings_path
from support.agent_events import ANYTHING
from support.command import ENTRY, clean, one_sentence, spawned
from support.jsontext import Raw, written
from support.shapes import documented, wrong
from support.watching import shell, spawn

START = "/opt/a folder/bin/foldline"


ENTRY_OF_OURS = {"type": "command", "command": f"{shlex.quote(START)} hook", "timeout": 30}


STATUS_OF_OURS = {"type": "command", "command": f"{shlex.quote(START)} statusline"}


MINE = st.fixed_dictionaries(
    {"hooks": st.lists(st.just({"type": "command", "command": "mine.sh | tee log"}), max_size=2)},
    optional={"matcher": st.text(max_size=3)},
)


GROUPS = st.lists(st.one_of(MINE, st.just({}), st.just(Raw("1E400"))), max_size=2)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.text(max_size=5),
        "numbers": st.sampled_from([Raw("1E400"), Raw("1e3"), Raw("-0.0"), Raw("9" * 5000)]),
        "half a character": st.just("\ud800"),
        "twice": st.just(Raw('{"a": 1, "a": 2}')),
        "anything": ANYTHING.map(lambda value: json.loads(json.dumps(value), parse_constant=str)),
        "statusLine": st.sampled_from([{"type": "command", "command": "mine.sh"}, None]),
        "hooks": st.dictionaries(st.sampled_from([*EVENTS, "Stop"]), GROUPS, max_size=5),
    },
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Settings in any formatting: tidy or odd, with any line ends, with or without a mark or a last newline."""
    value = draw(SETTINGS)
    if draw(st.booleans()):
        return draw(st.sampled_from(["", "\ufeff"])) + written(value, Random(draw(st.integers(0, 10**6))))
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    tidy = json.dumps(json.loads(written(value, Random(1)), parse_int=str, parse_float=str), indent=indent)
    return tidy.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))) + draw(st.sampled_from(["", "\n", "\r\n", "\n\n"]))


def known(text: str) -> Any:
    """What a text says, numbers as they are spelled."""
    return json.loads(text.removeprefix("\ufeff"), parse_int=str, parse_float=str)


def wanted(was: dict[str, Any], name: str) -> dict[str, Any]:
    """Settings with ours in them."""
    entry = {**ENTRY_OF_OURS, "timeout": "30"}
    hooks = {**was.get("hooks", {})}
    for event in EVENTS:
        hooks[event] = [*hooks.get(event, []), {"hooks": [entry]}]
    status = {} if name == "codex" or "statusLine" in was else {"statusLine": STATUS_OF_OURS}
    return {**was, "hooks": hooks, **status}


def planned(file: Path, name: str = "claude-code", *, remove: bool = False) -> SettingsChange:
    return plan_change(TARGETS[name], file, remove=remove, start=shlex.quote(START))


@given(texts(), st.sampled_from(list(TARGETS)))
def test_installing_and_uninstalling_restores_the_file_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str
) -> None:
    file = tmp_path_factory.mktemp("settings") / "settings.json"
    before = text.encode()
    file.write_bytes(before)
    planned(file, name).apply()
    after = file.read_bytes()
    assert known(after.decode()) == wanted(known(text), name)
    assert planned(file, name).after == after.decode(), "installing again changes nothing"
    planned(file, name, remove=True).apply()
    assert file.read_bytes() == before
    assert planned(file, name, remove=True).after == text


@given(texts())
def test_entries_of_another_installation_are_replaced_and_removed(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.mktemp("settings") / "settings.json"
    file.write_bytes(text.encode())
    plan_change(TARGETS["claude-code"], file, start="/usr/bin/python3.9 -m foldline.cli").apply()
    planned(file).apply()
    assert known(file.read_text("utf-8")) == wanted(known(text), "claude-code")
    planned(file, remove=True).apply()
    assert file.read_bytes() == text.encode()


@pytest.mark.parametrize("name", TARGETS)
def test_uninstalling_deletes_a_file_that_installing_created(tmp_path: Path, name: str) -> None:
    file = tmp_path / "deep" / "er" / "settings.json"
    planned(file, name).apply()
    assert file.read_text().endswith("}\n")
    planned(file, name, remove=True).apply()
    assert not file.exists()
    assert not planned(file, name, remove=True).diff


def test_uninstalling_from_a_reformatted_file_leaves_no_empty_containers(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"model": "opus"}')
    planned(file).apply()
    file.write_text(json.dumps(json.loads(file.read_text()), indent=2))
    planned(file, remove=True).apply()
    assert json.loads(file.read_text()) == {"model": "opus"}


def test_new_entries_are_formatted_like_their_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'{\r\n\t"hooks": {\r\n\t\t"Stop": [{"hooks": []}]\r\n\t}\r\n}')
    planned(file).apply()
    lines = file.read_bytes().split(b"\r\n")
    assert b"\n" not in b"".join(lines)
    assert lines[2:5] == [b'\t\t"Stop": [{"hooks": []}],', b'\t\t"UserPromptSubmit": [', b"\t\t\t{"]


@pytest.mark.parametrize(
    "command",
    [
        "foldline hook",
        "/usr/local/bin/foldline hook",
        "'/home/a b/bin/foldline' hook",
        "'C:\\Users\\me\\Scripts\\foldline.exe' hook",
        "/usr/bin/python3 -m foldline.cli hook",
        "'/Library/a b/python3.12' -m foldline.cli hook",
        shlex.quote("/home/o'brien/bin/foldline") + " hook",
    ],
)
def test_every_command_that_installing_writes_is_recognised(command: str) -> None:
    assert is_foldline_entry({"type": "command", "command": command}, "hook")
    assert not is_foldline_entry({"type": "command", "command": command}, "statusline")


@pytest.mark.parametrize(
    "command",
    [
        "cd x && foldline hook --mine | tee log",
        "foldline hook --mine",
        "foldline hook | tee log",
        "foldline hook|tee",
        "foldline hook; rm -f lock",
        "foldline hook &",
        "FOLDLINE_X=1 foldline hook",
        "X=/usr/bin/foldline hook",
        "a;/usr/bin/foldline hook",
        "/usr/bin/not-foldline hook",
        "sh -c 'foldline hook'",
        "/usr/bin/ruby -m foldline.cli hook",
        "python3 -m foldline.cli.other hook",
        "echo 'foldline hook",
        "",
    ],
)
def test_the_users_own_command_stays_even_if_it_calls_foldline(tmp_path: Path, command: str) -> None:
    file = tmp_path / "settings.json"
    mine = json.dumps({"hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": command}]}]}})
    file.write_text(mine)
    planned(file).apply()
    assert json.loads(file.read_text())["hooks"]["PreCompact"][0]["hooks"][0]["command"] == command
    planned(file, remove=True).apply()
    assert file.read_text() == mine


@pytest.mark.parametrize("value", [None, [], "foldline hook", {"type": "command"}, {"command": ["foldline", "hook"]}])
def test_a_value_that_is_not_an_entry_is_not_recognised(value: Any) -> None:
    assert not is_foldline_entry(value, "hook")


def test_a_hook_that_the_user_added_to_foldlines_group_stays(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    planned(file).apply()
    settings = json.loads(file.read_text())
    settings["hooks"]["PreCompact"][0]["hooks"].insert(0, {"type": "command", "command": "mine.sh"})
    file.write_text(json.dumps(settings, indent=2))
    assert not planned(file).diff
    planned(file, remove=True).apply()
    assert json.loads(file.read_text()) == {
        "hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": "mine.sh"}]}]}
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"hooks": {}, "hooks": {}}', '"hooks" appears twice'),
        ('{"statusLine": 1, "statusLine": 2}', '"statusLine" appears twice'),
        ('{"hooks": {"PreCompact": [], "PreCompact": []}}', '"PreCompact" appears twice'),
        ('{"hooks": {"Stop": [{"hooks": [], "hooks": []}]}}', '"hooks" appears twice'),
        ('{"hooks": []}', '"hooks" is not'),
        ('{"hooks": {"Stop": {}}}', '"Stop" is not'),
        ('{"a": NaN}', "not JSON"),
        ("[]", "not an object"),
        ("[" * 100_000, "not JSON"),
        ("{} {}", "not JSON"),
        ("", "empty"),
        ("\ufeff\n", "empty"),
        ("// remark\n{}", "not JSON"),
    ],
)
@pytest.mark.parametrize("remove", [False, True])
def test_settings_that_cannot_be_changed_safely_are_refused_with_a_hint(
    tmp_path: Path, text: str, says: str, remove: bool
) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="nothing was changed") as refused:
        planned(file, remove=remove)
    assert says in str(refused.value)
    assert str(file) in str(refused.value)
    assert file.read_text() == text


def test_settings_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match=r"UTF-8.*nothing was changed"):
        planned(file)


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
def test_settings_that_are_not_a_plain_file_are_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "settings.json"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(file)
    with pytest.raises(ConfigError, match="nothing was changed"):
        planned(file)


def test_a_read_only_settings_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    file = tmp_path / ".claude" / "settings.json"
    file.write_text("{}")
    file.chmod(0o444)
    said = one_sentence(spawned("install", "claude-code", "--project", "--yes", "--json", cwd=tmp_path))
    assert "read-only" in said
    assert "chmod u+w" in said
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("{}", 0o444)
    assert spawned("install", "claude-code", "--project", "--dry-run", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("was", [None, '{"model": "opus"}'])
def test_a_file_that_changed_since_the_change_was_shown_is_not_written(tmp_path: Path, was: str | None) -> None:
    file = tmp_path / "settings.json"
    if was is not None:
        file.write_text(was)
    change = planned(file)
    file.write_text('{"model": "sonnet"}')
    with pytest.raises(ConfigError, match=r"changed by another program.*again"):
        change.apply()
    assert file.read_text() == '{"model": "sonnet"}'


def test_an_edit_while_the_user_is_asked_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    file = tmp_path / ".claude" / "settings.json"
    file.write_text('{"model": "opus"}')
    with subprocess.Popen(
        [*ENTRY, "install", "claude-code", "--project"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean(),
        cwd=tmp_path,
    ) as asking:
        assert asking.stderr is not None
        while asking.stderr.read(1) != b"?":
            pass
        file.write_text('{"model": "sonnet"}')
        _, said = asking.communicate(b"y\n", timeout=60)
    assert asking.returncode == 2
    assert b"changed by another program" in said
    assert file.read_text() == '{"model": "sonnet"}'


def test_without_a_home_folder_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as it does for a user whom the system does not know
    with pytest.raises(ConfigError, match="set HOME or CODEX_HOME"):
        settings_path(TARGETS["codex"], project=None)


def test_the_change_is_reported_in_the_documented_shape(tmp_path: Path) -> None:
    for options, writes in ((["--dry-run"], False), (["--yes"], True), (["--yes"], False), (["--uninstall"], False)):
        done = spawned("install", "claude-code", "--project", "--json", *options, cwd=tmp_path)
        report = json.loads(done.stdout)
        assert not wrong(report, documented("install"))
        assert report["written"] is writes


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch on this machine")
def test_the_shown_change_can_be_applied_by_patch(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'{"model": "\xe2\x80\xa8\xc2\x85"}')
    change = planned(file)
    assert change.after is not None
    (tmp_path / "change").write_bytes(change.diff.encode())
    subprocess.run(["patch", str(file), "change"], cwd=tmp_path, capture_output=True, check=True)
    assert file.read_bytes() == change.after.encode()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the files")
@pytest.mark.parametrize("command", ["install claude-code --project <&-", "install claude-code --project >&-"])
def test_closed_standard_streams_give_a_one_line_error(tmp_path: Path, command: str) -> None:
    done = shell(command, tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode in (2, 4, 130)
    assert not (tmp_path / ".claude" / "settings.json").exists()


def test_installing_shows_and_writes_the_change_and_uninstalling_removes_it(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    shown = spawn("install", "claude-code", "--project", "--dry-run", cwd=tmp_path)
    assert b'+    "PreCompact": [' in shown.stdout
    assert not file.exists()
    refused = spawn("install", "claude-code", "--project", cwd=tmp_path, given=b"n\n")
    assert refused.returncode == 130
    assert not file.exists()
    assert spawn("install", "claude-code", "--project", "--yes", cwd=tmp_path).returncode == 0
    command = json.loads(file.read_text())["statusLine"]["command"]
    line = subprocess.run(command, shell=True, input=b"{}", capture_output=True, check=True)
    assert line.stdout == b"\n"
    again = spawn("install", "claude-code", "--project", "--yes", cwd=tmp_path)
    assert b"nothing to change" in again.stderr
    assert spawn("install", "claude-code", "--project", "--uninstall", "--yes", cwd=tmp_path).returncode == 0
    assert not file.exists()


def test_the_users_own_status_line_stays(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"statusLine": {"type": "command", "command": "mine.sh"}}')
    done = spawn("install", "claude-code", "--project", "--yes", cwd=tmp_path)
    assert json.loads(file.read_text())["statusLine"]["command"] == "mine.sh"
    assert b"your own status line stays" in done.stderr


def test_the_path_of_the_users_settings_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    assert settings_path(TARGETS["claude-code"], project=None) == tmp_path / "moved" / "settings.json"
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_path(TARGETS["codex"], project=None) == tmp_path / ".codex" / "hooks.json"


def test_a_linked_settings_file_stays_a_link_and_keeps_its_mode(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    plan_change(TARGETS["claude-code"], link).apply()
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "foldline" in real.read_text()


OTHERS = st.fixed_dictionaries({"type": st.just("command"), "command": st.sampled_from(["mine.sh", "a 'b' $(c)", "é"])})


@given(
    st.lists(st.tuples(st.sampled_from(["PreCompact", "SessionStart", "Stop"]), st.booleans(), OTHERS), max_size=5),
    st.dictionaries(st.sampled_from(["model", "env", "permissions"]), st.sampled_from([{"A": "b"}, "opus", [1]])),
)
def test_entries_added_by_the_user_stay_after_uninstalling(
    tmp_path_factory: pytest.TempPathFactory, hooks: list[tuple[str, bool, dict[str, str]]], keys: dict[str, Any]
) -> None:
    file = tmp_path_factory.mktemp("home") / "settings.json"
    target = TARGETS["claude-code"]
    plan_change(target, file).apply()
    mine = json.loads(file.read_text("utf-8"))
    mine.update(keys)
    for event, within_ours, hook in hooks:
        groups = mine["hooks"].setdefault(event, [{"hooks": []}])
        if within_ours:
            groups[0]["hooks"].append(hook)
        else:
            groups.append({"matcher": "auto", "hooks": [hook]})
    file.write_text(json.dumps(mine), "utf-8")
    plan_change(target, file, remove=True).apply()
    left = json.loads(file.read_text("utf-8"))
    assert "foldline" not in json.dumps(left)
    assert {key: value for key, value in left.items() if key != "hooks"} == keys
    kept = sorted(
        (event, one["command"]) for event, groups in left.get("hooks", {}).items() for g in groups for one in g["hooks"]
    )
    assert kept == sorted((event, hook["command"]) for event, _, hook in hooks)
