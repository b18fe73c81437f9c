"""The systems that Soft Actor-Critic is compared with: what each rolls out and learns from; learning; resuming."""

import math

import pytest
import torch

from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from pysimt_sac.models.mrt import unique_columns
from pysimt_sac.rl import losses
from tests.models import task
from tests.models.runs import equal, lines, points, train, train_actor

REINFORCE, MIXER, MRT, AC, ERAC = "REINFORCENMT", "MIXERNMT", "MRTNMT", "ACNMT", "ERACNMT"
# Of the words that follow, the critics know the two likeliest and the sampled one: the others' Q means nothing.
CRITIC = {"support": 2, "critic_pretrain_epochs": 1, "critic_pretrain_lr": 0.01, "critic_lr": 0.01, "tau": 0.05}
CRITIC |= {"lambda_mle": 0.1}  # without it, a critic that reads references takes one kind's good word for the other's
KINDS = {
    "reinforce": (REINFORCE, 60, {"n_samples": 1, "baseline": "no"}),
    "reinforce, mean": (REINFORCE, 60, {"n_samples": 1, "baseline": "mean", "entropy_weight": 0.01}),
    "reinforce, greedy": (REINFORCE, 60, {"n_samples": 1, "baseline": "greedy"}),
    "reinforce, learned": (REINFORCE, 60, {"n_samples": 1, "baseline": "learned", "baseline_lr": 0.02}),
    "mixer": (MIXER, 60, {"baseline_lr": 0.02}),
    "mrt": (MRT, 60, {"mrt_reference": True}),
    "mrt, samples alone": (MRT, 60, {}),
    "ac": (AC, 120, {**CRITIC, "actor_tau": 0.1}),
    "erac": (ERAC, 120, CRITIC),
    "ac, known reward": (AC, 120, {**CRITIC, "actor_tau": 0.1, "known_reward": True}),
    "erac, known reward": (ERAC, 120, {**CRITIC, "known_reward": True}),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_late_reward_is_found(kind, seed):
    model_type, updates, options = KINDS[kind]
    before, _ = task.make_model(model_type, seed)
    before.load_state_dict(task.actor(seed))
    assert task.share(before.eval(), "bad") == 1
    assert task.share(task.learn(model_type, seed, updates, **options), "good") == 1


@pytest.mark.parametrize("kind", ["ac", "erac"])
def test_without_a_look_ahead_it_is_not(kind):
    model_type, updates, options = KINDS[kind]
    assert task.share(task.learn(model_type, 1, updates, **options, gamma=0.0), "bad") == 1


# Through the front door

TOY = ["train.lr:0.001", "train.batch_size:40", "model.health_freq:2", "model.rollout_max_len:8"]
CHANGES = {
    "reinforce": [REINFORCE, "baseline:greedy", "n_samples:2", "entropy_weight:0.01"],
    "reinforce, learned": [REINFORCE, "baseline:learned", "n_samples:1"],
    "mixer": [MIXER, "mixer_delta:1", "mixer_every:3", "mixer_unit:updates"],
    "mrt": [MRT, "n_samples:3", "mrt_reference:True"],
    "mrt, samples alone": [MRT, "n_samples:3", "sampling_temperature:0.7"],
    "ac": [AC, "critic_pretrain_epochs:1", "actor_tau:0.5", "support:6", "gate_sentences:4"],
    "erac": [ERAC, "critic_pretrain_epochs:1", "support:0", "critic_beta1:0.0", "gate_sentences:4"],
    "ac, known reward": [AC, "critic_pretrain_epochs:1", "support:4", "gate_sentences:4", "known_reward:True"],
    "erac, known reward": [ERAC, "critic_pretrain_epochs:1", "support:4", "gate_sentences:4", "known_reward:True"],
}
METRICS = {
    "reinforce": "return return_spread entropy baseline mle_loss gradient_rl gradient_entropy gradient_mle",
    "reinforce, learned": "return baseline baseline_loss gradient_rl",
    "mixer": "return baseline baseline_loss sampled_steps gradient_rl gradient_mle",
    "mrt": "return candidates gradient_rl gradient_mle",
    "mrt, samples alone": "return candidates gradient_rl gradient_mle",
    "ac": "q q_target return td_error entropy critic_loss gradient_rl gradient_mle",
    "erac": "q q_target return td_error entropy critic_loss gradient_rl gradient_mle",
}
METRICS |= {f"{kind}, known reward": METRICS[kind] for kind in ("ac", "erac")}


def changes(toy, kind):
    model_type, *options = CHANGES[kind]
    return [*TOY, train_actor(toy), f"train.model_type:{model_type}", *(f"model.{option}" for option in options)]


@pytest.mark.parametrize("kind", CHANGES)
def test_a_resumed_run_equals_an_undisturbed_one(toy, kind):
    settings = changes(toy, kind)
    whole = train(toy, "whole", settings, "train.max_epochs:2")
    for stop in (2, 7, 1_000_000):
        parts = train(toy, "parts", settings, "train.max_epochs:2", f"train.max_iterations:{stop}")
    (expected, _), (found, _) = load_state(whole), load_state(parts)
    for part in ("model", "weights", "optimizer"):
        assert equal(expected[part], found[part]), part
    assert not equal(expected["weights"], load_state(toy.folder / "runs/toy-mle")[0]["weights"])  # it has learned
    for name in f"{METRICS[kind]} reward_bleu length_ratio sampled_bleu greedy_bleu".split():
        values = points(whole, f"rl_{name}").values()
        assert values, name
        assert all(value is not None and math.isfinite(value) for value in values), name
    (checkpoint,) = whole.glob("*.best.bleu.ckpt")
    (actor,) = toy.folder.glob("runs/toy-mle/*.best.bleu.ckpt")
    assert set(load_checkpoint(checkpoint).weights) == set(load_checkpoint(actor).weights)  # only the actor is shared
    assert len(lines(whole, "Gate")) == ("q_target" in METRICS[kind])


def test_a_scale_by_alpha_needs_an_alpha(toy, pysimt):
    settings = changes(toy, "reinforce")
    outcome = pysimt("train", "-C", toy.config, *settings, "model.reward_scale:1/alpha")
    assert outcome.status == 2
    assert "reward_scale" in outcome.error


# What each of them rolls out and learns from


def ready(model_type, **options):
    """A model of the task, its algorithm and a batch."""
    model, corpus = task.make_model(model_type, seed=1, **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    return model, model.session.algorithm, corpus[corpus.batches(1)[0]]


def test_mixers_border_moves_from_each_sentences_end_to_its_beginning():
    lengths_B = torch.tensor([4, 9, 12])  # references of 2, 7 and 10 words
    _, algorithm, _ = ready(MIXER, rollout_max_len=50)
    expected = {1: [0, 4, 7], 5: [0, 4, 7], 6: [0, 1, 4], 11: [0, 0, 1], 16: [0, 0, 0]}
    assert {epoch: algorithm.borders(lengths_B, 77, epoch).tolist() for epoch in expected} == expected
    _, algorithm, _ = ready(MIXER, rollout_max_len=8)  # hypotheses are not longer, and their last words are sampled
    assert algorithm.borders(lengths_B, 77, 1).tolist() == [0, 4, 5]
    _, algorithm, _ = ready(MIXER, rollout_max_len=50, mixer_unit="updates", mixer_every=10, mixer_delta=1)
    assert [algorithm.borders(lengths_B, update, 99).tolist() for update in (10, 11)] == [[1, 6, 9], [0, 5, 8]]


def test_mixer_begins_with_the_references_words():
    _, algorithm, batch = ready(MIXER, mixer_delta=1)
    collected = []
    original = algorithm.collector.collect
    algorithm.collector.collect = lambda *args, **more: collected.append(original(*args, **more)) or collected[-1]
    algorithm.update(batch, 1, 1)
    assert torch.equal(collected[0].tokens_TB[:3], batch["trg"][:3])  # three words, of which the last is sampled
    assert len(set(map(tuple, collected[0].tokens_TB[3:].t().tolist()))) > 1
    assert algorithm.metrics["sampled_steps"] < 1


def test_risk_counts_every_candidate_once_and_the_reference_is_one():
    eos = EOS
    words = torch.tensor([[1, 1, 1, 1, 1, 1], [5, 5, 6, 5, 6, 6], [eos, eos, eos, eos, eos, 7]])
    assert unique_columns(words, each=3).tolist() == [0, 2, 3, 4, 5]  # the second is the first; the fourth is another's
    _, algorithm, batch = ready(MRT, n_samples=5, mrt_reference=True, lambda_mle=0.5)
    loss = algorithm.update(batch, 1, 1)
    assert set(loss.terms) == {"rl", "mle"}
    assert 1 < algorithm.metrics["candidates"] <= 6
    references = algorithm.collector.last.references
    assert algorithm.collector.last.hypotheses[::6] == references[::6]


def test_actor_critic_samples_from_the_delayed_actor():
    model, algorithm, batch = ready(AC, actor_tau=0.25, critic_pretrain_epochs=0)
    delayed = algorithm.delayed.network
    with torch.no_grad():
        start = model.dec.emb.weight.clone()
        model.dec.emb.weight += 1
        model.encoders["src"].emb.weight.zero_()
    collected = []
    original = algorithm.collector.collect
    algorithm.collector.collect = lambda actor, *args: collected.append(actor) or original(actor, *args)
    loss = algorithm.update(batch, 1, 1)
    assert [actor.networks for actor in collected] == [delayed]
    torch.testing.assert_close(delayed["dec"].emb.weight, start + 0.25)
    assert not torch.equal(delayed["encoders"]["src"].emb.weight, model.encoders["src"].emb.weight)
    assert not any(parameter.requires_grad for parameter in delayed.parameters())
    assert model.dec is not delayed["dec"]
    loss.terms["rl"].backward()  # the actor has a gradient, its copy has none
    assert model.dec.emb.weight.grad is not None
    assert delayed["dec"].emb.weight.grad is None
    assert not any("delayed" in name for name in model.state_dict())


def test_actor_critic_copies_shared_weights_once():
    model, algorithm, _ = ready_with_tied_weights()
    delayed = algorithm.delayed.network
    assert delayed["dec"].out2prob.weight is delayed["dec"].emb.weight
    assert delayed["dec"].emb.weight is not model.dec.emb.weight


def ready_with_tied_weights():
    model, corpus = task.make_model(AC, seed=1, tied_emb="2way")
    model.start_training(task.Board())
    return model, model.session.algorithm, corpus


def test_erac_counts_the_entropy_and_actor_critic_does_not(monkeypatch):
    alphas = []
    for name in ("actor_loss", "soft_value"):
        original = getattr(losses, name)

        def record(one, other, alpha, original=original):
            alphas.append(alpha)
            return original(one, other, alpha)

        monkeypatch.setattr(losses, name, record)
    for model_type, alpha in ((AC, 0.0), (ERAC, 0.045)):
        _, algorithm, batch = ready(model_type, critic_pretrain_epochs=0)
        algorithm.update(batch, 1, 1)
        assert alphas == [alpha, alpha]
        assert len(algorithm.critics.critics) == 1
        alphas.clear()


def test_a_baselines_gradient_stays_in_the_baseline():
    model, algorithm, batch = ready(REINFORCE, baseline="learned")
    algorithm.update(batch, 1, 1)  # the baseline learns in here, the actor does not yet
    assert algorithm.learned.layer.weight.abs().max() > 0
    assert all(parameter.grad is None for parameter in model.parameters())
