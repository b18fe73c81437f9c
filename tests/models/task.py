"""A task that every algorithm must learn, with its real update and networks, in a second or so.

Sources are of two kinds, said by their first word. Maximum likelihood has taught the actor to begin the translation
with the kind's bad word, four times out of five; `task_reward.py` pays little for it, at once, and much for the good
one, at the end. So the greedy translation must change, and whoever does not look ahead (gamma = 0) must not find it.
"""

import functools
from itertools import cycle, islice
from pathlib import Path

import torch

from pysimt_sac import models  # noqa: F401 - registers the models
from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.core.vocabulary import SPECIAL_TOKENS, Vocabulary
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.engine.data.corpus import Text
from pysimt_sac.hosts.engine.decoding.greedy import greedy_search
from pysimt_sac.hosts.engine.shell import model_class
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.hosts.engine.training.optim import Optimizer

SIZES = {"emb_dim": 12, "enc_dim": 12, "dec_dim": 24, "out_logic": "deep", "direction": "src:Text -> trg:Text"}
REWARD = {"reward": "late", "reward_modules": (str(Path(__file__).with_name("task_reward.py")),), "reward_scale": 1.0}
TASK = {**SIZES, **REWARD, "rollout_max_len": 5, "lambda_mle": 0.0, "gate_sentences": 0, "health_freq": 50}
TASK |= {"critic_pretrain_updates": 0}
WAIT = {"enc_bidirectional": False, "translator_args": {"k": 1}}
BATCH = 25  # sentences per update

SOURCES = [f"kind{kind} {tail}".strip() for kind in (0, 1) for tail in ("", "x", "y", "x y", "y x")]
WORDS = ["bad", "bad", "bad", "bad", "good"]
PAIRS = [(source, f"{word}{source[4]} word end") for source in SOURCES for word in WORDS]


class Board:
    """What a model tells its host: curves, and lines of the log."""

    def __init__(self):
        self.lines, self.curves = [], {}

    def say(self, line):
        self.lines.append(line)

    def log_scalar(self, name, value, step):
        self.curves.setdefault(name, {})[step] = value


def vocabulary(texts):
    tokens = [*SPECIAL_TOKENS, *sorted({word for text in texts for word in text.split()})]
    return Vocabulary(tokens, [0] * len(tokens))


def make_model(model_type, seed, **options):
    """A model with random weights, and the task's corpus."""
    torch.manual_seed(seed)
    sides = {side: [pair[place] for pair in PAIRS] for place, side in enumerate(("src", "trg"))}
    vocabs = {side: vocabulary(texts) for side, texts in sides.items()}
    train = {"seed": seed, "batch_size": BATCH, "pretrained_file": "an actor"}
    sections = {"train": train, "model": {**TASK, **options}, "data": {}, "vocabulary": {}}
    model = model_class(MODELS.get(model_type))(opts=Options("task.conf", sections), vocabs=vocabs)
    model.setup()
    model.reset_parameters()
    texts = {side: Text(sides[side], vocabs[side], side == "trg") for side in sides}
    return model, model.make_corpus(texts, BATCH, training=True)


def updates(model, corpus, amount, **options):
    """The engine's updates, without its loop; in several processes, each has its shard."""
    optimizer = Optimizer(model, TrainOptions(gclip=1.0, **options), higher_better=True)
    batches = (corpus[indices] for epoch in cycle(range(1000)) for indices in corpus.batches(epoch))
    model.train()
    for update, batch in enumerate(islice(batches, amount), 1):
        optimizer.zero_grad()
        gather_gradients(model, [batch], torch.device("cpu"), update, epoch=1)
        optimizer.clip()
        optimizer.step()
    return model.eval()


@functools.cache
def actor(seed, waits=False):
    """The weights that maximum likelihood gives."""
    return updates(*make_model("MLENMT", seed, **(WAIT if waits else {})), 150, lr=0.01).state_dict()


def learn(model_type, seed, amount, lr=0.003, **options):
    """The actor after so many updates of an algorithm with these options of `[model]`."""
    model, corpus = make_model(model_type, seed, **options)
    model.load_state_dict(actor(seed, waits="translator_args" in options))
    model.start_training(Board())
    return updates(model, corpus, amount, lr=lr)


def first_words(model):
    """The first words of the greedy translations of all sources."""
    corpus = model.make_corpus({"src": Text(SOURCES, model.src_vocab, is_target=False)}, len(SOURCES))
    batch = corpus[torch.arange(len(SOURCES)).numpy()]
    found = greedy_search(model, batch, max_len=5)
    return [model.trg_vocab.tokens[hypothesis.words[0]] if hypothesis.words else "" for hypothesis in found]


def share(model, word):
    """For how many of the sources the translation begins with their kind's bad or good word."""
    return sum(first == word + source[4] for first, source in zip(first_words(model), SOURCES, strict=True)) / len(
        SOURCES
    )
