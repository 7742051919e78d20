"""Membership inference: was this text in the training data? Scores, and how well they do.

Unlike the tests of `contamination.statistics` none of these comes with a guarantee: a score says
how familiar a text looks, and what it is worth is found out on texts of which the truth is known.
Experiments and the command line call this room; it calls scoring and test sets.

=================  ================================================================================
module             idea
=================  ================================================================================
`api`              `membership_scores` and `score_tokens`: a table with a column per score; spans
`scores`           the registry of scores of one text, larger for members, by names of columns
`signals`          what one pass of the model says of every token, alone or after a prefix (ReCaLL)
`neighbours`       small changes of a text: words moved, or tokens of a fill-mask model
`generation`       what a model writes: completions, with metadata too, and variation (CDD)
`multiple_choice`  order of options, slot guessing, verbatim choice (DE-COP), name cloze, exposure
`similarity`       edit distance, ROUGE-L, n-grams in a corpus that is known
`evaluate`         AUC, TPR at a low FPR, bootstrap intervals, thresholds
`blind`            baselines that never ask a model: bag of words, dates, length
`stored`           tables of scores that are kept on disk, shared by all processes
`books`            which of several books a model has read (Shi, section 5)
`unlearning`       what a model still knows that was made to forget (Shi, section 7)
`dated_pages`      a set like WikiMIA from dated pages of one's own
=================  ================================================================================
"""
