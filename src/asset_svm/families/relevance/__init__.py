"""Learnt relevance: a linear map of the columns, and a model of another family on the rows it makes.

rounds       the map, from quick fits and their gradients
wrapping     its way into a fit: settings and rows of the model behind it
decision     decisions of rows as they come
fitted       what a fit leaves
family       fits, batches and streams, by those of the family behind it
"""

from __future__ import annotations

from asset_svm.families.relevance.family import Relevant
from asset_svm.families.relevance.fitted import FittedRelevance
from asset_svm.families.relevance.rounds import learn_relevance

__all__ = ["FittedRelevance", "Relevant", "learn_relevance"]
