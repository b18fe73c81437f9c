"""What the algorithms share: actor, rollouts, replay, critics, losses, diagnostics. No algorithm is in here."""
