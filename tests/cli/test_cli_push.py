"""`dragoman push`: a model, published."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.cli import dragoman
from dragoman.errors import ConfigError
from interop.stand_in_hub import stand_in_hub
from tiny_bundle import write_tiny_bundle


def test_a_pushed_model_is_on_the_hub_and_its_address_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_bundle(tmp_path / "ours")
    with stand_in_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        result = CliRunner().invoke(dragoman, ["push", str(tmp_path / "ours"), "--to", "me/mine", "--private"])
        assert result.output == f"{hub.address}/me/mine\n"
        assert "model.safetensors" in hub.files["me/mine"]


def test_a_name_needs_an_owner(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "ours")
    error = CliRunner().invoke(dragoman, ["push", str(tmp_path / "ours"), "--to", "mine"]).exception
    assert isinstance(error, ConfigError)
    assert str(error) == "'mine' is not a name on a hub: write owner/name"
