"""Looking at single test sets: every test, every choice of shards and b, from stores alone.

`scored` finds what was scored, `views` turns the stores of one set under one model into what is
shown, `page` writes all of it as one HTML file, `widgets` shows it in a notebook.
"""
