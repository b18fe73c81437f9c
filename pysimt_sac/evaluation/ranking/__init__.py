"""Human ranking: drawing sentences, the sheet and its key, scores."""
