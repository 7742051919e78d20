"""Test sets: records, examples in canonical order, shards and their orderings.

`open_test_set` opens one by registered name, file, directory or data set of the hub,
and proves that it arrived whole; `ordering` shuffles a shard; `tokenize` keeps every
ordering the same tokens. Every subpackage above may call it: it knows no model.
"""
