"""Benchmarks that can prove their own leak: a secret key draws what is published.

`prepare` reads what an author gives, `draws` is how a key draws of it, `division` which
records it holds back, `files` writes and verifies that as `documents`, `beacon` mixes
in randomness that nobody had beforehand, `stamp` dates a commitment, `audit` tests a
model and says how much a set can find, `held_out` compares what is published with what
was held back. `logs` tests models by their answers: `answers` reads them, `questions`
finds the record that an answer is to, `columns` and `shots` refuse tables and prompts
that give published answers away. Only `cli` calls this subpackage.
"""
