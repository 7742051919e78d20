"""An audit of books (Shi, section 5): which of them has a model read, judged by their snippets?

`audit` draws and scores snippets, fits a threshold and gives rates; `made_books` makes books of
which the truth is known; `measure` is the stage of notebook 10, which trains and scores. Called by
notebook 10 and `contamination books`.
"""
