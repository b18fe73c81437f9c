"""Runs that were made elsewhere are taken over where configuration, text and actor are the same, and only there."""

import shutil

import pytest

import pysimt_sac.models  # noqa: F401 - registers the algorithms
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.checkpoint import load_state
from pysimt_sac.hosts.engine.config.parser import check_config, read_config
from pysimt_sac.hosts.engine.training.progress import Progress
from pysimt_sac.reproduce import adoption
from pysimt_sac.reproduce.adoption import Adoption, ends_there
from pysimt_sac.reproduce.plan import Estimator, describe
from pysimt_sac.reproduce.stamps import Stamps
from pysimt_sac.reproduce.steps import Training


@pytest.fixture
def elsewhere(toy, pysimt):
    """An actor and a run that starts from it."""
    assert pysimt("train", "-C", toy.config, "train.max_epochs:1").status == 0
    words = ["train.model_type:MLENMT", f"train.pretrained_file:{toy.run_folder}", "train.max_iterations:3"]
    assert pysimt("train", "-C", toy.config, "-s", "more", *words).status == 0
    return toy


@pytest.fixture
def moved(elsewhere, tmp_path):
    """The same text and configuration in another folder."""
    folder = tmp_path / "moved"
    shutil.copytree(elsewhere.folder, folder, ignore=shutil.ignore_patterns("runs"))
    text = (folder / "toy.conf").read_text().replace(str(elsewhere.folder), str(folder))
    (folder / "toy.conf").write_text(text)
    return folder


def training(folder, name, *overrides, start=""):
    """A step as a plan has it."""
    options = read_config(folder / "toy.conf", overrides)
    check_config(options)
    place = folder / "out/runs" / name
    return Training(f"train-{name}", name, name, (), folder=place, options=options, config={"start": start})


def more(folder, actor, *overrides):
    words = ["train.model_type:MLENMT", f"train.pretrained_file:{actor.folder}", "train.max_iterations:3"]
    return training(folder, "more", *words, *overrides, start=actor.key)


def take_over(folder, source, *steps):
    told, done = [], {}
    (folder / "out").mkdir(exist_ok=True)
    Adoption([source], "abc123", Stamps(folder / "out"), told.append).take_over(steps, done)
    return done, told


def test_an_actor_and_what_started_from_it(elsewhere, moved):
    actor = training(moved, "mle", "train.max_epochs:1")
    follower = more(moved, actor)
    done, told = take_over(moved, elsewhere.folder, actor, follower)
    assert set(done) == {"train-mle", "train-more"}
    assert [line.partition(",")[0] for line in told] == ["taken over: mle", "taken over: more"]
    stamp = done["train-mle"]
    assert (stamp.commit, stamp.details["adopted"], stamp.details["update"]) == ("abc123", "toy", 10)
    assert list(actor.folder.glob("*.best.bleu.ckpt"))
    assert not (actor.folder / ".lock").exists()
    assert Stamps(moved / "out").read("train-mle") == stamp


def test_a_plan_finds_the_same_and_copies_nothing(elsewhere, moved):
    actor = training(moved, "mle", "train.max_epochs:1")
    follower = more(moved, actor)
    (moved / "out").mkdir()
    found = Adoption([elsewhere.folder], "", Stamps(moved / "out"), print).find([actor, follower], {})
    assert found["train-mle"].folder == elsewhere.run_folder.resolve()
    assert found["train-more"].folder.name == "toy-more"
    assert not actor.folder.exists()
    lines = describe(Estimator(None, [actor, follower], {}, {"train-mle": elsewhere.run_folder}), [actor], 1, 10.0)
    assert lines[0] == f"  mle  take over, from {elsewhere.run_folder}"
    assert "at most 10 s of work left" in lines[-1]


@pytest.mark.parametrize("override", ["train.seed:2", "train.max_epochs:2", "train.lr:0.02", "model.emb_dim:9"])
def test_another_configuration_is_left_alone(elsewhere, moved, override):
    actor = training(moved, "mle", "train.max_epochs:1", override)
    done, told = take_over(moved, elsewhere.folder, actor)
    assert done == {}
    assert not actor.folder.exists()
    key, _, value = override.partition(":")
    line = next(line for line in told if line.startswith(f"not taken over: {elsewhere.run_folder}, nearest to mle: "))
    assert (
        "would have ended at a different point" in line
        if "epochs" in key
        else f"{key}: " in line and f" -> {value}" in line
    )


