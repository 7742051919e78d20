"""The command line `contamination`: a file for each room whose commands it has.

`main` gathers the commands, runs what is typed and says how it ended, `options` are those that
several of them share, `printing` is how they print a table. Nobody imports this package. Commands
import what is slow (numpy, pyarrow, torch) inside their functions, after the input has been
checked: `contamination --help` answers at once.
"""
