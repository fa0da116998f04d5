"""The model table: a model is found by any of its names, user tables override it, and every figure has its source."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline.models.table as module
from foldline.errors import ConfigError
from foldline.measure.estimator_weights import families
from foldline.models.table import ENVIRONMENT, MediaRule, Prices, model, plain_name
from foldline.session import Session
from foldline.wire.formats import REQUEST_FORMATS

TABLE = tomllib.loads((Path(module.__file__).with_name("models.toml")).read_text("utf-8"))


@pytest.fixture(autouse=True)
def _no_user_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def written(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("name", TABLE["model"])
def test_co26_every_row_is_found_and_makes_sense(name: str) -> None:
    found = model(name)
    row = TABLE["model"][name]
    assert found.source == f"models.toml {plain_name(name)} ({TABLE['read_on']})"
    assert found.window == row.get("window", TABLE["vendor"][found.vendor]["window"])
    assert 0 < found.reply <= found.window
    assert 8_000 <= found.window <= 1_100_000
    if found.prices:
        assert 0 < found.prices.read <= found.prices.input <= found.prices.write <= found.prices.write_1h
        assert found.prices.input <= found.prices.output
    assert found.cache.breakpoints in (0, 4)
    assert found.cache.lookback_blocks == (20 if found.vendor == "anthropic" else 0)


@pytest.mark.parametrize(
    ("name", "entry", "window"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", 200_000),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", 200_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", 200_000),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", 1_000_000),
        ("anthropic.claude-haiku-5-5", "claude-haiku-5-5", 1_000_000),
        ("vertex_ai/claude-3-5-sonnet@20240620", "claude-3-5-sonnet", 200_000),
        ("claude-3-haiku-20240307", "claude-3", 200_000),
        ("openrouter/anthropic/claude-opus-5:thinking", "claude-opus-5", 1_000_000),
        (" Claude-Opus-4-8 ", "claude-opus-4-8", 1_000_000),
        ("claude-opus-9", "claude-opus", 1_000_000),
        ("claude-poem-1", "claude", 200_000),
        ("gpt-4o-2024-08-06", "gpt-4o", 128_000),
        ("ft:gpt-4o-mini-2024-07-18:acme::7p4", "gpt-4o-mini", 128_000),
        ("azure/gpt-4", "gpt-4", 8_192),
        ("gpt-4-0613", "gpt-4", 8_192),
        ("gpt-5-2025-08-07", "gpt-5", 400_000),
        ("gpt-5.6-sol", "gpt-5.6", 1_050_000),
        ("gpt-5.9", "gpt", 400_000),
        ("openai/gpt-oss-120b", "gpt-oss", 131_072),
        ("o3-2025-04-16", "o3", 200_000),
        ("models/gemini-2.5-pro", "gemini-2.5-pro", 1_048_576),
        ("gemini-3.1-pro-preview-customtools", "gemini-3.1-pro", 1_048_576),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "llama-3.1", 131_072),
        ("llama3.1:8b", "llama3.1", 131_072),
        ("moonshotai/kimi-k2-0905", "kimi-k2", 131_072),
        ("x-ai/grok-4", "grok-4", 256_000),
        ("zai/glm-4.6", "glm-4.6", 200_000),
    ],
)
def test_a_model_is_found_under_any_of_its_names(name: str, entry: str, window: int) -> None:
    found = model(name)
    assert found.source == f"models.toml {entry} ({TABLE['read_on']})"
    assert (found.name, found.window) == (name, window)


@pytest.mark.parametrize("name", ["o10", "gpt4all", "my-local-model", "", "/", "[1m]x", "claudette"])
def test_an_unknown_model_gets_stated_defaults(name: str) -> None:
    found = model(name)
    assert found.source == (f"default: unknown model {name!r}" if name else "default: no model is named")
    assert (found.window, found.family, found.vocabulary, found.prices) == (200_000, "cl100k_base", "", None)


@pytest.mark.parametrize(
    ("name", "vendor", "form"),
    [
        ("claude-opus-5", "anthropic", "anthropic"),
        ("gpt-4o", "openai", "openai"),
        ("gemini-2.5-pro", "google", "gemini"),
        ("deepseek-chat", "deepseek", "openai"),
        ("grok-4", "xai", "openai"),
        ("mistral-large", "mistral", "openai"),
        ("qwen3-max", "qwen", "openai"),
        ("kimi-k2", "moonshot", "openai"),
        ("glm-4.6", "zai", "openai"),
        ("llama-3.1", "meta", "openai"),
        ("my-local-model", "", ""),
    ],
)
def test_the_vendor_of_a_model_is_not_its_wire_format(name: str, vendor: str, form: str) -> None:
    assert (model(name).vendor, model(name).format) == (vendor, form)


def test_every_wire_format_in_the_table_is_a_known_one() -> None:
    assert {model(name).format for name in TABLE["model"]} <= set(REQUEST_FORMATS)


def test_the_families_of_the_table_are_those_with_weights() -> None:
    rows = (TABLE["default"], *TABLE["vendor"].values(), *TABLE["model"].values())
    assert {row["family"] for row in rows if "family" in row} == set(families())


def test_a_user_table_can_state_how_images_are_counted(tmp_path: Path) -> None:
    table = written(tmp_path, '[media.flat]\ntile_pixels = 0\nbase_tokens = 77\n[model.shed]\nmedia = "flat"\n')
    assert model("shed", table=table).media == MediaRule(tile_pixels=0, base_tokens=77)


def test_a_user_table_can_name_the_wire_format(tmp_path: Path) -> None:
    table = written(
        tmp_path, '[default]\nformat = "gemini"\n[model.shed]\nformat = "anthropic"\n[model.hut]\nwindow = 9\n'
    )
    assert model("shed-7b", table=table).format == "anthropic"
    assert model("hut", table=table).format == "gemini"
    assert model("unheard-of", table=table).format == "gemini"


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_name_gives_a_model(name: str) -> None:
    found = model(name)
    assert found.name == name
    assert found.window >= found.reply > 0
    assert found.source


def test_the_suffix_1m_means_a_window_of_a_million() -> None:
    assert model("claude-sonnet-4-5").window == 200_000
    marked = model("claude-sonnet-4-5-20250929[1m]")
    assert marked.window == 1_000_000
    assert "claude-sonnet-4-5 " in marked.source
    assert "window from the mark [1m]" in marked.source
    assert model("opus-of-mine[1M]").window == 1_000_000


def test_prices_that_are_not_stated_are_those_of_input() -> None:
    assert model("gpt-5.4").prices == Prices(input=2.5, output=15.0, read=0.25, write=2.5, write_1h=2.5)
    assert model("gpt-4-turbo").prices == Prices(input=10.0, output=30.0, read=10.0, write=10.0, write_1h=10.0)
    assert model("claude-3-opus-20240229").prices is None


def test_claude_since_4_7_counts_text_and_images_differently() -> None:
    older, newer = model("claude-opus-4-6"), model("claude-opus-4-7")
    assert (older.family, older.media.max_long_edge) == ("claude_le46", 1_568)
    assert (newer.family, newer.media.max_long_edge) == ("claude_ge47", 2_576)
    assert older.vocabulary == newer.vocabulary == ""


def test_co25_a_declared_limit_wins_and_is_named_as_the_source(tmp_path: Path) -> None:
    table = written(tmp_path, '[model."gpt-4o"]\nwindow = 32_000\n[model."claude-opus-5"]\nread = 0.4\n')
    declared = model("gpt-4o-2024-08-06", table=table)
    assert (declared.window, declared.reply) == (32_000, 16_384)
    assert declared.source == f"models.toml gpt-4o (2026-11-15); window from {table} gpt-4o"
    assert declared.prices == model("gpt-4o").prices
    cheaper = model("claude-opus-5", table=table)
    assert cheaper.prices is not None
    assert (cheaper.prices.read, cheaper.prices.input, cheaper.window) == (0.4, 5.0, 1_000_000)
    assert model("gpt-4o-mini", table=table) == model("gpt-4o-mini")
    assert model("gpt-4o[1m]", table=table).window == 32_000


def test_a_user_table_can_add_models_and_vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(
        tmp_path,
        '[default]\nwindow = 8_192\n[vendor.shed]\nfamily = "llama3"\nreply = 2_048\n'
        '[model.Shed-7B]\nvendor = "shed"\nwindow = 16_384\ninput = 0\n',
    )
    monkeypatch.setenv(ENVIRONMENT, str(table))
    mine = model("local/shed-7b:q4")
    assert (mine.vendor, mine.family, mine.window, mine.reply) == ("shed", "llama3", 16_384, 2_048)
    assert mine.prices == Prices(input=0, output=0, read=0, write=0, write_1h=0)
    assert f"from {table} shed-7b" in mine.source
    assert model("unheard-of").window == 8_192
    assert model("claude-opus-5").window == 1_000_000


def test_a_changed_table_is_read_again(tmp_path: Path) -> None:
    table = written(tmp_path, "[model.x]\nwindow = 1_000\n")
    assert model("x", table=table).window == 1_000
    written(tmp_path, "[model.x]\nwindow = 22_000\n")
    assert model("x", table=table).window == 22_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model.x]\nwindow = 0\n", "[model.x] window: 0 is not a number of tokens"),
        ('[model.x]\nwindow = "200k"\n', "[model.x] window: '200k' is not a number of tokens"),
        ("[model.x]\nwindow = true\n", "[model.x] window: True is not a number of tokens"),
        ("[model.x]\nreply = 1.5\n", "[model.x] reply: 1.5 is not a number of tokens"),
        ("[model.x]\nread = -1\n", "[model.x] read: -1 is not a price"),
        ("[model.x]\ninput = nan\n", "[model.x] input: nan is not a price"),
        ("[model.x]\ncache_ttl = -5\n", "[model.x] cache_ttl: -5 is not a whole number"),
        ("[model.x]\nfamily = 'bpe'\n", "[model.x] family: unknown family 'bpe'"),
        ("[model.x]\nmedia = 'free'\n", "[model.x] media: unknown media rule 'free'"),
        ("[model.x]\nvendor = 3\n", "[model.x] vendor: 3 is not a name"),
        ("[model.x]\nwindows = 3\n", "[model.x] windows: unknown field"),
        ("[model.x]\nvendor = 'nobody'\n", "[model.x] vendor: unknown vendor 'nobody'"),
        ("[vendor.p]\nwindow = 0\n", "[vendor.p] window: 0 is not a number of tokens"),
        ("[models.x]\nwindow = 1\n", "unknown section [models]"),
        ("model = 3\n", "model must be a section"),
        ("[media.m]\ntile_pixels = -1\n", "[media.m] tile_pixels: -1 is not a number"),
        ("[media.m]\ntiles = 1\n", "[media.m] tiles: unknown field"),
        ("[media]\nm = 1\n", "media.m must be a section"),
        ("[model]\nx = 3\n", "model.x must be a section"),
        ("[model.x\n", "not TOML"),
    ],
)
def test_an_error_in_a_table_names_file_entry_and_field(tmp_path: Path, text: str, message: str) -> None:
    table = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        model("x", table=table)
    assert f"{table}: {message}" in str(caught.value)


def test_a_missing_table_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "nowhere.toml"))
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read.*unset FOLDLINE_MODELS"):
        model("gpt-4o")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.toml: cannot be read"):
        model("gpt-4o", table=tmp_path / "latin.toml")


def test_a_misspelled_model_name_is_reported_with_the_name_that_was_meant() -> None:
    assert "did you mean claude-sonnet-5?" in Session(model="claude-sonet-5").view().assumption
    for known in ("claude-sonnet-5", "claude-sonnet-5-20990101", "gpt-5.99"):
        assert Session(model=known).view().assumption == ""
