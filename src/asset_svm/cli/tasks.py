"""What is to be learnt: classes, numbers, or where rows are."""

from __future__ import annotations

from asset_svm.cli.options import UsageError
from asset_svm.data.scan import MOST_CLASSES, TargetSummary
from asset_svm.data.several_targets import SeveralTargets
from asset_svm.estimators.calibration import check_counts

TASKS = ("auto", "classification", "regression")
ONE_CLASS = "one class"
"""The task without targets, which ``--one-class`` asks for."""


def found_task(task: str, targets: TargetSummary | SeveralTargets, *, probability: bool) -> str:
    """The task that is asked for, or that targets are of where it is not said."""
    if isinstance(targets, SeveralTargets):
        return _task_of_several(task, targets, probability=probability)
    if task == "auto":
        if targets.kind == "names" and not targets.classifies:
            shown = "" if targets.classes is None else f" ({targets.classes[0]!s}, ...)"
            raise UsageError(
                f"The targets are more than {MOST_CLASSES} different names{shown}; if they are "
                "classes, say --task classification; if they are numbers, write them as such."
            )
        task = "classification" if targets.classifies else "regression"
    if probability and task == "regression":
        raise UsageError("--probability is for classification, and these targets are numbers.")
    if probability and targets.classes is not None:
        check_counts(targets.classes, targets.class_counts)
    return task


def _task_of_several(task: str, targets: SeveralTargets, *, probability: bool) -> str:
    """The same of several columns of targets, which are all classes or all numbers."""
    if probability:
        raise UsageError(
            f"--probability is for one column of classes, and --target names {len(targets.parts)}; "
            "leave it out."
        )
    if task != "auto" or targets.classifies:
        return "classification" if task == "auto" else task
    if targets.kind != "numbers":
        raise UsageError(
            "Some of the targets are names, and others look like no classes; say --task "
            "classification, or train one model for each kind."
        )
    return "regression"
