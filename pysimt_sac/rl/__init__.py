"""Building blocks that the algorithms of `models` share: actor, rollouts, replay, critics, losses, diagnostics."""
