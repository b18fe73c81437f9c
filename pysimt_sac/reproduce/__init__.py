"""Reproduce the paper's tables from the raw data: prepare, train, translate, score and report, despite interruptions.

`matrix` declares what is compared, `steps` and `scoring` turn it into commands, `step_records` records which are done,
`plan` estimates the rest, `runner` runs them in parallel, `results`, `paper` and `tables` collect and show the figures.
"""
