"""Minimum risk against its own definition, over the candidates that were sampled: values, gradients, the reference."""

import pytest
import torch

from pysimt_sac.core.policy import full_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.models import MRT
from pysimt_sac.rl.rollout import select_encoded
from tests.hosts.engine.tiny import tiny_batch
from tests.models.test_reinforce_gradient import REFERENCES, SOURCES, flat_gradient, make, worth

SAMPLES, SHARPNESS = 6, 0.3


def updated(**options):
    """A model, its batch, the loss, and what was sampled for each source."""
    model = make(MRT, **{"n_samples": SAMPLES, "mrt_sharpness": SHARPNESS, "rollout_max_len": 3, **options})
    batch, sampled = tiny_batch(model, SOURCES, REFERENCES), []
    collector = model.train().session.algorithm.collector
    original = collector.collect
    collector.collect = lambda *args: sampled.append(original(*args)) or sampled[-1]
    loss = model.session.algorithm.update(batch, 1).terms["rl"]
    each = sampled[0].tokens_TB.size(1) // len(SOURCES)
    return model, batch, loss, sampled[0].tokens_TB.t().split(each)


def by_definition(model, batch, candidates):
    """- mean over sources of sum_y Q(y) R(y), every candidate once."""
    actor, total = EngineActor.of(model), 0.0
    for sentence, (rows, reference) in enumerate(zip(candidates, REFERENCES, strict=True)):
        encoded = select_encoded(actor.encode(batch), torch.tensor([sentence]))
        scores, returns = [], []
        for words in {tuple(word for word in row if word) for row in rows.tolist()}:
            tokens_TB, steps = torch.tensor([words]).t(), Steps.of(torch.tensor([len(words)]))
            log_pi_NV = full_policy(actor.log_probs(encoded, tokens_TB, steps))
            scores.append(log_pi_NV.gather(1, tokens_TB[1:]).sum())
            returns.append(worth([actor.tokens[word] for word in words if word > EOS], reference.split()))
        total = total - ((SHARPNESS * torch.stack(scores)).softmax(0) * torch.tensor(returns)).sum()
    return total / len(SOURCES)


@pytest.mark.parametrize("reference", [False, True], ids=["samples alone", "with the reference"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_risk_and_its_gradient_are_those_of_the_definition(reference, temperature):
    """The temperature is that of sampling; whatever was sampled, Q(y) is by the policy itself."""
    model, batch, loss, candidates = updated(mrt_reference=reference, sampling_temperature=temperature)
    expected = by_definition(model, batch, candidates)
    torch.testing.assert_close(loss, expected)
    gradient = flat_gradient(model, expected)
    assert gradient.norm() > 1e-3
    torch.testing.assert_close(flat_gradient(model, loss), gradient)


def test_the_reference_is_a_candidate_only_if_asked_for():
    for asked in (False, True):
        _, batch, _, candidates = updated(mrt_reference=asked)
        assert [len(rows) for rows in candidates] == [SAMPLES + asked] * len(SOURCES)
        firsts = [[word for word in rows[0].tolist() if word] for rows in candidates]
        references = [[word for word in row if word] for row in batch["trg"].t().tolist()]
        assert (firsts == references) == asked


def test_a_low_temperature_samples_fewer_different_candidates():
    _, _, _, plain = updated(n_samples=40)
    _, _, _, sharp = updated(n_samples=40, sampling_temperature=0.05)

    def different(candidates):
        return sum(len({tuple(row) for row in rows.tolist()}) for rows in candidates)

    assert different(sharp) < 0.5 * different(plain)
