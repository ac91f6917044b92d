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
        Paragraph(
            "Two kinds of error are kept apart throughout: after a fixed number of epochs, and the "
            "smallest over checkpoints. The paper stopped when the test error had matched that of "
            "CPNY, so its errors are of the second kind."
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
