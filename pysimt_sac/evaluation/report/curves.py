"""Figures of training curves: validation, training, and the algorithms' diagnostics.

Curves that cannot be compared have separate figures: fine-tuning starts near its final level, training from random
weights far below it, and a reinforcement loss is not a likelihood. `DIAGNOSTICS` are the most informative curves of an
algorithm, in the order of the page; the page collapses all others.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pysimt_sac.evaluation.report.figures import Figure, Point, Series, file_name, system_style, thin_out
from pysimt_sac.evaluation.report.input import ReportSystem
from pysimt_sac.evaluation.report.run_folder import RunFolder


@dataclass(frozen=True)
class Diagnostic:
    """A curve that is always shown, how to read it, and a value to compare it with."""

    title: str
    note: str
    guide: float | None = None


GRADIENT_RATIO = "gradient_ratio"  # computed from the norms of both terms

REWARD_NOTE = (
    "What the algorithm maximises: mean over the rollouts of a batch, before reward_scale. If it rises and validation "
    "does not, the reward does not measure what validation measures."
)
DIAGNOSTICS = {
    "rl_sampled_bleu": Diagnostic(
        "BLEU of rollouts",
        "Of the hypotheses in a training batch that the algorithm learns from, whatever its reward. Measured on single "
        "batches, so it is noisy. It should rise, or at least not fall; if it rises and validation does not, the "
        "policy overfits the training sentences.",
    ),
    "rl_length_ratio": Diagnostic(
        "Length ratio of rollouts",
        "Hypothesis words per reference word, over the last batches; 1 is right. If it drifts away, the policy has "
        "learned that shorter or longer translations earn more, not better ones.",
        1.0,
    ),
    "rl_entropy": Diagnostic(
        "Entropy of the policy",
        "In nats per step. A slow fall is normal learning; near 0 the policy no longer explores or learns from "
        "rollouts. Algorithms measure it over different steps and words: compare trends, not levels.",
    ),
    "rl_mle_loss": Diagnostic(
        "Negative log-likelihood of the references",
        "Per word of training batches. It rises as reinforcement moves the policy away from the references: a small "
        "rise is the price of the reward, a steep rise is divergence.",
    ),
    "rl_explained_variance": Diagnostic(
        "Explained variance of the critics",
        "1: Q predicts every return; 0: no better than the mean return; below 0: worse. The actor follows Q, which is "
        "noise while this is near 0. Only for algorithms with critics.",
        0.0,
    ),
    "rl_unsup_accuracy": Diagnostic(
        "Accuracy of the discriminator",
        "On the random labels of words sampled in an update, which it has just learned. The line is chance with four "
        "labels; `best accuracy`, below, is that of a table that has memorised them all. At chance the unsupervised "
        "reward is 0.",
        0.25,
    ),
    "rl_unsup_n_1": Diagnostic(
        "Unsupervised reward of words drawn once",
        "In nats, among the samples of a source in an update; at most the logarithm of the number of labels.",
        0.0,
    ),
    "rl_unsup_n_8_or_more": Diagnostic(
        "Unsupervised reward of words drawn eight times or more",
        "Smaller than that of words drawn once, or the reward does not tell rare choices from frequent ones.",
        0.0,
    ),
    GRADIENT_RATIO: Diagnostic(
        "Gradient norm ratio, reinforcement / likelihood",
        "How strongly each of the two terms pulls on the actor. Far below 1, the run is continued maximum likelihood; "
        "far above 1, the references no longer anchor the policy. Set by lambda_rl and lambda_mle.",
        1.0,
    ),
}

# Other curves: first those of every run, then those of the algorithms.
MEANINGS = {
    "train_LOSS": "per word of single batches, as minimised",
    "epoch_LOSS": "per word, as minimised",
    "gradient_norm": "before clipping",
    "lr": "as used, warm-up and decay included",
    "rl_greedy_bleu": "of greedy hypotheses for a training batch",
    "rl_truncated": "fraction of rollouts truncated before their end",
    "rl_return": "mean return of the rollouts: the sum of rewards from a step on",
    "rl_return_spread": "standard deviation of the returns",
    "rl_q": "mean value that the critics assign to the words taken; compare with the return",
    "rl_q_target": "mean target of the critics",
    "rl_max_q": "largest Q in a batch; if far above the largest return, Q diverges",
    "rl_max_return": "largest return in a batch",
    "rl_td_error": "mean distance between Q and its target",
    "rl_critic_loss": "loss that the critics minimise",
    "rl_critic_gradient": "norm of the critics' gradient",
    "rl_critic_weight": "w in Q = r + w f: how much of the critics' prediction is used",
    "rl_alpha": "temperature: weight of the entropy",
    "rl_max_probability": "mean probability of the most likely word",
    "rl_kl": "KL divergence from the pre-trained actor, per state",
    "rl_gradient_rl": "norm of the reinforcement term's gradient",
    "rl_gradient_mle": "norm of the likelihood term's gradient",
    "rl_gradient_kl": "norm of the gradient of the KL divergence from the pre-trained actor",
    "rl_branched_states": "states of a batch from which several words were rolled out to the end",
    "rl_branches": "rollouts from these states",
    "rl_likeliest_is_best": "fraction of branched states in which the most likely word had the highest return",
    "rl_gain_of_best": "by how much the best word's return exceeds the most likely word's",
    "rl_replay_fill": "fraction of the replay buffer in use",
    "rl_replay_age": "mean age of the experience in the replay buffer, in updates",
    "rl_baseline": "mean baseline, which is subtracted from returns",
    "rl_baseline_loss": "loss of the learned baseline",
    "rl_sampled_steps": "fraction of words sampled, not taken from the reference",
    "rl_candidates": "hypotheses per sentence",
    "rl_support_size": "words per step over which the policy is improved",
    "rl_q_spread": "how much Q differs between these words",
    "rl_chance_accuracy": "accuracy of the discriminator by chance",
    "rl_best_accuracy": "its accuracy if it memorised the labels of all samples",
    "rl_unsup_mean": "mean unsupervised reward of the sampled words, in nats",
    "rl_unsup_n_2_to_3": "mean unsupervised reward of words drawn two or three times among the samples of a source",
    "rl_unsup_n_4_to_7": "mean unsupervised reward of words drawn four to seven times",
    "rl_rarity_bonus": "mean bonus of the words of branched states for rare correct translations",
}
REWARD = "rl_reward_"

TITLES = {
    "train_LOSS": "Training loss",
    "epoch_LOSS": "Training loss, mean of each epoch",
    "gradient_norm": "Gradient norm",
    "lr": "Learning rate",
}
LOSSES = {"train_LOSS", "epoch_LOSS"}
SHOWN_TRAINING = {"train_LOSS"}
REINFORCEMENT = "reinforcement"
MEANING_OF_REINFORCED = "each algorithm's own objective: compare a line only with itself"


def curve_figures(systems: Sequence[ReportSystem]) -> list[Figure]:
    """Return the figures in the order of the page: validation, training, diagnostics, and the rest, collapsed."""
    names = dict.fromkeys(name for system in systems for run in system.runs for name in all_curves(run))
    validation = [name for name in names if name.startswith("val_")]
    training = [name for name in TITLES if name in names]
    shown = [name for name in names if name.startswith(REWARD)] + [name for name in DIAGNOSTICS if name in names]
    rest = [name for name in names if name not in {*validation, *training, *shown}]
    sections = (
        ("validation", validation),
        ("training", [name for name in training if name in SHOWN_TRAINING]),
        ("diagnostics", shown),
        ("more", [*(name for name in training if name not in SHOWN_TRAINING), *rest]),
    )
    return [
        figure for section, members in sections for name in members for figure in name_figures(section, name, systems)
    ]


def all_curves(run: RunFolder) -> dict[str, tuple[Point, ...]]:
    """Return a run's curves, and the ratio of the gradient norms of both terms."""
    reinforcement, likelihood = (dict(run.curves.get(f"rl_gradient_{term}", ())) for term in ("rl", "mle"))
    common = sorted(step for step in set(reinforcement) & set(likelihood) if likelihood[step] > 0)
    ratio = tuple((step, reinforcement[step] / likelihood[step]) for step in common)
    return {**run.curves, GRADIENT_RATIO: ratio} if ratio else run.curves


