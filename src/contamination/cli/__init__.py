"""The command line `contamination`: a file for each command, and shared ones.

`main` gathers the commands, `ending` says how one ended. `options` are the parameters
that several commands share, `choices` open what was typed (set, model, sampling),
`running` plans or audits one model after the other, `report` and `printing` print for
people. `flags` puts the names of options into messages of the library, and `help` shows
options in groups. Nobody imports this package. Commands import what is slow (numpy,
pyarrow, torch) inside their functions, after the input has been checked: `contamination
--help` answers at once.
"""
