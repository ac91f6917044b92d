"""Learnt relevance: a linear map of the columns, and a model of another family on the rows it makes.

quick        quick fits, the rows that judge them, and the outer products of their gradients
rounds       which of them are made, one after the other
choice       what is taken in the end
wrapping     its way into a fit: settings and rows of the model behind it
decision     decisions of rows as they come
fitted       what a fit leaves
family       fits, batches and streams, by those of the family behind it
windows      files that are larger than memory
"""

from __future__ import annotations

from asset_svm.families.relevance.family import Relevant
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.rounds import learn_relevance

__all__ = ["FittedRelevance", "Relevant", "learn_relevance"]
