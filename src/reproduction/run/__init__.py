"""Corpus, planted test sets, training, fine-tuning: one run of a profile.

`Experiment` (one run of a `Profile`) opens what the stages write: `make_corpus` the
documents, canaries and tokens, `train_model` the models. `domain_texts` and
`tuning_texts` are texts of known membership; `fine_tune` trains a model further.
Experiments, the report and commands may call it.
"""
