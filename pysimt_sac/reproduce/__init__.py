"""The paper's tables from the raw data: prepare, train, translate, score and report, whatever interrupts it.

`matrix` says what is compared, `steps` and `scoring` turn it into commands, `stamps` know which are done, `plan` says
how long the others take, `runner` runs them side by side, `results` and `tables` gather and show their figures.
"""
