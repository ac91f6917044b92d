"""Parameters, checked once and frozen: what everything below the estimators knows of them.

checks       one parameter at a time: name=value, why it cannot be, what to do
kinds        values that numpy would make numbers of in silence
landmarks    the parameter ``landmarks``, as a sampler
mapping      the parameters of a feature map
solving      all parameters of an estimator
"""

from asset_svm.settings.mapping import MapSettings
from asset_svm.settings.solving import Settings

__all__ = ["MapSettings", "Settings"]
