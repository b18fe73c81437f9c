"""Several processes: maximum likelihood is that of one, every other algorithm learns, and all resume exactly."""

import pytest

from tests.distributed.conftest import DROPOUT, NETWORK
from tests.distributed.processes import call, differences, last_state, points, run
from tests.models import task
from tests.models.runs import lines
from tests.models.test_learning import KINDS
from tests.models.test_sac_unsup import nll_of_bad

LIKELIHOOD = {
    "SimultaneousNMT": ["model.accumulate:2", "model.label_smoothing:0.1", "model.ema_decay:0.9"],
    "MLENMT": ["model.weight_decay:0.01", "model.batch_tokens:150"],
}
CRITICS = ["model.gate_sentences:4", "model.critic_pretrain_updates:2", "model.support_size:4"]
SAMPLING = {
    "SACNMT": [
        *CRITICS,
        "model.alpha:auto",
        "model.kl_weight:0.1",
        "model.reward:bleu:0.5,unsup:0.5",
        "model.known_reward:False",
    ],
    "BranchedSACNMT": ["model.branch_path:sample", "model.permute_rewards:True"],
    "SACUnsupNMT": [],
    "VineNMT": ["model.rarity_weight:1"],
}


def train(toy, size, model_type, name, *more, updates=8):
    """The folder of a run by so many processes, with validations, and a batch that three cannot divide."""
    changes = [f"train.model_type:{model_type}", *NETWORK, *more, "train.lr:0.002", "train.disp_freq:1"]
    changes += ["train.eval_freq:4", "train.max_epochs:100", f"train.max_iterations:{updates}"]
    if model_type != "SimultaneousNMT":
        changes += [f"train.pretrained_file:{toy.folder}/runs/toy-actor"]
    run(size, toy.folder / "out", "train", "-C", toy.config, "-s", name, *changes)
    return toy.folder / "runs" / f"toy-{name}"


def files(folder):
    (log,) = folder.glob("*.log")
    return sorted(path.name.replace(log.stem, "ID") for path in folder.iterdir())


@pytest.mark.parametrize("model_type", LIKELIHOOD)
def test_the_likelihood_is_that_of_one_process(trained, model_type):
    one, *others = (
        train(trained, size, model_type, f"{model_type}-{size}", *LIKELIHOOD[model_type]) for size in (1, 2, 3)
    )
    for other in others:
        assert differences(points(other), points(one), 1e-5) == []
        assert differences(last_state(other), last_state(one), 1e-4) == []
        assert files(other) == files(one)


def learned(model):
    """Everything that learns, and must be the same in all processes."""
    own = ("collector", "replay", "rarity")
    parts = {name: part for name, part in model.training_state()["algorithm"].items() if name not in own}
    return {"actor": model.state_dict(), **parts}


def learn_in_two_processes(folder, kind, updates=None):
    """The share of good words, and the loss of bad ones. Each process samples for itself, and both learn the same."""
    unsup = "SACUnsupNMT", 60, {"reward": "unsup", "oracle_beta": 0.0, "alpha": 0.0}
    model_type, usual, options = KINDS.get(kind, unsup)
    task.actor(1)  # here, not in each of the processes

    def learn():
        model = task.learn(model_type, 1, updates or usual, **options)
        return model.session.seed, learned(model), task.share(model, "good"), nll_of_bad(model)

    one, other = call(2, folder, learn)
    assert one[0] != other[0]
    assert differences(one[1], other[1], 0.0) == []
    return one[2:]


@pytest.mark.parametrize(
    "kind", ["reinforce, learned", "mixer", "mrt", "vine", "sac, learned alpha", "branched sac", "sac unsup"]
)
def test_two_processes_learn_the_task_as_one_does(tmp_path, kind):
    share, nll = learn_in_two_processes(tmp_path / "out", kind)
    assert share == 1 if kind in KINDS else nll < 0.2


@pytest.mark.parametrize("kind", ["ac", "erac"])
def test_two_processes_have_the_same_actor_and_critics(tmp_path, kind):
    """Some updates after the critics learned alone; that they learn as SAC's do is not shown again."""
    learn_in_two_processes(tmp_path / "out", kind, updates=60)


@pytest.mark.parametrize("model_type", SAMPLING)
def test_the_same_number_of_processes_resumes_exactly(trained, model_type):
    """With the random streams and the replay buffer of every process."""
    more = [*DROPOUT, *SAMPLING[model_type], "model.health_freq:2"]
    whole = train(trained, 2, model_type, f"{model_type}-whole", *more, updates=6)
    for stop in (3, 6):
        parts = train(trained, 2, model_type, f"{model_type}-parts", *more, updates=stop)
    assert differences(points(parts), points(whole), 0.0) == []
    state = last_state(whole, all_ranks=True)
    assert differences(last_state(parts, all_ranks=True), state, 0.0) == []
    (other,) = state["other_ranks"]
    assert differences(other["random"], state["random"], 0.0) != []
    assert lines(parts, "Number of processes") == []


def test_another_number_of_processes_says_what_is_new(trained):
    said = ["2 until now, 3 from here on; a new process starts", "3 until now, 1 from here on; random streams"]
    for updates, size in enumerate((2, 3, 1), 1):
        folder = train(trained, size, "SACNMT", "other-number", *SAMPLING["SACNMT"], updates=updates)
        told = lines(folder, "Number of processes")
        assert [part in line for part, line in zip(said, told, strict=False)] == [True] * (updates - 1)
        assert len(last_state(folder, all_ranks=True)["other_ranks"]) == size - 1
