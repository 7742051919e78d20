"""Notebook 03: many models on many test sets (Oren, Table 2).

`sets` opens the sets, `measure` scores them, `cells` names what was scored, `audits` tests it,
`tables` adds controls and corrections and lays the rows out, `figures` draws them. Notebooks may
import it, no other experiment.
"""
