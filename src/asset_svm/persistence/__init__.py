"""Model files: ``save`` and ``load``, without pickle.

A ``*.asset`` file (see ``storage.container``) holds one fitted model. What it is made of is written
field by field, by functions made for it, and depends on no class of this package:

    model         an estimator of ours, by itself, in scikit-learn's calibration, or behind its
                  transformers in a pipeline
    provenance    the versions, the time, and what the caller adds

    models, resume      what predicts; what learning goes on from, a section with its own version
    estimators          parameters, columns, probabilities
    transformers        scikit-learn's, from a fixed list
    composed, folds     what scikit-learn puts together: pipelines, columns, calibration
    legacy, decoding    files of format 1 (0.1.0)

What fields are, and the records of maps and of the state of a run, which checkpoints have too, are in
``storage``.

Predictions of a loaded model are bitwise those of the saved one; those of a ``resumable`` file go on
learning bitwise as it does.
"""

from asset_svm.persistence.files import load, machine, model_of, parts_of, read_provenance, save

__all__ = ["load", "machine", "model_of", "parts_of", "read_provenance", "save"]
