"""The command line `contamination`: a file for each command.

`main` gathers the commands, `options` are those that several of them share, `printing` is how they
print a table. Nobody imports this package; importing it loads no torch, transformers, pandas,
scipy or matplotlib, so that `contamination --help` answers at once: commands import those inside
their functions, after the input has been checked.
"""