def name_figures(section: str, name: str, systems: Sequence[ReportSystem]) -> list[Figure]:
    """Return the figures of one curve: one for each kind of run that must not share an axis."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for number, system in enumerate(systems):
        kinds: dict[tuple[str, str], list[tuple[Point, ...]]] = {}
        for run in system.runs:
            if name in (curves := all_curves(run)):
                kinds.setdefault(kind_of_run(run, name), []).append(curves[name])
        for kind, runs in kinds.items():
            groups.setdefault(kind, []).extend(series_of(system.name, system_style(number), runs))
    starts, losses = ({kind[place] for kind in groups} for place in range(2))
    figures = []
    for (start, loss), lines in groups.items():
        apart = ", ".join([start] * (len(starts) > 1) + [loss] * (len(losses) > 1))
        note = MEANING_OF_REINFORCED if loss == REINFORCEMENT else meaning(name)
        figures.append(curve_figure(section, name, lines, apart, note))
    return figures


def series_of(name: str, style: int, lines: Sequence[tuple[Point, ...]]) -> list[Series]:
    """Return the mean of a system's runs and their range at the updates that all have; each run if there are none."""
    values = [dict(points) for points in lines]
    common = sorted(set(values[0]).intersection(*values))
    if len(lines) == 1 or not common:
        return [Series(name, tuple(thin_out(points)), style) for points in lines]
    mean = thin_out([(step, statistics.fmean(own[step] for own in values)) for step in common])
    band = tuple((min(own[step] for own in values), max(own[step] for own in values)) for step, _ in mean)
    return [Series(name, tuple(mean), style, band)]


