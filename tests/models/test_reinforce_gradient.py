"""REINFORCE's gradient against the gradient of the expected reward, which a tiny model lets us compute exactly."""

import functools
import itertools

import numpy as np
import pytest
import torch

from pysimt_sac.core.policy import full_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import BOS, EOS
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.hosts.engine.shell import model_class
from pysimt_sac.models import REINFORCE
from pysimt_sac.rewards import reward
from pysimt_sac.rl.rollout import select_encoded
from tests.hosts.engine.tiny import tiny_batch, tiny_model
from tests.models.task import Board

SOURCES, REFERENCES = ["w0 w1", "w1"], ["w1", "w0 w0"]
COPIES, UPDATES = 30, 120
CHOICES = range(EOS, 6)  # <eos>, <unk> and two words
# Everything that two steps can say: nothing, or a word and then anything, cut off there unless it is <eos>.
OUTCOMES = [[BOS, EOS, 0]] + [[BOS, first, second] for first, second in itertools.product(CHOICES[1:], CHOICES)]


def worth(words, reference):
    """Something between 2 and 4 that depends on all words: much of it is the same for all translations."""
    return 2 + ("w0" in words) + 0.5 * (words == reference) + 0.25 * len(words)


@reward("worth")
def rewards(translations):
    return [worth(words, ref) for words, ref in zip(translations.hypotheses, translations.references, strict=True)]


def make(algorithm=REINFORCE, **options):
    more = {"rollout_max_len": 2, "reward": "worth", "reward_scale": 1.0, "lambda_mle": 0.0, "baseline_lr": 0.05}
    model = tiny_model(n_words=2, seed=3, model_class=model_class(algorithm), **{**more, **options})
    model.start_training(Board())
    return model


def flat_gradient(model, loss):
    gradients = torch.autograd.grad(loss, [*model.parameters()], allow_unused=True, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in gradients])


@functools.cache
def exact_gradient(temperature=1.0):
    """Of minus the expected reward per word of the references, as the algorithm's loss is, under a sharper policy."""
    model = make()
    actor, batch = EngineActor.of(model), tiny_batch(model, SOURCES, REFERENCES)
    tokens_TB = torch.tensor(OUTCOMES).t()
    lengths_B = tokens_TB.ne(0).sum(0)
    steps, total = Steps.of(lengths_B), 0.0
    for sentence, reference in enumerate(REFERENCES):
        encoded = select_encoded(actor.encode(batch), torch.full((len(OUTCOMES),), sentence))
        log_pi_NV = full_policy(actor.log_probs(encoded, tokens_TB, steps) / temperature)
        log_pi_N = log_pi_NV.gather(1, steps.flatten(tokens_TB[1:]).unsqueeze(1)).squeeze(1)
        probabilities = steps.pad(log_pi_N).sum(0).exp()
        assert probabilities.sum().item() == pytest.approx(1, abs=1e-5)
        tokens = [[actor.tokens[word] for word in words if word > EOS] for words in OUTCOMES]
        total += (probabilities * torch.tensor([worth(words, reference.split()) for words in tokens])).sum()
    return flat_gradient(model, -total / (2 + 3)).numpy()


@functools.cache
def sampled_gradients(baseline, n_samples, temperature=1.0):
    model = make(baseline=baseline, n_samples=n_samples, sampling_temperature=temperature)
    batch = tiny_batch(model, SOURCES * COPIES, REFERENCES * COPIES)
    model.train()
    losses = (model.session.algorithm.update(batch, update).terms["rl"] for update in range(1, UPDATES + 1))
    return np.stack([flat_gradient(model, loss).numpy() for loss in losses]).astype(np.float64)


KINDS = [("no", 1), ("mean", 1), ("mean", 2), ("greedy", 1), ("learned", 1)]


@pytest.mark.parametrize(("baseline", "n_samples"), KINDS)
def test_it_is_unbiased_whatever_the_baseline(baseline, n_samples):
    assert_unbiased(exact_gradient(), sampled_gradients(baseline, n_samples))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_sampling_temperature_is_one_of_the_policy_that_is_trained(temperature):
    exact = exact_gradient(temperature)
    assert np.linalg.norm(exact - exact_gradient()) > 0.3 * np.linalg.norm(exact_gradient())  # the test could fail
    assert_unbiased(exact, sampled_gradients("mean", 2, temperature))


def assert_unbiased(exact, sampled):
    """Their mean is the exact gradient, as far as chance allows."""
    error, deviation = sampled.mean(0) - exact, sampled.std(0, ddof=1) / np.sqrt(len(sampled))
    used = deviation > 0
    assert used.mean() > 0.5
    assert np.abs(error[~used]).max(initial=0) < 1e-6
    z = error[used] / deviation[used]
    assert np.abs(z).max() < 4.5
    assert (z**2).mean() < 3  # about 1; coordinates depend on each other
    # The test could fail: along the true gradient the error is known to a fraction of its length.
    direction = exact / np.linalg.norm(exact)
    along = sampled @ direction
    tolerance = 4 * along.std(ddof=1) / np.sqrt(len(sampled))
    assert tolerance < 0.5 * np.linalg.norm(exact)
    assert along.mean() == pytest.approx(np.linalg.norm(exact), abs=tolerance)


@pytest.mark.parametrize(("baseline", "n_samples"), KINDS[1:])
def test_every_baseline_lowers_the_variance(baseline, n_samples):
    variance, plain = (sampled_gradients(*kind).var(0).sum() for kind in ((baseline, n_samples), ("no", 1)))
    assert variance * n_samples < 0.5 * plain  # n samples alone would divide it by n
