"""Settings: how a frozen dataclass is filled, overridden, compared and described; and what is refused, in words."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DragomanError
from dragoman.recipe import CorpusConfig, Recipe
from dragoman.settings import at_least, describe, differences, fill, nearest, option, override, read, share, to_mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kitchen:
    cooks: int = option(2, "people who cook")
    heat: float = option(0.5, "of the stove")
    open: bool = option(True, "whether it is open")
    sign: str = option("soup", "what stands on the door")
    fuel: Literal["gas", "wood"] = option("gas", "what burns")
    oven: int | None = option(None, "its number, if there is one")


@dataclasses.dataclass(frozen=True, kw_only=True)
class House:
    kitchen: Kitchen = dataclasses.field(default_factory=Kitchen)
    rooms: tuple[Kitchen, ...] = option((), "more kitchens")
    names: tuple[str, ...] = option((), "of those who live there")
    number: int = option(7, "in its street")


def refused(message: str) -> Any:
    return pytest.raises(ConfigError, match=f"^{re.escape(message)}$")


# fill


def test_what_is_not_given_has_its_default() -> None:
    assert fill(House, {}) == House()
    assert fill(House, {"kitchen": {"cooks": 3}}) == House(kitchen=Kitchen(cooks=3))


def test_lists_become_tuples_and_their_tables_dataclasses() -> None:
    house = fill(House, {"rooms": [{"cooks": 3}, {"sign": "bread"}], "names": ["Ada", "Grace"]})
    assert house.rooms == (Kitchen(cooks=3), Kitchen(sign="bread"))
    assert house.names == ("Ada", "Grace")


def test_a_whole_number_will_do_for_a_number() -> None:
    heat = fill(Kitchen, {"heat": 2}).heat
    assert heat == 2.0
    assert isinstance(heat, float)


def test_none_will_do_only_where_the_type_says_so() -> None:
    assert fill(Kitchen, {"oven": None}).oven is None
    assert fill(Kitchen, {"oven": 3}).oven == 3
    with refused("cooks is None, expected a whole number"):
        fill(Kitchen, {"cooks": None})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cooks": "3"}, "cooks is '3', expected a whole number"),
        ({"cooks": 3.5}, "cooks is 3.5, expected a whole number"),
        ({"cooks": True}, "cooks is True, expected a whole number"),
        ({"heat": "hot"}, "heat is 'hot', expected a number"),
        ({"heat": True}, "heat is True, expected a number"),
        ({"heat": 10**400}, "heat is a whole number of 401 digits, expected a smaller one"),
        ({"open": "no"}, "open is 'no', expected true or false"),
        ({"open": 0}, "open is 0, expected true or false"),
        ({"sign": 5}, "sign is 5, expected text"),
        ({"oven": "3"}, "oven is '3', expected a whole number"),
        ({"fuel": "wodo"}, "fuel is 'wodo': did you mean 'wood'?"),
        ({"fuel": "electricity"}, "fuel is 'electricity': known are gas, wood"),
        ({"fuel": 3}, "fuel is 3: known are gas, wood"),
    ],
)
def test_a_value_of_another_type_is_refused_and_never_guessed(values: dict[str, Any], message: str) -> None:
    with refused(message):
        fill(Kitchen, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kitchen": {"coks": 3}}, "unknown key 'kitchen.coks': did you mean 'cooks'?"),
        ({"kitchen": {"zzz": 3}}, "unknown key 'kitchen.zzz': known are cooks, fuel, heat, open, oven, sign"),
        ({"kitchn": {}}, "unknown key 'kitchn': did you mean 'kitchen'?"),
        ({"kitchen": 3}, "kitchen is 3, expected a table of settings"),
        ({"kitchen": {"heat": "hot"}}, "kitchen.heat is 'hot', expected a number"),
        ({"names": "Ada"}, "names is 'Ada', expected a list"),
        ({"names": ["Ada", 5]}, "names[1] is 5, expected text"),
        ({"rooms": [{}, {"cooks": "3"}]}, "rooms[1].cooks is '3', expected a whole number"),
        ({"rooms": [{}, {"coks": 3}]}, "unknown key 'rooms[1].coks': did you mean 'cooks'?"),
    ],
)
def test_a_message_names_the_place_and_the_nearest_known_key(values: dict[str, Any], message: str) -> None:
    with refused(message):
        fill(House, values)


# Files


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = written(tmp_path, "house.toml", "number = 11\n[kitchen]\nheat = 1e-4\nsign = 'café'\n")
    same = written(tmp_path, "house.json", '{"number": 11, "kitchen": {"heat": 1e-4, "sign": "café"}}')
    wanted = House(number=11, kitchen=Kitchen(heat=1e-4, sign="café"))
    assert fill(House, read(toml)) == fill(House, read(same)) == wanted


def test_an_unknown_key_in_a_toml_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    recipe = written(tmp_path, "recipe.toml", "[model]\nd_modle = 256\n")
    with refused("unknown key 'model.d_modle': did you mean 'd_model'?"):
        fill(Recipe, read(recipe))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.toml"
    with pytest.raises(ConfigError, match=rf"^cannot read settings from {re.escape(str(path))}: .*No such file"):
        read(path)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes("sign = 'café'".encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"^cannot read settings from {re.escape(str(path))}: .*utf-8"):
        read(path)


@pytest.mark.parametrize(("name", "kind", "text"), [("a.toml", "TOML", "number = = 3"), ("a.json", "JSON", "{number")])
def test_a_file_that_does_not_parse_is_named_with_its_line(tmp_path: Path, name: str, kind: str, text: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(path))} is not valid {kind}: .*line 1"):
        read(path)


def test_a_json_file_that_holds_a_list_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", "[3, 5]")
    with refused(f"{path} holds a list, expected a table of settings"):
        read(path)


# override: --set a.b=value


@pytest.mark.parametrize(
    ("assignment", "wanted"),
    [
        ("number=11", {"number": 11}),
        ("kitchen.heat=1e-4", {"kitchen": {"heat": 1e-4}}),
        ("kitchen.open=false", {"kitchen": {"open": False}}),
        ("kitchen.sign=bread", {"kitchen": {"sign": "bread"}}),
        ("kitchen.sign='7'", {"kitchen": {"sign": "7"}}),
        ("kitchen.sign=", {"kitchen": {"sign": ""}}),
        ("kitchen.sign=a=b", {"kitchen": {"sign": "a=b"}}),
        ('names=["Ada", "Grace"]', {"names": ["Ada", "Grace"]}),
        (" number =11", {"number": 11}),
    ],
)
def test_a_value_is_read_as_toml_and_as_plain_text_where_that_fails(assignment: str, wanted: dict[str, Any]) -> None:
    assert override({}, [assignment]) == wanted


def test_overriding_keeps_the_rest_and_leaves_the_original_alone() -> None:
    values = {"kitchen": {"cooks": 3, "heat": 0.1}, "number": 5}
    changed = override(values, ["kitchen.heat=0.7", "number=11", "number=13"])
    assert changed == {"kitchen": {"cooks": 3, "heat": 0.7}, "number": 13}
    assert values == {"kitchen": {"cooks": 3, "heat": 0.1}, "number": 5}


@pytest.mark.parametrize("assignment", ["number", "=3", " =3", ""])
def test_what_is_not_an_assignment_is_refused(assignment: str) -> None:
    with refused(f"{assignment!r} is not a setting: write section.key=value, say train.seed=7"):
        override({}, [assignment])


def test_a_path_through_a_value_is_refused() -> None:
    with refused("'number.digit' goes through 'number', which is a value and not a section"):
        override({"number": 5}, ["number.digit=3"])


@given(st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_numbers_and_truth_values_survive_being_written_on_the_command_line(
    number: int, heat: float, is_open: bool
) -> None:
    assignments = [f"number={number}", f"kitchen.heat={heat!r}", f"kitchen.open={json.dumps(is_open)}"]
    assert fill(House, override({}, assignments)) == House(number=number, kitchen=Kitchen(heat=heat, open=is_open))


# Out again


def test_a_mapping_of_settings_fills_an_equal_dataclass() -> None:
    house = House(rooms=(Kitchen(cooks=5),), names=("Ada",), kitchen=Kitchen(oven=3, fuel="wood"))
    assert fill(House, to_mapping(house)) == house
    assert json.loads(json.dumps(to_mapping(house))) == to_mapping(house)


def test_a_recipe_comes_back_from_json_as_it_was() -> None:
    recipe = fill(Recipe, override({"data": {"train": [{"path": "a.tsv", "weight": 2}]}}, ["model.d_model=256"]))
    assert recipe.data.train == (CorpusConfig(path="a.tsv", weight=2.0),)
    assert fill(Recipe, to_mapping(recipe)) == recipe


def test_differences_are_a_line_for_each_key_that_changed() -> None:
    old = House()
    new = House(number=11, kitchen=Kitchen(heat=0.7, sign="bread"), names=("Ada",))
    assert differences(old, new) == [
        "kitchen.heat: 0.5 -> 0.7",
        "kitchen.sign: 'soup' -> 'bread'",
        "names: () -> ('Ada',)",
        "number: 7 -> 11",
    ]
    assert differences(old, House()) == []


# Help


def leaves(cls: type, where: str = "") -> Iterator[str]:
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(field.type):
            yield from leaves(field.type, f"{where}{field.name}.")
        else:
            yield where + field.name


def test_help_has_a_row_for_each_setting_in_the_order_they_are_declared() -> None:
    assert describe(Kitchen)[:2] == [("cooks", "2", "people who cook"), ("heat", "0.5", "of the stove")]
    assert [key for key, _, _ in describe(House)] == list(leaves(House))


def test_every_setting_of_a_recipe_has_a_default_and_a_sentence_of_help() -> None:
    rows = describe(Recipe)
    endings = (
        "vocab_size",
        "_id",
        "output_bias",
        "epsilon",
        "beta1",
        "embedding_rate",
        "distillation",
        "licence",
        "attribution",
        "limits",
    )
    recurrent = {"model.architecture", "model.recurrent_cell", "model.recurrent_attention"}
    facts = {key for key in leaves(Recipe) if key.endswith(endings)} | recurrent
    assert facts - {"tokenizer.vocab_size"} == set(leaves(Recipe)) - {key for key, _, _ in rows}
    assert len(rows) < 60
    assert [key for key, default, text in [*rows, *describe(CorpusConfig)] if not default or not text.strip()] == []


def test_every_setting_of_a_recipe_can_be_set_to_its_default_by_the_text_that_help_shows() -> None:
    rows = [(key, default) for key, default, _ in describe(Recipe) if default != "null"]
    filled = fill(Recipe, override({}, [f"{key}={default}" for key, default in rows]))
    assert filled == Recipe()


def test_a_default_that_could_be_changed_by_accident_is_refused() -> None:
    with pytest.raises(TypeError, match="an option's default must not be mutable"):
        option([], "a list")


# Checks


def test_a_setting_below_its_least_value_is_refused() -> None:
    at_least(1, "beam", 1)
    with refused("beam is 0, expected at least 1"):
        at_least(1, "beam", 0)


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan")])
def test_a_share_lies_between_zero_and_one(value: float) -> None:
    share("dropout", 0)
    share("dropout", 0.99)
    with refused(f"dropout is {value}, expected a share from 0 up to, not including, 1"):
        share("dropout", value)


def test_a_hint_is_the_nearest_word_or_all_of_them() -> None:
    assert nearest("paprika", ["soup", "paper"]) == ": did you mean 'paper'?"
    assert nearest("zzz", ["soup", "paper"]) == ": known are paper, soup"


def test_a_refusal_is_a_value_error_and_a_users_mistake() -> None:
    assert issubclass(ConfigError, DragomanError)
    assert issubclass(ConfigError, ValueError)
