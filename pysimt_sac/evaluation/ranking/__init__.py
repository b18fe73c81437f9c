"""Human ranking: sampling sentences, the blind sheet and its key, scores."""
