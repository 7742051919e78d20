"""Benchmarks that can prove their own leak: a secret key draws what is published, and binds to it.

`draws` is the algorithm, `files` writes and verifies what it draws, `beacon` mixes in randomness
that nobody had beforehand, `audit` tests a model and says how much a set can find. Only `cli` calls
this room.
"""
