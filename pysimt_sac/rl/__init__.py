"""What the algorithms share: rollouts, replay, critics, losses, temperature, slow copies. No algorithm is in here."""
