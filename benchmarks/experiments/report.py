"""The page, its tables as Markdown, from records alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from asset_svm.pages import Cell, Facts, Page, Paragraph, Part, Section, Table, Value
from experiments import ALL
from experiments.base import Record, Scale
from experiments.paper_numbers import SOURCE
from experiments.store import Store
from solvers import SOLVERS

WORDS: dict[str, Value] = {
    "ASSET_M, ASSET_F": "the paper's stochastic subgradients on s Nystroem features (of s landmarks), "
    "or on d random Fourier features",
    "ASSET*_M, ASSET*_F": "the same with its steps for strongly convex problems",
    "CPNY, CPSP": "the cutting planes of SVM-Perf that the paper compares with: on Nystroem features, "
    "or on s basis vectors of their own",
    "(PL)": "the linear problem on the features, which all algorithms on them try to solve",
    "lam, C": "lam / 2 |w|^2 + mean loss, lam = 1 / (C m) for m rows; sigma: the kernel is "
    "exp(-sigma |x - z|^2)",
}
"""For who has not read the paper."""


def write_report(store: Store, folder: Path, scale: Scale) -> Path:
    """Write index.html and tables.md; only records of runs that belong to ``scale`` are shown."""
    tasks = [task for experiment in ALL.values() for task in experiment.tasks(scale)]
    wanted = {task.key for task in tasks}
    records = [record for record in store.done() if record["key"] in wanted]
    failed = [r for r in store.records if "failed" in r["result"] and r["key"] in wanted]
    page = Page(
        "ASSET, the paper reproduced",
        "Kernel support vector machines by approximate stochastic subgradients: the experiments of "
        f"{SOURCE}, run here, beside the paper's own numbers and today's alternatives.",
        f"The paper's figures are quoted from {SOURCE}, Tables 2 and 3 and the text of its section on "
        "computational results. Every other number on this page was measured.",
    )
    page.add(_how(records, failed, scale, len(tasks)))
    for experiment in ALL.values():
        section = experiment.section(records)
        if section.parts:
            page.add(section)
    page.add(_software(records))
    path = page.write(folder / "index.html")
    (folder / "tables.md").write_text(page.markdown(), encoding="utf-8")
    return path


def _how(records: list[Record], failed: list[Record], scale: Scale, planned: int) -> Section:
    """Where and how this was measured."""
    facts: dict[str, Value] = {
        "run": Cell("quick" if scale.quick else "full", f"{scale.repeats} repeats on random splits"),
        "runs": Cell(f"{len(records)} of {planned}", "others: peers not installed, or still to be run"),
    }
    labels = {"commit": "commit", "cpu": "processor", "gpu": "accelerator", "threads": "threads"}
    for name, label in labels.items():
        counts = Counter(str(record["machine"][name]) for record in records)
        if name == "commit" and any(value.endswith("+") for value in counts):
            label = "commit (+: changed)"
        if any(counts):
            facts[label] = ", ".join(sorted(value for value in counts if value)) or "none"
    if records:
        versions = records[-1]["machine"]["versions"]
        facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
        seconds = sum(record["cpu_seconds"] for record in records)
        facts["CPU time of all runs"] = f"{seconds / 60:.1f} minutes"
        facts["measured"] = f"{min(r['time'] for r in records)} to {max(r['time'] for r in records)}"
    parts: list[Part] = [
        Facts(facts),
        Facts(WORDS),
        Paragraph(
            "Two kinds of error are kept apart throughout: after a fixed number of epochs, and the "
            "smallest over checkpoints. The paper stopped when the test error had matched that of "
            "CPNY, so its errors are of the second kind."
        ),
        Paragraph(
            "Behind an error, ± is the standard error of its mean over the splits; behind a time, the "
            "standard deviation; a number without ± is of one split. Times are CPU seconds of training "
            "in one process of so many threads. What is the paper's is called so in its row or column."
        ),
    ]
    parts += [Paragraph(f"Failed: {r['key']}: {r['result']['failed']}", "quiet") for r in failed]
    return Section("How it was measured", parts)


def _software(records: list[Record]) -> Section:
    """Who was compared, with versions."""
    used = {record["solver"]: record["software"] for record in records if record["software"]}
    rows: list[list[Value]] = []
    for name, solver in SOLVERS.items():
        version = used.get(name) or solver.version()
        kind = "exact kernel" if solver.exact else "features"
        state = "run" if name in used else "not installed" if version is None else "not in this run"
        rows.append([name, version, kind, state])
    return Section("Who was compared", [Table(["solver", "software", "kind", "here"], rows)])