def test_options_that_did_not_act_may_differ(elsewhere, moved):
    """A patience that was never exhausted, and a decay that is off."""
    actor = training(moved, "mle", "train.max_epochs:1", "train.patience:3", "train.lr_decay_factor:0.7")
    assert set(take_over(moved, elsewhere.folder, actor)[0]) == {"train-mle"}


@pytest.mark.parametrize(
    ("scores", "ended", "options", "same"),
    [
        ([1, 2, 3], {"epoch": 4, "update": 30}, {"max_epochs": 3}, True),
        ([1, 2, 3], {"epoch": 4, "update": 30}, {"max_epochs": 4}, False),  # it would have gone on
        ([1, 2, 3], {"epoch": 4, "update": 30}, {"max_epochs": 2}, False),  # it would have ended before
        ([1, 2, 3], {"epoch": 4, "update": 30}, {"max_iterations": 30}, True),
        ([1, 2, 3], {"epoch": 4, "update": 30}, {"max_iterations": 29}, False),
        ([3, 2, 1, 4], {"epoch": 5, "update": 40}, {"max_epochs": 4, "patience": 3}, True),
        ([3, 2, 1, 4], {"epoch": 5, "update": 40}, {"max_epochs": 4, "patience": 2}, False),  # after the third
        ([3, 2, 1], {"epoch": 4, "update": 30, "bad_validations": 2}, {"max_epochs": 9, "patience": 2}, True),
    ],
)
def test_where_a_run_ends(scores, ended, options, same):
    progress = Progress(scores={"BLEU": scores}, ended=True, **ended)
    assert ends_there(progress, TrainOptions(eval_metrics=("bleu",), **options)) is same


def test_other_text_is_left_alone(elsewhere, moved):
    (moved / "train.src").write_text((moved / "train.src").read_text().replace("one", "two", 1))
    assert take_over(moved, elsewhere.folder, training(moved, "mle", "train.max_epochs:1"))[0] == {}


def test_a_run_that_does_not_say_what_its_text_was_is_left_alone(elsewhere, moved, monkeypatch):
    state = {key: value for key, value in load_state(elsewhere.run_folder)[0].items() if key != "files"}
    monkeypatch.setattr(adoption, "load_state", lambda folder: (state, None))
    assert take_over(moved, elsewhere.run_folder, training(moved, "mle", "train.max_epochs:1"))[0] == {}


def test_a_run_that_began_with_a_longer_schedule_is_left_alone(toy, pysimt):
    """It ended after one epoch, but its learning rate was to fall over two."""
    words = ["train", "-C", toy.config, "model.lr_schedule:cosine"]
    assert pysimt(*words, "train.max_epochs:2", "train.max_iterations:5").status == 0
    assert pysimt(*words, "train.max_epochs:1").status == 0
    assert pysimt(*words, "-s", "short", "train.max_epochs:1").status == 0
    step = training(toy.folder, "mle", "model.lr_schedule:cosine", "train.max_epochs:1")
    done, told = take_over(toy.folder, toy.folder / "runs", step)
    assert done["train-mle"].details["adopted"] == "toy-short"
    assert done["train-mle"].versions == {}
    assert f"{toy.run_folder}, nearest to mle: its learning rate decays over 5 updates, not 10" in str(told)


def test_a_run_from_another_actor_is_left_alone(elsewhere, moved, pysimt):
    """Our actor has another seed, and so other weights."""
    assert pysimt("train", "-C", moved / "toy.conf", "train.max_epochs:1", "train.seed:2").status == 0
    actor = training(moved, "mle", "train.max_epochs:1", "train.seed:2")
    done, _ = take_over(moved, moved / "runs", actor)
    assert set(done) == {"train-mle"}
    again = dict(done)
    Adoption([elsewhere.folder], "", Stamps(moved / "out"), lambda line: None).take_over(
        [actor, more(moved, actor)], again
    )
    assert again == done


def test_a_run_that_has_not_ended_is_left_alone(toy, pysimt, tmp_path):
    assert pysimt("train", "-C", toy.config, "train.max_epochs:1").status == 0
    step = training(toy.folder, "mle")  # two epochs
    assert take_over(toy.folder, toy.run_folder, step)[0] == {}
