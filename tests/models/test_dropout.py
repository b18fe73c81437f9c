"""Dropout is where a gradient is, and nowhere else; and nothing else draws from the global random state."""

import pytest
import torch

from tests.models import task

CRITICS = {"support_size": 3}
SAMPLED = {"branch_path": "sample", "branch_continuation": "sample"}
KINDS = {
    "REINFORCENMT": {"n_samples": 2, "baseline": "greedy"},
    "GRPONMT": {"n_samples": 2},
    "MIXERNMT": {"mixer_delta": 2},
    "MRTNMT": {"n_samples": 3},
    "ACNMT": {**CRITICS, "known_reward": True},
    "ERACNMT": CRITICS,
    "SACNMT": {**CRITICS, "lambda_return": 0.5},
    "BranchedSACNMT": {**SAMPLED, "critic_every": 1, "lambda_return": 0.5},
    "SACUnsupNMT": {"reward": "unsup"},
    "OwnPrefixesNMT": {},
    "SACUnsupNMT by counts": {"reward": "unsup", "bonus": "counts", "permute_bonus": True},
    "VineNMT": {**SAMPLED, "rarity_weight": 1.0},
}


def update(kind, seed, dropout):
    """The first update of a run, with any state of the global random numbers: losses, and all other that it left."""
    options = {"lambda_mle": 0.5, "dropout_out": 0.3, "dropout_emb": 0.2, **KINDS[kind], "gradient_dropout": dropout}
    model, corpus = task.make_model(kind.split()[0], 1, **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    batch, algorithm = corpus[corpus.batches(1)[0]], model.train().session.algorithm
    torch.manual_seed(seed)
    before = torch.get_rng_state()
    loss = algorithm.update(batch, 1)
    untouched = torch.equal(before, torch.get_rng_state())
    assert model.dec.do_out.training
    terms = {name: term.item() for name, term in loss.terms.items()}
    gradients = torch.autograd.grad(loss.terms["rl"], list(model.parameters()), retain_graph=True, allow_unused=True)
    terms["gradient of rl"] = sum(gradient.abs().sum().item() for gradient in gradients if gradient is not None)
    tensors = {}
    if algorithm.replay:
        tensors |= algorithm.replay.sample().tensors()
    if critics := algorithm.parts.get("critics"):
        weights = [weight.detach() for critic in critics.critics for weight in critic.parameters()]
        tensors |= {f"weight{place}": weight for place, weight in enumerate(weights)}
    return terms, tensors, algorithm.collector.last.tokens_TB.tolist(), untouched


@pytest.mark.parametrize("kind", KINDS)
def test_losses_have_dropout_and_rollouts_branches_targets_and_critics_have_not(kind):
    runs = [update(kind, seed, dropout=True) for seed in (1, 2)]
    (one, first, hypotheses, _), (other, second, again, _) = runs
    assert one.keys() == other.keys() >= {"rl", "mle"}
    # Vine's own loss is 0 whatever the policy is: advantages are relative to its mean return. Its gradient is not.
    assert all(one[name] != other[name] for name in one if name != "rl" or kind != "VineNMT")
    assert hypotheses == again
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("kind", KINDS)
def test_without_it_nothing_depends_on_the_global_random_state_or_changes_it(kind):
    (one, first, hypotheses, untouched), (other, second, again, _) = (update(kind, seed, False) for seed in (1, 2))
    assert untouched
    assert one == other
    assert hypotheses == again
    assert all(torch.equal(first[name], second[name]) for name in first)
    with_dropout, _, same, _ = update(kind, 1, True)
    assert same == hypotheses
    assert with_dropout["mle"] != one["mle"]
