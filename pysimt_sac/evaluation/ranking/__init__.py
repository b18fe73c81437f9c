"""Human ranking: sampling of sentences, the blind sheet and its key, scores."""
