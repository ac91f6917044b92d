"""The best model without a knob: a race over kinds of models and their settings.

shapes      what is tried: encodings, kernels, relevances, one map or cells; bandwidth, C, size
parts       which rows learn and which judge
columns     rows as candidates see them, encoded and mapped without the rows that judge
budget      seconds of the clock, or work that is counted
looks       models of several Cs trained together, and what the rows that judge say
larger      which larger models like a candidate there are
standing    which of those that were looked at is the best, of its shape, or near it
race        the stages, from many cheap looks to few dear ones
confirm     the best, judged by rows of other folds too
outcome     what a race has found, in the words of scikit-learn
blend       the weights of a mean of the best
final       the best, or the mean, trained on all rows
search      from what was passed to ``fit`` to an outcome
"""
