"""The all-action policy gradient on branched rollouts: its gradient against enumeration, the weights of its terms."""

import numpy as np
import pytest
import torch

from pysimt_sac.core.policy import full_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import BOS, EOS
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.models import Vine
from pysimt_sac.rl.rollout import select_encoded
from tests.hosts.engine.tiny import tiny_batch
from tests.models.test_reinforce_gradient import (
    CHOICES,
    REFERENCES,
    SOURCES,
    assert_unbiased,
    exact_gradient,
    flat_gradient,
    make,
    worth,
)

COPIES, UPDATES = 20, 60
WHOLE = {"branch_states": 2, "branch_words": len(CHOICES), "branch_min_probability": 0.0}  # all words of both steps


def test_with_all_words_and_sampled_continuations_it_is_the_gradient_of_the_expected_reward():
    """The policy gradient theorem: the sum over the states of sampled paths of sum_a grad pi(a|s) Q(s,a)."""
    model = make(Vine, **WHOLE, branch_path="sample", branch_continuation="sample")
    batch, gradients = tiny_batch(model, SOURCES * COPIES, REFERENCES * COPIES), []
    algorithm = model.train().session.algorithm
    for update in range(1, UPDATES + 1):
        term = algorithm.update(batch, update).terms["rl"]
        n_states = algorithm.metrics["branched_states"]  # the loss is a mean over so many
        gradients.append(flat_gradient(model, term * n_states / (COPIES * (2 + 3))).numpy())
    assert_unbiased(exact_gradient(), np.stack(gradients).astype(np.float64))


def log_pi(actor, encoded, words):
    """The policy after some words, over the vocabulary."""
    tokens_TB = torch.tensor([[BOS, *words, EOS]]).t()
    steps = Steps.of(torch.tensor([len(tokens_TB)]))
    return full_policy(actor.log_probs(encoded, tokens_TB, steps))[-1]


def test_on_greedy_paths_it_is_the_gradient_by_enumeration():
    model = make(Vine, **WHOLE, reward_scale=1.5)
    actor, batch = EngineActor.of(model), tiny_batch(model, SOURCES, REFERENCES)
    total, n_states = torch.zeros(()), 0
    for sentence, reference in enumerate(REFERENCES):
        encoded = select_encoded(actor.encode(batch), torch.tensor([sentence]))
        prefix = []
        while len(prefix) < 2 and EOS not in prefix:
            policy_V = log_pi(actor, encoded, prefix)
            for word in CHOICES:
                whole = [*prefix, word]
                while len(whole) < 2 and EOS not in whole:
                    whole.append(int(log_pi(actor, encoded, whole).argmax()))
                tokens = [actor.tokens[each] for each in whole if each > EOS]
                total = total - policy_V[word].exp() * 1.5 * worth(tokens, reference.split())
            n_states += 1
            prefix.append(int(policy_V.argmax()))
    assert n_states > len(SOURCES)
    loss = model.train().session.algorithm.update(batch, 1)
    torch.testing.assert_close(flat_gradient(model, loss.terms["rl"]), flat_gradient(model, total / n_states))


def test_the_terms_are_weighed_and_the_likelihood_is_the_references():
    plain, weighed = (make(Vine, lambda_rl=rl, lambda_mle=mle) for rl, mle in ((1.0, 1.0), (0.5, 3.0)))
    terms = []
    for model in (plain, weighed):
        batch = tiny_batch(model, SOURCES, REFERENCES)
        terms.append(model.train().session.algorithm.update(batch, 1).terms)
        nll = model.eval()(batch)
        assert terms[-1]["mle"].item() == pytest.approx(
            model.session.algorithm.common.lambda_mle * nll["loss"].item() / nll["n_items"], rel=1e-5
        )
    gradients = [flat_gradient(model, each["rl"]) for model, each in zip((plain, weighed), terms, strict=True)]
    torch.testing.assert_close(gradients[1], 0.5 * gradients[0])
