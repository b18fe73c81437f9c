"""Scores of translations, significance tests, lexical analyses, human ranking and the report.

Texts are lists of tokenised sentences without BPE. Only reading run folders, for the report, needs torch.
"""
