"""Model files: ``save`` and ``load``, without pickle.

A ``*.asset`` file (see ``storage.container``) holds one fitted model. What it is made of is written
field by field, by functions made for it, and depends on no class of this package:

    model         an estimator of ours, by itself, in scikit-learn's calibration, or behind its
                  transformers in a pipeline
    provenance    the versions, the time, and what the caller adds

    writing, reading    JSON and tensors; every field is checked as it is read
    maps                kernels, landmarks, feature maps
    models              what predicts, and what is known of it
    resume, session     what learning goes on from: a section of its own, with a version of its own
    estimators          parameters, columns, probabilities
    transformers        scikit-learn's, from a fixed list
    composed, folds     what scikit-learn puts together: pipelines, columns, calibration
    legacy              files of format 1 (0.1.0)

Predictions of a loaded model are bitwise those of the saved one; those of a ``resumable`` file go on
learning bitwise as it does.
"""

from asset_svm.persistence.files import load, machine, model_of, parts_of, read_provenance, save

__all__ = ["load", "machine", "model_of", "parts_of", "read_provenance", "save"]
