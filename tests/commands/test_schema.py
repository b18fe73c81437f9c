"""`pysimt-sac config --schema` and `--json`: every ready configuration fits the schema, and mistakes do not."""

import json
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.registry import MODELS
from pysimt_sac.hosts.engine.config.parser import option_classes, read_config
from pysimt_sac.hosts.engine.config.ready import ready_configs
from pysimt_sac.hosts.engine.config.values import plain
from tests.commands.json_schema import problems


def shown(capsys, *words):
    """The JSON that the command prints."""
    assert main_sac(["config", *map(str, words)]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def schema(capsys):
    return shown(capsys, "--schema")


@pytest.mark.parametrize("more", [[], ["--resolved"]], ids=["given", "resolved"])
@pytest.mark.parametrize("name", ready_configs())
def test_every_ready_configuration_fits(schema, capsys, name, more):
    assert problems(shown(capsys, ready_configs()[name], "--json", *more), schema) == []


def test_values_are_typed_and_final(toy, capsys):
    found = shown(capsys, toy.config, "train.save_path:./somewhere", "train.eval_filters:lower", "--json")
    assert found["train"]["eval_metrics"] == ["bleu", "loss"]
    assert found["train"]["eval_filters"] == ["lower"]
    assert found["train"]["lr"] == 0.01
    assert found["train"]["save_path"] == str(Path.cwd() / "somewhere")
    assert "patience" not in found["train"]
    assert shown(capsys, toy.config, "--json", "--resolved")["train"]["patience"] == 20
    assert found["data"] == plain(read_config(toy.config).data)


@pytest.mark.parametrize(
    ("section", "change", "where"),
    [
        ("train", {"batch_size": 0}, "train.batch_size"),
        ("train", {"batch_size": 1.5}, "train.batch_size"),
        ("train", {"optimizer": "adamax"}, "train.optimizer"),
        ("train", {"lr_decay": True}, "train.lr_decay"),
        ("train", {"leanring_rate": 1}, "train"),
        ("train", {"model_type": "SACMNT"}, "train.model_type"),
        ("train", {"adam_betas": [0.9]}, "train.adam_betas"),
        ("model", {"alhpa": 1}, "model"),
        ("model", {"dropout_emb": 1}, "model.dropout_emb"),
        ("model", {"reward_scale": "reff"}, "model.reward_scale"),
        ("model", {"direction": 5}, "model.direction"),
        ("data", {"test_set": "test.en"}, "data.test_set"),
    ],
)
def test_mistakes_do_not(schema, capsys, section, change, where):
    config = shown(capsys, ready_configs()["sac_bleu"], "--json")
    config[section] |= change
    assert [place for place, _ in problems(config, schema)] == [where]


def test_a_key_means_what_its_model_declares(schema):
    """`alpha` is a number in one algorithm, and may be `auto` in another."""
    of = {name: schema["$defs"][name]["properties"] for name in ("SACNMT", "SACUnsupNMT", "MLENMT")}
    assert of["SACUnsupNMT"]["alpha"]["type"] == "number"
    assert {"enum": ["auto"]} in of["SACNMT"]["alpha"]["anyOf"]
    assert "alpha" not in of["MLENMT"]
    assert of["SACUnsupNMT"]["reward"]["default"] == "unsup"
    assert of["SACNMT"]["reward"]["default"] == "bleu"


def test_every_option_is_described(schema):
    for name, shape in schema["$defs"].items():
        for cls in option_classes(MODELS.get(name)):
            for key, field in cls.__dataclass_fields__.items():
                if not field.metadata["pysimt_only"]:
                    assert shape["properties"][key]["description"] == field.metadata["help"]
                    assert problems(shape["properties"][key]["default"], shape["properties"][key]) == [], (name, key)


def test_a_file_adds_what_is_its_own(toy, capsys):
    path = toy.folder / "gift.py"
    path.write_text(
        "import dataclasses\n"
        "from pysimt_sac.core.options import option\n"
        "from pysimt_sac.rewards import reward\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Options:\n"
        "    parcel_size: int = option(1, 'how much is given', minimum=1)\n"
        "@reward('parcel')\n"
        "class Parcel:\n"
        "    options_class = Options\n"
    )
    words = [toy.config, "train.model_type:SACNMT", f"model.reward_modules:{path}", "model.reward:parcel"]
    schema = shown(capsys, *words, "--schema")
    config = shown(capsys, *words, "model.parcel_size:4", "--json")
    assert problems(config, schema) == []
    config["model"]["parcel_size"] = 0
    assert [place for place, _ in problems(config, schema)] == ["model.parcel_size"]


@pytest.mark.parametrize("other", ["--list", "--schema", "--options"])
def test_json_is_for_one_configuration(capsys, other):
    assert main_sac(["config", "--json", other]) == 2
    assert "--json: shows one configuration" in capsys.readouterr().err
