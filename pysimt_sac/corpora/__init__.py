"""Preparation of corpora for training: Multi30K, IWSLT14, MLT and the generated demo corpus."""
