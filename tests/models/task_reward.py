"""The task's reward, as a user would write one; `task.py` names this file in `reward_modules`.

A sentence's reference begins with `bad0` or `good0`, or with `bad1` or `good1`. A translation that begins with the bad
word of that kind earns 0.3 at once, and nothing later; one that begins with the good word earns 1.0, but not before
its last step.
"""

from pysimt_sac.rewards import reward


@reward("late")
def late(translations):
    potentials = []
    for words, reference, n_steps in zip(
        translations.hypotheses, translations.references, translations.steps, strict=True
    ):
        kind, first = reference[0][-1], words[0] if words else ""
        before, end = {f"bad{kind}": (0.3, 0.3), f"good{kind}": (0.0, 1.0)}.get(first, (0.0, 0.0))
        potentials.append([before] * (n_steps - 1) + [end])
    return potentials