def kind_of_run(run: RunFolder, name: str) -> tuple[str, str]:
    """Return the kind of a run for a curve: where it started and, for losses, the kind of its loss."""
    start = "fine-tuning" if run.fine_tuned else "from random weights"
    loss = REINFORCEMENT if run.reinforced else "likelihood"
    return start, loss if name in LOSSES else ""


def curve_figure(section: str, name: str, lines: Sequence[Series], apart: str, note: str) -> Figure:
    """Make a figure with a line for each system."""
    title = curve_title(name) + (f": {apart}" if apart else "")
    return Figure(
        title=title,
        x_label="updates",
        y_label="",
        series=tuple(lines),
        guide=DIAGNOSTICS[name].guide if name in DIAGNOSTICS else None,
        section=section,
        caption=title,
        note=note,
        file=f"curve-{file_name(f'{name} {apart}'.strip())}",
    )


def curve_title(name: str) -> str:
    """Return a curve's title."""
    if name in DIAGNOSTICS:
        return DIAGNOSTICS[name].title
    if name in TITLES:
        return TITLES[name]
    if name.startswith(REWARD):
        return f"Reward: {name.removeprefix(REWARD).replace('_', ' ')}"
    if name.startswith("val_"):
        return f"Validation {name.removeprefix('val_').replace('LOSS', 'loss')}"
    plain = name.removeprefix("rl_").removeprefix("train_").replace("_", " ")
    return plain[:1].upper() + plain[1:]


def meaning(name: str) -> str:
    """Return the explanation of a curve, or an empty string if there is none."""
    if name in DIAGNOSTICS:
        return DIAGNOSTICS[name].note
    return REWARD_NOTE if name.startswith(REWARD) else MEANINGS.get(name, "")
