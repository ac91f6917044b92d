"""``make soak``: whatever becomes of a case is counted, and the next one is run."""

import ctypes
import hashlib
import json
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from asset_svm import runtime
from asset_svm.storage import container
from fuzz import readers
from killed_runs import begin, ended, small_windows, write_rows
from soak import __main__ as soak
from soak.attack import Attack, Case, Tally, run_cases
from soak.kills import die_at
from soak.model_files import GOLDEN, MODELS, Damaged, Resealed, write_models
from soak.mutations import mutated


class Toy(Attack):
    name, count = "toy", 6

    def run(self, case):
        if case.number >= 3:
            case.expect_failure("9.X")
        if case.number in (1, 4):
            raise KeyError("what")
        if case.number in (2, 5):
            ctypes.string_at(0)
        return "well"


def test_exceptions_and_crashes_are_counted_and_the_known_ones_apart():
    tallies = list(run_cases(Toy(), 0, 0, 6, seconds=100))
    found = {}
    for tally in tallies:
        for outcome, count in tally.outcomes.items():
            found[outcome] = found.get(outcome, 0) + count
    assert found == {
        "well": 2,
        "finding: KeyError": 1,
        "finding: crash": 1,
        "known 9.X: KeyError": 1,
        "known 9.X: crash": 1,
    }
    findings = [finding for tally in tallies for finding in tally.findings]
    assert [finding["case"] for finding in findings] == [1, 2]
    assert "signal 11" in findings[1]["detail"] and "Segmentation fault" in findings[1]["detail"]


class Sleeper(Attack):
    name, count, patience = "sleeper", 2, 0.2

    def run(self, case):
        while True:
            time.sleep(1)


def test_a_case_that_never_ends_is_ended():
    assert [tally.outcomes for tally in run_cases(Sleeper(), 0, 0, 2, seconds=100)] == [
        {"finding: hang": 1},
        {"finding: hang": 1},
    ]


class Eater(Attack):
    name, count, memory = "eater", 1, 1 << 30

    def run(self, case):
        np.ones(1 << 29)  # 4 GiB
        return "well"


def test_a_case_has_so_much_memory():
    (tally,) = run_cases(Eater(), 0, 0, 1, seconds=100)
    assert list(tally.outcomes) in (["finding: MemoryError"], ["finding: _ArrayMemoryError"])


class Numbers(Attack):
    name, count = "numbers", 5

    def run(self, case):
        return f"{case.number} {case.rng.integers(10**9)}"


def test_it_goes_on_where_it_stopped_with_the_same_cases(tmp_path, capsys):
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    lines = soak.soak(Numbers(), 5, 0, 100, whole, "this")
    soak.soak(Numbers(), 2, 0, 100, parts, "this")
    again = soak.soak(Numbers(), 5, 0, 100, parts, "this")
    assert [line["begin"] for line in again] == [0, 2]
    merged = again[0]["outcomes"] | again[1]["outcomes"]
    assert merged == lines[0]["outcomes"] and len(merged) == 5
    assert soak.print_tally("numbers", again) and "numbers: 5 cases" in capsys.readouterr().out
    assert [line["begin"] for line in soak.soak(Numbers(), 1, 0, 100, parts, "other")] == [0]


def test_findings_are_told_and_no_case_at_all_is_not_well(capsys):
    tally = Tally(0, 0)
    tally.add(0, "finding: KeyError", "Traceback\nKeyError: 'what'")
    assert not soak.print_tally("toy", [json.loads(json.dumps(vars(tally)))])
    assert "case 0, finding: KeyError: KeyError: 'what'" in capsys.readouterr().out
    assert not soak.print_tally("toy", [])


def test_there_are_the_attacks_of_the_table():
    names = "kills", "cell-kills", "search-kills", "grid-kills"
    for name in (*names, "damaged", "resealed", "mutants", "inputs"):
        attack = soak.attack_of(name)
        assert attack.name == name and attack.count >= 200


def test_mutants_differ_and_may_come_of_nothing():
    content = bytes(range(200))
    made = {mutated(content, np.random.default_rng(seed)) for seed in range(100)}
    assert len(made) > 95
    assert mutated(b"", np.random.default_rng(0))


def test_the_runtime_reads_attacked_files_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attack = Resealed()
    attack.fixed = True
    attack.prepare()
    cases = [Case("resealed", 0, number, print) for number in range(30)]
    assert {attack.run(case) for case in cases} >= {"refused"}

    def broken(path):
        raise AttributeError(path)

    monkeypatch.setattr(runtime, "load", broken)
    with pytest.raises(AttributeError):
        attack.run(cases[0])


class Short(Numbers):
    short = 3


def test_a_short_soak_counts_cases_and_leaves_out_what_is_never_the_same(tmp_path, monkeypatch, capsys):
    attacks = {"numbers": Numbers(), "short": Short()}
    monkeypatch.setattr(soak, "ATTACKS", attacks)
    monkeypatch.setattr(soak, "attack_of", attacks.__getitem__)
    tally = tmp_path / "tally.jsonl"
    assert soak.main(["--short", "--tally", str(tally)]) == 0
    told = capsys.readouterr().out
    assert "numbers: no case is the same every time" in told and "short: 3 cases" in told
    (line,) = map(json.loads, tally.read_text().splitlines())
    assert line["end"] == 3 and line["short"] and attacks["short"].fixed
    assert soak.main(["numbers=2", "--tally", str(tally)]) == 0
    assert not json.loads(tally.read_text().splitlines()[-1])["short"]


def test_every_attack_but_that_on_clusters_has_a_short_soak():
    without = [name for name in soak.ATTACKS if name != "clusters" and not soak.attack_of(name).short]
    assert without == [] and "clusters" in soak.ATTACKS


@pytest.mark.slow
def test_files_of_a_short_soak_are_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [*sorted(GOLDEN.glob("*.asset")), *sorted(MODELS.glob("*.asset"))]
    digests = []
    for moment in (1e9, 2e9):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        attack = Damaged()
        attack.fixed = True
        attack.prepare()
        assert attack.contents == [path.read_bytes() for path in files] and os.listdir() == []
        damaged = [
            mutated(attack.contents[number % 11], Case("damaged", 0, number, print).rng)
            for number in range(20)
        ]
        seeds = [seed for name in readers.READERS for seed in readers.seeds(name)]
        digests.append([hashlib.sha256(content).hexdigest() for content in damaged + seeds])
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_the_files_of_a_short_soak_are_of_the_kinds_of_a_long_one(tmp_path):
    write_models(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in MODELS.iterdir()}


def test_a_run_dies_at_the_same_event_of_its_files_every_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows()
    left, tensors = [], []
    for name in ("one", "two"):
        with small_windows():
            assert ended(begin(name, partial(die_at, 100)))
        left.append(sorted(path.suffix for path in Path(name).iterdir()))
        tensors.append(container.read(Path(name) / "state.asset", "state")[1])
    assert left[0] == left[1]
    assert tensors[0].keys() == tensors[1].keys() and tensors[0]
    for key, array in tensors[0].items():
        np.testing.assert_array_equal(array, tensors[1][key])
