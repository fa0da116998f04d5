"""Every knob is checked when a policy is made, and later sources override earlier ones."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.block_budget import AgentConfig
from foldline.errors import ConfigError
from foldline.policy import Action, Basis, Policy, Rule, environment_knobs, file_knobs, format_policy, load, presets


def rules() -> st.SearchStrategy[Rule]:
    def make(action: Any, basis: Any, number: int, ratio: bool, strict: bool, latched: bool) -> Rule:
        share = basis == "cost" or (ratio and basis != "count")
        return Rule(
            action=action,
            basis=basis,
            ratio=number / (1_000 if basis == "cost" else 100_000) if share else None,
            limit=None if share else number,
            strict=strict,
            latched=latched,
        )

    kinds = st.sampled_from(get_args(Action)), st.sampled_from(get_args(Basis)), st.integers(1, 100_000)
    return st.builds(make, *kinds, st.booleans(), st.booleans(), st.booleans())


@given(rules())
def test_a_rule_and_its_sentence_convert_into_each_other(rule: Rule) -> None:
    assert Rule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fold",
        "fold when request",
        "fold when request > ",
        "fold when request > 12.5",
        "fold when weather > 75%",
        "sing when request > 75%",
        "fold when request > 0",
        "fold when request > 0%",
        "fold when request > 900%",
        "warn when history > 101%",
        "fold when count > 50%",
        "fold when cost > 5000",
    ],
)
def test_a_wrong_rule_is_refused_with_an_explanation(text: str) -> None:
    with pytest.raises(ConfigError):
        Rule.parse(text)


def test_every_preset_is_a_valid_policy() -> None:
    assert set(presets()) == {
        *["balanced", "thrifty", "proxy", "verbatim"],
        *["indus", "indus-framework", "teaparty", "ikigai", "awaken", "squidbot"],
    }
    assert all(isinstance(Policy.preset(name), Policy) for name in presets())
    with pytest.raises(ConfigError, match="balanced"):
        Policy.preset("nothing like this")


@pytest.mark.promise("S0.4")
def test_a_policy_is_frozen() -> None:
    policy = Policy.preset("balanced")
    with pytest.raises(FrozenInstanceError):
        policy.keep_tokens = 1  # type: ignore[misc]  # that it cannot be set is the point
    assert policy.but(keep_tokens=7).keep_tokens == 7
    assert policy.keep_tokens == Policy.preset("balanced").keep_tokens


@pytest.mark.promise("S0.50")
def test_the_indus_preset_has_its_documented_numbers() -> None:
    policy = Policy.preset("indus")
    assert [str(rule) for rule in policy.rules] == ["fold when request > 75%"]
    assert (policy.keep_tokens, policy.reserve_tokens) == (6000, 2048)


@pytest.mark.promise("S2.15")
def test_the_ikigai_preset_has_its_documented_numbers() -> None:
    assert str(Policy.preset("ikigai").rules[0]) == "clip when history > 100,000"


@pytest.mark.promise("S3.2", "S3.3", "S3.4")
def test_the_awaken_preset_has_its_documented_numbers() -> None:
    policy = Policy.preset("awaken")
    assert (policy.window_tokens, policy.reply_tokens, policy.keep_messages) == (200_000, 16_384, 10)


@pytest.mark.promise("S4.1", "S4.2", "S4.3", "S4.4", "S4.5", "S4.6", "S4.7")
def test_the_squidbot_preset_has_its_documented_numbers() -> None:
    config, policy = AgentConfig(), Policy.preset("squidbot")
    assert (policy.counter, policy.keep_messages) == (config.context_budget_mode, config.context_min_recent_messages)
    assert [rule.limit for rule in policy.rules] == [config.context_history_max_words]


@pytest.mark.promise("I22")
@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"keep_tokens": -1}, "keep_tokens"),
        ({"keep_ratio": 1.5}, "between 0 and 1"),
        ({"keep_ratio": 1.0}, "lower keep_ratio"),
        ({"min_gain_ratio": 1.0}, "lower min_gain_ratio"),
        ({"min_gain_ratio": 1.0, "leave": "marker"}, "lower min_gain_ratio"),
        ({"digest_tokens": 0}, "raise digest_tokens"),
        ({"rules": ["fold when request > 150%"]}, "lower the percentage"),
        ({"rules": ["warn when history >= 100.5%"]}, "lower the percentage"),
        ({"atom": "half"}, "message, step, turn"),
        ({"counter": "bogus"}, "model, estimate, chars/4"),
        ({"preview_lines": 0}, "preview_lines"),
        ({"breakpoints": 5}, "breakpoints"),
        ({"rules": ["fold when request > 50%"], "target_ratio": 0.6}, "lower target_ratio"),
        ({"keep_tokenz": 1}, "did you mean keep_tokens"),
        ({"keep_tokens": 1.5}, "whole number"),
        ({"keep_tokens": True}, "whole number"),
        ({"keep_first_prompt": "perhaps"}, "true or false"),
        ({"digest_header": 5}, "text"),
        ({"window_tokens": 10, "keep_tokens": 20, "keep_hard": True}, "lower keep_tokens"),
    ],
)
def test_settings_that_cannot_work_are_refused(knobs: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Policy().but(**knobs)


def test_later_sources_win_and_are_named(tmp_path: Path) -> None:
    file = tmp_path / "foldline.toml"
    file.write_text('[policy]\npreset = "thrifty"\nkeep_tokens = 5_000\npreview_lines = 9\n')
    environment = {
        "FOLDLINE_KEEP_TOKENS": "6000",
        "FOLDLINE_RULES": "fold when request > 50%; warn when count > 3",
    }
    layers = [(str(file), file_knobs(file)), ("environment", environment_knobs(environment))]
    policy, sources = load([*layers, ("arguments", {"preview_lines": 3})])
    assert (policy.keep_tokens, policy.preview_lines) == (6000, 3)
    assert [rule.basis for rule in policy.rules] == ["request", "count"]
    assert policy.keep_ratio == Policy.preset("thrifty").keep_ratio
    assert sources["keep_tokens"] == "environment"
    assert sources["preview_lines"] == "arguments"
    assert sources["keep_ratio"] == "preset thrifty"
    shown = format_policy(policy, sources)
    assert all(knob.name in shown for knob in fields(policy))
    assert "default" in shown


def test_an_argument_may_name_the_preset() -> None:
    policy, _ = load(
        [("environment", environment_knobs({"FOLDLINE_PRESET": "verbatim"})), ("flags", {"preset": "ikigai"})]
    )
    assert policy == Policy.preset("ikigai")


@pytest.mark.parametrize("text", ["not toml at all [", "policy = 5", "[policy]\nkeep_tokens = 'many'"])
def test_the_error_for_a_broken_file_names_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "foldline.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"foldline\.toml"):
        load([(str(file), file_knobs(file))])
    with pytest.raises(ConfigError, match="nowhere"):
        file_knobs(tmp_path / "nowhere.toml")
