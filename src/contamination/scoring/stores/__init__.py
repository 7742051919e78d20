"""Three kinds of stores behind one interface: what sequences each has, and what tests read of it.

=============  ====================================================================
module         idea
=============  ====================================================================
`base`         `Store`: what all kinds have in common, and the interface of each
`orderings`    every shard in its canonical order and in shuffled ones
`successors`   every example right after each of the others of its shard
`variants`     every variant of a record after the beginning that all of them share
=============  ====================================================================

`contamination.scoring.store` chooses the class by the kind that a header names.
"""
