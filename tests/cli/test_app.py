"""All commands: help with an example, `--json`, exit codes, completion and a fast start."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from foldline.cli.app import COMMANDS, EXIT_CODES, cli
from foldline.cli.watch import EXITS
from support.command import ENTRY, EXAMPLE, ROOT, clean, foldline, one_sentence, spawned
from support.shapes import documented

PRINTS_NO_REPORT = {"completion", "bench", "hook", "statusline", "mcp", "run"}
"""Commands whose output is not a report of their own: an agent reads what `hook`, `statusline` and `mcp` print, and
each measurement of `bench` has its own options, and the output of `run` is that of the client."""


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    text = command(name).get_help(click.Context(command(name), info_name=f"foldline {name}"))
    assert re.search(rf"Example: +foldline {name}", text), text
    assert "\\b" not in text


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PRINTS_NO_REPORT))
def test_every_report_command_has_json_output(name: str) -> None:
    found = command(name)
    every = found.commands.values() if isinstance(found, click.Group) else [found]
    for one in every:
        assert "--json" in [option for param in one.params for option in param.opts], one.name


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PRINTS_NO_REPORT))
def test_every_json_output_is_documented(name: str) -> None:
    assert documented(name)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_the_docs_exists(page: Path) -> None:
    """Its name and its options are real; what it would do is tested elsewhere."""
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
        for words in re.findall(r"(?:^|[|] |-- )foldline ((?:[^|#\n]|(?<=\S)#)*)", block, re.MULTILINE):
            name, *rest = shlex.split(words)
            found = command(name)
            if not isinstance(found, click.Group) and name != "bench":
                context = click.Context(found, info_name=name)
                found.make_parser(context).parse_args([word for word in rest if word not in (">>", ">")])


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    done = foldline("--help")
    assert done.returncode == 0
    assert all(
        re.search(rf"^  {name} +{re.escape(row.summary[:20])}", done.stdout, re.MULTILINE)
        for name, row in COMMANDS.items()
    )
    assert all(re.search(rf"^ +{code}  ", done.stdout, re.MULTILINE) for code in EXIT_CODES)


def test_help_imports_no_command_module() -> None:
    """It should answer at once, so nothing but click is imported for it."""
    code = (
        "import sys; sys.argv = ['foldline', '--help']\nimport foldline.cli.app as app\napp._run()\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean())
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {name for name in loaded if name.startswith("foldline.")} == {
        *("foldline.cli", "foldline.cli.app", "foldline.errors")
    }
    assert "rich" not in loaded


def test_an_unknown_command_is_answered_with_a_similar_one() -> None:
    done = foldline("inspekt", "x")
    assert done.returncode == 2
    assert "No such command 'inspekt'. Did you mean 'inspect'?" in done.stderr
    assert "Did you mean" not in foldline("xyzzy").stderr


def test_wrong_usage_exits_with_2() -> None:
    for arguments in (
        ["fly"],
        ["inspect"],
        ["inspect", "a", "b"],
        ["inspect", "--nothing", "x"],
        ["completion", "csh"],
    ):
        done = foldline(*arguments)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
    assert "foldline fly" not in foldline("fly").stdout
    assert foldline("--version").stdout.startswith("foldline")


def test_foldline_without_a_command_shows_help() -> None:
    done = foldline()
    assert "inspect" in done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(shell: str) -> None:
    done = foldline("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_FOLDLINE_COMPLETE" in done.stdout


def test_completion_offers_commands_presets_and_files() -> None:
    def ask(words: str) -> str:
        count = str(len(words.split(" ")) - 1)
        done = spawned(_FOLDLINE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
        return str(done.stdout)

    assert "plain,inspect" in ask("foldline ins")
    assert "plain,thrifty" in ask("foldline inspect --policy thr")
    assert "file," in ask("foldline inspect --policy my-own")


@pytest.mark.parametrize("arguments", [["inspect", str(EXAMPLE)], ["config", "--all"], ["--help"]])
def test_a_closed_pipe_is_no_error(arguments: list[str]) -> None:
    with subprocess.Popen([*ENTRY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean()) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_exits_with_130_and_one_word(tmp_path: Path) -> None:
    pipe = tmp_path / "slow.json"
    os.mkfifo(pipe)
    with (
        subprocess.Popen([*ENTRY, "inspect", str(pipe)], stderr=subprocess.PIPE, env=clean()) as running,
        pipe.open("wb"),  # opens when the command does
    ):
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert running.stderr.read().split() == [b"stopped"]
    assert running.returncode == 130


@pytest.mark.parametrize(("module", "args"), [("click", ["inspect", "x.json"]), ("json", ["hook"])])
def test_ctrl_c_while_modules_are_imported_exits_with_130_and_one_word(
    module: str, args: list[str], tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", "foldline.cli", *args], capture_output=True, env=clean(PYTHONPATH=paths), check=False
    )
    assert (ended.returncode, ended.stderr.split()) == (130, [b"stopped"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_read_permission_is_one_error_sentence(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text("[]")
    file.chmod(0)
    assert "secret.json" in one_sentence(foldline("inspect", str(file)))


def test_output_has_colour_only_if_requested() -> None:
    done = foldline("inspect", str(EXAMPLE), FORCE_COLOR="1", NO_COLOR="", TERM="xterm-256color")
    assert "\x1b[1m" in done.stdout
    plain = foldline("inspect", str(EXAMPLE), "--no-color", FORCE_COLOR="1", NO_COLOR="", TERM="xterm-256color")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain.stdout)


def test_an_unknown_option_among_words_is_answered_with_how_to_quote_them(tmp_path: Path) -> None:
    words, hint = ("which", "theme", "crashed", "with", "-r"), "quote the whole text, or write -- before the text."
    assert f"No such option '-r'.\nIf the option belongs to the text, {hint}" in foldline("recall", *words).stderr
    ledger = str(tmp_path / "a.db")
    for right in ((" ".join(words),), ("--", *words)):
        assert "No such option" not in foldline("recall", "--ledger", ledger, *right).stderr
    assert hint not in foldline("inspect", str(EXAMPLE), "-r").stderr


def test_a_number_that_is_none_is_called_no_whole_number() -> None:
    done = foldline("inspect", str(EXAMPLE), "-w", "abc")
    assert done.returncode == 2
    assert "'abc' is not a valid whole number." in done.stderr


@pytest.mark.parametrize(
    "arguments", [["inspect"], ["replay"], ["usage"], ["fold", "-o", "-"], ["watch"]], ids=" ".join
)
def test_a_missing_file_has_one_wording_in_every_command(arguments: list[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.json")
    done = foldline(*arguments, missing)
    assert (done.returncode, done.stderr) == (2, f"foldline: {missing}: there is no such file: check the path\n")


def test_the_exit_codes_of_watch_are_listed() -> None:
    for code, why in EXITS.items():
        assert code in EXIT_CODES
        assert code < 10 or code > 100 or EXIT_CODES[code] == f"watch: {why}"
