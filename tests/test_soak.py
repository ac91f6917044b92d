"""``make soak``: whatever becomes of a case is counted, and the next one is run."""

import ctypes
import json
import time

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from soak import __main__ as soak
from soak.attack import Attack, Tally, run_cases
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
    for name in ("kills", "damaged", "resealed", "mutants", "inputs"):
        attack = soak.attack_of(name)
        assert attack.name == name and attack.count >= 300


def test_mutants_differ_and_may_come_of_nothing():
    content = bytes(range(200))
    made = {mutated(content, np.random.default_rng(seed)) for seed in range(100)}
    assert len(made) > 95
    assert mutated(b"", np.random.default_rng(0))
