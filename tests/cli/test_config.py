"""`foldline config`: four layers, the source of each value, and one error sentence for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.cli.shared.settings import load_settings, project_file
from foldline.policy import Policy
from support.command import foldline, one_sentence
from support.shapes import documented, wrong


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A project in a repository, and a home with the user's own file."""
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    (home / "foldline").mkdir(parents=True)
    (project / "foldline.toml").write_text(
        'model = "gpt-4o"\n[policy]\npreset = "thrifty"\nkeep_tokens = 1\nkeep_messages = 1\nkeep_turns = 1\n'
    )
    (home / "foldline" / "config.toml").write_text('ledger = "own.db"\n[policy]\nkeep_messages = 2\nkeep_turns = 2\n')
    return project, home


def test_later_layers_override_earlier_ones_and_are_named(places: tuple[Path, Path]) -> None:
    project, home = places
    done = foldline(
        *("config", "--window", "50000", "--json"),
        cwd=project / "src",
        XDG_CONFIG_HOME=str(home),
        FOLDLINE_KEEP_TURNS="3",
    )
    report = json.loads(done.stdout)
    assert not wrong(report, documented("config"))
    knobs = report["policy"]
    assert [knobs[name]["value"] for name in ("keep_tokens", "keep_messages", "keep_turns")] == [1, 2, 3]
    assert [knobs[name]["source"] for name in ("keep_tokens", "keep_messages", "keep_turns", "keep_ratio")] == [
        str(project / "foldline.toml"),
        str(home / "foldline" / "config.toml"),
        "environment",
        "preset thrifty",
    ]
    assert knobs["window_tokens"] == {"value": 50_000, "source": "flag"}
    assert knobs["atom"] == {"value": "step", "source": "default"}
    assert report["settings"]["model"] == {"value": "gpt-4o", "source": str(project / "foldline.toml")}
    assert report["settings"]["ledger"]["value"].endswith("/home/foldline/own.db"), "beside the file that names it"
    assert report["files"] == [str(project / "foldline.toml"), str(home / "foldline" / "config.toml")]


def test_a_policy_flag_ignores_the_configured_knobs(places: tuple[Path, Path]) -> None:
    project, _ = places
    env = {"FOLDLINE_KEEP_TURNS": "3", "HOME": "/nowhere"}
    assert load_settings(policy="balanced", folder=project, environment=env).policy == Policy.preset("balanced")
    file = project / "mine.toml"
    file.write_text('preset = "verbatim"\nkeep_tokens = 9\n')
    assert load_settings(policy=str(file), folder=project, environment=env).policy == Policy.preset("verbatim").but(
        keep_tokens=9
    )
    assert load_settings(folder=project, environment=env).policy.keep_turns == 3


def test_a_model_flag_overrides_the_transcript_and_a_configured_model_does_not(places: tuple[Path, Path]) -> None:
    project, _ = places
    configured = load_settings(folder=project, environment={"HOME": "/nowhere"})
    assert (configured.model("claude-sonnet-5"), configured.model()) == ("claude-sonnet-5", "gpt-4o")
    assert load_settings(model="gpt-5", folder=project, environment={}).model("claude-sonnet-5") == "gpt-5"


def test_config_prints_the_source_of_each_value(places: tuple[Path, Path]) -> None:
    project, home = places
    done = foldline("config", cwd=project, XDG_CONFIG_HOME=str(home))
    assert done.returncode == 0
    assert "model: gpt-4o (foldline.toml)" in done.stdout
    assert "preset thrifty" in done.stdout
    assert "preview_lines" not in done.stdout
    assert "preview_lines" in foldline("config", "--all", cwd=project, XDG_CONFIG_HOME=str(home)).stdout


def test_the_project_file_is_searched_up_to_the_repository_root(tmp_path: Path) -> None:
    (tmp_path / "foldline.toml").write_text("")
    inner = tmp_path / "plain"
    inner.mkdir()
    assert project_file(inner) is None, "outside a repository only the folder itself counts"
    (tmp_path / ".git").mkdir()
    assert project_file(inner) == tmp_path / "foldline.toml"
    (inner / ".git").mkdir()
    assert project_file(inner) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not toml [", "cannot read"),
        ("modell = 'x'", "did you mean model"),
        ("keep_tokens = 5", "below [policy]"),
        ("model = 5", "in quotes"),
        ("policy = 5", "[policy] must be a table"),
        ("[policy]\nkeep_tokenz = 5", "did you mean keep_tokens"),
        ("[policy]\npreset = 'none'", "use one of balanced"),
        ("[policy]\nkeep_tokens = -1", "must be 0 or more"),
        ("[policy]\nkeep_tokens = -1", "foldline.toml: keep_tokens"),
    ],
)
def test_a_configuration_mistake_is_one_error_sentence(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "foldline.toml").write_text(text)
    assert says in one_sentence(foldline("config", cwd=tmp_path))


def test_invalid_flags_and_variables_are_refused(tmp_path: Path) -> None:
    assert "or a TOML file" in one_sentence(foldline("config", "--policy", "nothing"))
    said = one_sentence(foldline("config", FOLDLINE_KEEP_TOKENS="many"))
    assert "FOLDLINE_KEEP_TOKENS cannot be 'many' (it must be a whole number, such as 8000)" in said
    assert foldline("config", "--window", "0").returncode == 2
    binary = tmp_path / "binary.toml"
    binary.write_bytes(bytes(range(256)))
    assert "binary.toml" in one_sentence(foldline("config", "--policy", str(binary)))
