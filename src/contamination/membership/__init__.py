"""Membership inference: was this text in the training data? Scores, and how well they do.

Unlike the tests of `contamination.statistics` none of these comes with a guarantee: a score says
how familiar a text looks, and what it is worth is found out on texts of which the truth is known.

=================  ================================================================================
module             idea
=================  ================================================================================
`api`              `membership_scores`: texts to a table with a column per score
`columns`          which scores, with which k
`signals`          what one pass of the model says of every token
`distribution`     ranks, entropies and moments, from blocks of logits that are not kept
`scores`           scores of one text, larger for members
`reference`        a second model as a yardstick
`neighbours`       small changes of a text; `masked_lm`: by a fill-mask model
`conditional`      log-probabilities after a prefix (ReCaLL)
`generation`       what a model writes
`completion`       does it go on as the text does? with metadata before it, too
`variation`        does it write the same thing again (CDD)?
`multiple_choice`  order of options, slot guessing
`overlap`          n-grams in a corpus that is known
`similarity`       edit distance, longest common subsequence, ROUGE-L
`evaluate`         ROC, AUC, TPR at a low FPR, thresholds
=================  ================================================================================
"""
