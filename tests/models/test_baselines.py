"""The systems that Soft Actor-Critic is compared with: what each rolls out and learns from."""

import torch

from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.models.mrt import unique_columns
from pysimt_sac.rl import losses
from tests.models import task

REINFORCE, MIXER, MRT, AC, ERAC = "REINFORCENMT", "MIXERNMT", "MRTNMT", "ACNMT", "ERACNMT"


def ready(model_type, **options):
    """A model of the task, its algorithm and a batch."""
    model, corpus = task.make_model(model_type, seed=1, **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    return model, model.session.algorithm, corpus[corpus.batches(1)[0]]


def test_mixers_border_moves_from_each_sentences_end_to_its_beginning():
    lengths_B = torch.tensor([4, 9, 12])  # references of 2, 7 and 10 words
    _, algorithm, _ = ready(MIXER, rollout_max_len=50, mixer_every=10)
    expected = {1: [0, 4, 7], 10: [0, 4, 7], 11: [0, 1, 4], 21: [0, 0, 1], 31: [0, 0, 0]}
    assert {step: algorithm.borders(lengths_B, step).tolist() for step in expected} == expected
    _, algorithm, _ = ready(MIXER, rollout_max_len=8)  # hypotheses are not longer, and their last words are sampled
    assert algorithm.borders(lengths_B, 1).tolist() == [0, 4, 5]


def test_mixer_begins_with_the_references_words():
    _, algorithm, batch = ready(MIXER, mixer_delta=1)
    collected = []
    original = algorithm.collector.collect
    algorithm.collector.collect = lambda *args, **more: collected.append(original(*args, **more)) or collected[-1]
    algorithm.update(batch, 1)
    assert torch.equal(collected[0].tokens_TB[:3], batch["trg"][:3])  # three words, of which the last is sampled
    assert len(set(map(tuple, collected[0].tokens_TB[3:].t().tolist()))) > 1
    assert algorithm.metrics["sampled_steps"] < 1


def test_risk_counts_every_candidate_once_and_the_reference_is_one():
    eos = EOS
    words = torch.tensor([[1, 1, 1, 1, 1, 1], [5, 5, 6, 5, 6, 6], [eos, eos, eos, eos, eos, 7]])
    assert unique_columns(words, each=3).tolist() == [0, 2, 3, 4, 5]  # the second is the first; the fourth is another's
    _, algorithm, batch = ready(MRT, n_samples=5, mrt_reference=True, lambda_mle=0.5)
    loss = algorithm.update(batch, 1)
    assert set(loss.terms) == {"rl", "mle"}
    assert 1 < algorithm.metrics["candidates"] <= 6
    last = algorithm.collector.last
    assert torch.equal(last.tokens_TB[: len(last.reference_RB), ::6], last.reference_RB[:, ::6])


def test_actor_critic_samples_from_the_delayed_actor():
    model, algorithm, batch = ready(AC, actor_tau=0.25)
    delayed = algorithm.delayed.network
    with torch.no_grad():
        start = model.dec.emb.weight.clone()
        model.dec.emb.weight += 1
        model.encoders["src"].emb.weight.zero_()
    collected = []
    original = algorithm.collector.collect
    algorithm.collector.collect = lambda actor, *args: collected.append(actor) or original(actor, *args)
    loss = algorithm.update(batch, 1)
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
    model, _ = task.make_model(AC, seed=1, tied_emb="2way")
    model.start_training(task.Board())
    delayed = model.session.algorithm.delayed.network
    assert delayed["dec"].out2prob.weight is delayed["dec"].emb.weight
    assert delayed["dec"].emb.weight is not model.dec.emb.weight


def test_erac_counts_the_entropy_and_actor_critic_does_not(monkeypatch):
    alphas = []
    for name in ("actor_loss", "soft_value"):
        original = getattr(losses, name)

        def record(one, other, alpha, original=original):
            alphas.append(alpha)
            return original(one, other, alpha)

        monkeypatch.setattr(losses, name, record)
    for model_type, alpha in ((AC, 0.0), (ERAC, 0.045)):
        _, algorithm, batch = ready(model_type)
        algorithm.update(batch, 1)
        assert alphas == [alpha, alpha]
        assert len(algorithm.critic.critics.critics) == 1
        alphas.clear()


def test_a_baselines_gradient_stays_in_the_baseline():
    model, algorithm, batch = ready(REINFORCE, baseline="learned")
    algorithm.update(batch, 1)  # the baseline learns in here, the actor does not yet
    assert algorithm.learned.layer.weight.abs().max() > 0
    assert all(parameter.grad is None for parameter in model.parameters())
