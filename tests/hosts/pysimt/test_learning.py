"""The task that every algorithm must learn (`tests/models/task.py`), with pysimt's other networks as the actor."""

import json

import pytest

from tests.hosts.pysimt.hosts import NEEDS_PYSIMT, run_python
from tests.models.test_learning import KINDS

pytestmark = NEEDS_PYSIMT

LEARN = """
import json, sys
from pathlib import Path
import torch
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt_sac.core.batch import Batch
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.pysimt import host
from pysimt_sac.rl.rollout import roll_out
from tests.models import task

folder, kinds, network = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
host.register()

class Pictured:
    '''The task's corpus; with images, these alone show the kind of a source.'''

    def __init__(self, corpus, sources):
        self.batches, self.corpus = corpus.batches, corpus
        self.images = torch.eye(2)[[int(source[4]) for source in sources]].unsqueeze(0)

    def __getitem__(self, indices):
        batch = self.corpus[indices]
        if "aux_dim" in network:
            batch["src"][0] = 4
            batch["image"] = self.images[:, indices]
        return batch

def make_model(model_type, **options):
    engine, corpus = task.make_model("MLENMT", 1)
    files = {side: str(folder / side) for side in ("src", "trg")}
    for side, vocab in engine.vocabs.items():
        numbered = {token: f"{number} 1" for number, token in enumerate(vocab.tokens)}
        Path(files[side]).write_text(json.dumps(numbered))
    train = {"model_type": model_type, "batch_size": task.BATCH, "seed": 1, "pretrained_file": "an actor"}
    model = {**task.TASK, **network, **options}
    for name in ("emb_dim", "enc_dim", "dec_dim"):
        model[name] = task.SIZES[name]
    ours = Options("task.conf", {"train": train, "model": model, "data": {"val_set": files}, "vocabulary": files})
    torch.manual_seed(1)
    model = host.build_model(host.find_model(ours, "task.conf"), host.pysimt_options(ours))
    model.setup()
    model.reset_parameters()
    return model, Pictured(corpus, [source for source, _ in task.PAIRS]), engine

def share(model, engine, word):
    texts = {"src": task.Text(task.SOURCES, engine.src_vocab, is_target=False)}
    corpus = Pictured(engine.make_corpus(texts, len(task.SOURCES)), task.SOURCES)
    batch = corpus[torch.arange(len(task.SOURCES)).numpy()]
    actor = host.actor_of(model)
    with torch.no_grad():
        found = roll_out(actor.stepper(actor.encode(batch)), torch.full((len(task.SOURCES),), 5), None).tokens_TB[1]
    firsts = [actor.tokens[number] for number in found.tolist()]
    return sum(first == word + source[4] for first, source in zip(firsts, task.SOURCES)) / len(firsts)

def learn(model_type, amount, start=None, lr=0.003, **options):
    model, corpus, engine = make_model(model_type, **options)
    if start is not None:
        model.load_state_dict(start)
    model.register_tensorboard(task.Board())
    task.updates(model, corpus, amount, lr=lr)
    return model, engine

taught, engine = learn("MLENMT", 150, lr=0.01)
found = {"": [share(taught, engine, "bad"), share(taught, engine, "good")]}
for kind, (model_type, updates, options) in kinds.items():
    model, engine = learn(model_type, updates, taught.state_dict(), **options)
    found[kind] = [share(model, engine, "bad"), share(model, engine, "good")]
    print(kind, found[kind], file=sys.stderr, flush=True)
print(json.dumps(found))
"""


LAYERS = {"enc_n_layers": 1, "dec_n_layers": 1, "enc_ff_dim": 24, "dec_ff_dim": 24, "num_heads": 2, "dropout": 0.0}
TRANSFORMER = {"model_dim": 24, **LAYERS}
IMAGES = {"direction": "src:Text, image:Numpy -> trg:Text", "aux_dim": 2, "aux_proj_dim": 24, "mm_fusion_op": "sum"}
ALGORITHMS = [kind for kind in KINDS if "," not in kind]
WITH_IMAGES = ["reinforce", "vine", "sac", "branched sac"]


def learn(folder, kinds, network):
    """The shares of bad and good first words after maximum likelihood, and after each algorithm."""
    chosen = json.dumps({kind: KINDS[kind] for kind in kinds})
    found = run_python(LEARN, folder, chosen, json.dumps(network), PYSIMT_SAC_HOST="pysimt")
    return json.loads(found.splitlines()[-1])


@pytest.fixture(scope="module")
def of_transformer(tmp_path_factory):
    return learn(tmp_path_factory.mktemp("task"), ALGORITHMS, TRANSFORMER)


@pytest.fixture(scope="module")
def of_images(tmp_path_factory):
    return learn(tmp_path_factory.mktemp("task"), WITH_IMAGES, IMAGES)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_transformer_finds_the_late_reward_with_every_algorithm(of_transformer, kind):
    assert of_transformer[""] == [1, 0]
    assert of_transformer[kind] == [0, 1]


@pytest.mark.parametrize("kind", WITH_IMAGES)
def test_it_is_found_where_only_the_image_tells_which_word_is_good(of_images, kind):
    assert of_images[""] == [1, 0]
    assert of_images[kind] == [0, 1]
