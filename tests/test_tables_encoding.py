"""The mathematics of tables made numbers: summaries, functions of columns, and all together."""

import datetime as dt
import decimal
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from asset_svm import TableEncoder
from asset_svm.encoding.columns import Clipped, Cycles, OneHot, Pieces, Ranked, Scaled
from asset_svm.encoding.encoding import FOLDS, folds_of
from asset_svm.encoding.frames import as_table, is_plain
from asset_svm.encoding.plan import SMOOTHING, Options, edges_of, number_encoder
from asset_svm.encoding.quantiles import QuantileSketch
from asset_svm.encoding.summary import ColumnSummary, TableSummary
from asset_svm.encoding.table import Levels, Table, as_levels, is_gap, level_text
from asset_svm.exceptions import DataError

NUMBERS = ("standard", "robust", "quantile", "pieces")
finite = st.floats(-1e6, 1e6, allow_nan=False)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25)


def summary_of(*parts):
    """The summary of a column that came in parts."""
    found = ColumnSummary()
    for part in parts:
        found.add(np.asarray(part, dtype=np.float64), "x")
    return found


def split(values, cuts):
    """The values in parts."""
    return np.split(values, sorted(cut % (len(values) + 1) for cut in cuts))


def mixed_frame(n_rows=300, seed=0):
    """Numbers, categories, gaps, truth values, dates and times."""
    rng = np.random.default_rng(seed)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    return pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "whole": rng.integers(0, 5, n_rows),
            "gaps": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
            "level": rng.choice(["red", "green", "blue"], n_rows),
            "truth": rng.random(n_rows) < 0.5,
            "many": rng.integers(0, 80, n_rows).astype(str) + np.full(n_rows, "x"),
            "day": dates,
            "length": pd.to_timedelta(rng.integers(0, 900, n_rows), unit="h"),
        }
    )


# Quantiles and moments --------------------------------------------------------------------------


@few
@given(st.lists(finite, min_size=1, max_size=64), st.lists(st.integers(0, 64), max_size=3))
def test_quantiles_of_few_values_are_exact_however_they_come(values, cuts):
    values, parts = np.array(values), np.linspace(0.0, 1.0, 9)
    joined = QuantileSketch(32)
    for part in split(values, cuts):
        one = QuantileSketch(32)
        one.add(part)
        joined.join(one)
    expected = np.quantile(values, parts, method="inverted_cdf")
    np.testing.assert_array_equal(joined.quantiles(parts), expected)


@few
@given(
    seeds,
    st.integers(1, 20_000),
    st.lists(st.integers(0, 20_000), max_size=5),
    st.sampled_from(["normal", "sorted", "backwards", "ties"]),
)
def test_ranks_of_many_values_are_within_the_bound_in_any_split(seed, n, cuts, order):
    size = 128
    values = np.random.default_rng(seed).normal(size=n)
    if order == "ties":
        values = np.rint(values)
    elif order != "normal":
        values = np.sort(values)[:: 1 if order == "sorted" else -1]
    joined = QuantileSketch(size)
    for part in split(values, cuts):
        one = QuantileSketch(size)
        one.add(part)
        joined.join(one)
    parts = np.linspace(0.0, 1.0, 33)
    found = joined.quantiles(parts)
    ordered = np.sort(values)
    below = np.searchsorted(ordered, found, side="left") / n
    up_to = np.searchsorted(ordered, found, side="right") / n
    bound = max(np.log2(n / size), 0.0) / size + 1e-9
    assert (below <= parts + bound).all()
    assert (up_to >= parts - bound).all()
    assert joined.cumulated()[1][-1] == n, "every value counts"
    assert np.isin(found, values).all()
    assert len(joined.cumulated()[0]) <= 2 * size * (np.log2(n / size + 2) + 2)


@few
@given(
    st.lists(finite, min_size=1, max_size=200),
    st.lists(st.integers(0, 200), max_size=4),
    st.sampled_from([1.0, 1e-290, 1e290, 1e8]),
)
def test_moments_joined_from_parts_are_those_of_all(values, cuts, unit):
    values = np.array(values) * unit
    joined = ColumnSummary()
    for part in split(values, cuts):
        joined.join(summary_of(part) if len(part) else ColumnSummary())
    inside = values / unit
    assert joined.count == joined.n_rows == len(values)
    assert joined.mean / unit == pytest.approx(inside.mean(), rel=1e-9, abs=1e-9 * np.abs(inside).max())
    assert (joined.low, joined.high) == (values.min(), values.max())
    spread = joined.spread / unit / np.sqrt(len(values))
    assert spread == pytest.approx(inside.std(), rel=1e-6, abs=1e-12 * np.abs(inside).max() + 1e-300)


@few
@given(
    st.lists(st.sampled_from(["a", "b", "c d e", None]), min_size=1, max_size=50),
    st.lists(st.integers(0, 50), max_size=4),
)
def test_summaries_of_levels_and_gaps_join_in_any_split(values, cuts):
    whole, joined = ColumnSummary(), ColumnSummary()
    whole.add(Levels.of(values), "c")
    for part in split(np.array(values, dtype=object), cuts):
        one = ColumnSummary()
        if len(part):
            one.add(Levels.of(part), "c")
        joined.join(one)
    assert joined.levels == whole.levels
    assert (joined.n_rows, joined.n_gaps, joined.words) == (whole.n_rows, whole.n_gaps, whole.words)


def test_a_column_of_other_kinds_in_other_parts_is_one_of_levels():
    found = TableSummary()
    found.add(as_table(pd.DataFrame({"c": [1.0, 2.0]})))
    found.add(as_table(pd.DataFrame({"c": ["a", "b"]})))
    found.add(as_table(pd.DataFrame({"c": [np.nan, np.nan]})))
    assert found.columns[0].kind == "levels"
    assert list(found.mixed()) == ["c"]


# Functions of numbers ---------------------------------------------------------------------------


def edges(draw_seed, n):
    """Edges at distances of all sizes."""
    return np.cumsum(np.random.default_rng(draw_seed).gamma(0.5, size=n + 1) + 1e-3)


@few
@given(seeds, st.integers(1, 20))
def test_what_is_linear_in_each_piece_is_linear_in_the_pieces(seed, n):
    rng = np.random.default_rng(seed)
    knots, heights = edges(seed, n), rng.normal(size=n + 1)
    part = Pieces(0.0, False, knots, 0.7)
    x = rng.uniform(knots[0] - 1.0, knots[-1] + 1.0, size=50)
    found = heights[0] + part(x) @ (np.diff(heights) * 0.7)
    np.testing.assert_allclose(found, np.interp(x, knots, heights), atol=1e-9)


@few
@given(seeds, st.sampled_from(NUMBERS), st.booleans())
def test_functions_of_numbers_are_monotone_and_bounded_beyond_the_ends(seed, numbers, ties):
    rng = np.random.default_rng(seed)
    values = rng.gamma(0.3, size=500) * 1e3
    values = np.rint(values) if ties else values
    part = number_encoder(summary_of(values), Options(numbers, 32, 64))
    x = np.sort(np.concatenate([values, [-1e9, 1e9, -1e300, 1e300]]))
    found = part(x)
    assert (np.diff(found, axis=0) >= 0.0).all()
    assert np.isfinite(found.astype(np.float32)).all()
    if numbers in ("pieces", "quantile"):
        inside = part(np.array([values.min(), values.max()]))
        np.testing.assert_array_equal(found[[0, -1]], inside)
    if numbers == "robust":
        assert np.abs(found).max() <= 3.0


@few
@given(seeds, st.sampled_from(NUMBERS))
def test_numbers_have_variance_one_together(seed, numbers):
    values = np.random.default_rng(seed).lognormal(size=2000)
    found = number_encoder(summary_of(values), Options(numbers, 32, 64))(values)
    total = found.var(axis=0).sum()
    if numbers != "robust":
        assert total == pytest.approx(1.0, abs=0.02)
    if numbers in ("standard", "quantile"):
        assert found.mean() == pytest.approx(0.0, abs=0.02)


@few
@given(seeds, st.sampled_from([1.0, 1e-8, 1e8]))
def test_slopes_are_those_of_finite_differences(seed, unit):
    rng = np.random.default_rng(seed)
    knots = edges(seed, 6) * unit
    below = np.sort(rng.uniform(size=7))
    parts = [
        Scaled(0.0, False, 1.0 * unit, 2.0 * unit),
        Clipped(0.0, False, 1.0 * unit, 2.0 * unit),
        Ranked(0.0, False, knots, below, 0.5, 0.3),
        Pieces(0.0, False, knots, 0.3),
    ]
    x = rng.uniform(knots[0] - unit, knots[-1] + unit, size=40)
    step = 1e-6 * unit
    x = x[np.abs(x[:, None] - knots).min(axis=1) > 2 * step]
    for part in parts:
        found = (part(x + step) - part(x - step)) / (2.0 * step)
        np.testing.assert_allclose(part.slopes(x) * unit, found * unit, rtol=1e-4, atol=1e-5)


def test_slopes_of_cycles_are_by_days():
    part = Cycles(("year", "week", "day"))
    times = np.datetime64("2021-03-04T05:06:07", "us") + np.arange(50) * np.timedelta64(77_777, "s")
    step = np.timedelta64(1_000_000, "us")
    found = (part(times + step) - part(times - step)) / (2.0 / 86_400)
    np.testing.assert_allclose(part.slopes(times), found, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose((part(times).reshape(-1, 3, 2) ** 2).sum(axis=2), 1.0)
    gap = np.array(["NaT"], dtype="datetime64[us]")
    assert (part(gap) == 0.0).all()
    assert np.isnan(part.slopes(gap)).all()


@few
@given(seeds, st.integers(2, 40), st.integers(1, 40))
def test_edges_increase_from_end_to_end_and_are_all_values_where_those_are_few(seed, n, pieces):
    values = np.random.default_rng(seed).integers(0, n, 300).astype(float)
    assume(len(np.unique(values)) > 1)
    found = edges_of(summary_of(values), pieces)
    assert (np.diff(found) > 0.0).all()
    assert (found[0], found[-1]) == (values.min(), values.max())
    if len(np.unique(values)) <= pieces + 1:
        np.testing.assert_array_equal(found, np.unique(values))
    else:
        assert len(found) <= pieces + 3


def test_a_value_of_nearly_all_rows_leaves_edges_to_the_rest():
    values = np.concatenate([np.zeros(9000), np.random.default_rng(0).exponential(size=1000)])
    assert len(edges_of(summary_of(values), 32)) > 20


@pytest.mark.parametrize("numbers", NUMBERS)
def test_a_gap_is_the_median_and_told_by_a_column_of_its_own(numbers):
    values = np.array([1.0, 2.0, 3.0, 4.0, 100.0, np.nan])
    found = number_encoder(summary_of(values), Options(numbers, 32, 64))(values)
    np.testing.assert_array_equal(found[5, :-1], found[2, :-1])
    np.testing.assert_array_equal(found[:, -1], [0, 0, 0, 0, 0, 1])
    slopes = number_encoder(summary_of(values), Options(numbers, 32, 64)).slopes(values)
    assert np.isnan(slopes[5, :-1]).all()
    assert np.isfinite(slopes[:5]).all()


def test_standard_numbers_are_those_of_scikit_learn():
    values = np.random.default_rng(0).normal(7.0, 3.0, size=(500, 3))
    found = TableEncoder(numbers="standard", dtype=np.float64).fit_transform(values)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(values), atol=1e-12)


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("unit", [1e300, 1e-290, 1.0])
def test_numbers_of_any_size_are_encoded_alike(numbers, unit):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 1))
    encoder = TableEncoder(numbers=numbers, dtype=np.float64)
    expected = encoder.fit_transform(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(encoder.fit_transform(x * unit), expected, rtol=1e-6, atol=1e-9)


def test_numbers_that_differ_by_rounding_alone_are_one_value():
    x = np.array([0.3, 0.1 + 0.2] * 50)
    with pytest.raises(ValueError, match="same value"):
        TableEncoder().fit(x[:, None])
    big = 2.0**53 + 2.0 * np.arange(100)
    names = TableEncoder(numbers="pieces").fit(big[:, None]).get_feature_names_out()
    assert len(names) == len(set(names)) > 30


# Levels -----------------------------------------------------------------------------------------


@few
@given(seeds, st.integers(2, 30), st.integers(1, 10))
def test_one_hot_columns_are_those_of_scikit_learn(seed, n_levels, max_levels):
    rng = np.random.default_rng(seed)
    draw = rng.choice(
        [f"level {k:02}" for k in range(n_levels)], 200, p=rng.dirichlet(np.ones(n_levels))
    )
    assume(len(np.unique(draw)) > 1)
    frame, new = pd.DataFrame({"c": draw}), pd.DataFrame({"c": ["level 00", "unknown", "level 01"]})
    ours = TableEncoder(max_levels=max_levels).fit(frame)
    many = len(np.unique(draw)) > max_levels
    theirs = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        max_categories=max_levels + 1 if many else None,
        sparse_output=False,
    ).fit(frame)
    for rows in (frame, new):
        found, expected = ours.transform(rows), theirs.transform(rows)
        assert found.shape == expected.shape
        if not many:
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(found.sum(axis=1), expected.sum(axis=1))
    counts = np.sort(np.unique(draw, return_counts=True)[1])[::-1]
    kept = ours.transform(frame).sum(axis=0)
    np.testing.assert_array_equal(
        np.sort(kept[: len(kept) - many])[::-1], counts[: max_levels if many else None]
    )


def test_rare_levels_are_joined_and_unknown_ones_are_among_them():
    values = ["a"] * 20_000 + ["b"] * 20_000 + ["c"] * 9 + ["d"] * 3
    encoder = TableEncoder().fit(pd.DataFrame({"c": values}))
    assert list(encoder.get_feature_names_out()) == ["c a", "c b", "c other"]
    found = encoder.transform(pd.DataFrame({"c": ["a", "d", "new", None]}))
    np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])


def test_an_unknown_level_is_nothing_where_none_was_rare_and_a_gap_is_a_level():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["a", "b", None] * 10}))
    found = encoder.transform(pd.DataFrame({"c": ["b", "new", None, ""]}))
    np.testing.assert_array_equal(found, [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]])


def naive_means(levels, y, folds, known):
    """Target means by loops, not scaled: of rows to learn from, and of all rows by level."""
    name_of = [level if level in known else "?" for level in levels]

    def mean(rows, level):
        prior = y[rows].mean()
        own = [y[i] for i in rows if name_of[i] == level]
        return (sum(own) + SMOOTHING * prior) / (len(own) + SMOOTHING) - prior

    every = np.arange(len(y))
    learning = [mean(every[folds != folds[i]], name_of[i]) for i in every]
    return np.array(learning), {level: mean(every, level) for level in {*known, "?"}}


@pytest.mark.parametrize("seed", range(3))
def test_target_means_are_those_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    levels = rng.choice([f"l{k}" for k in range(40)], 150, p=rng.dirichlet(np.full(40, 0.5)))
    frame, y = pd.DataFrame({"c": levels, "x": rng.normal(size=150)}), rng.normal(size=150)
    encoder = TableEncoder(max_levels=5, numbers="standard", dtype=np.float64)
    found = encoder.fit_transform(frame, y)[:, 0]
    names, counts = np.unique(levels, return_counts=True)
    known = set(names[counts > 1])
    folds = folds_of(as_table(frame), whole=True)
    expected, means = naive_means(levels, y, folds, known)
    scale = np.sqrt((expected**2).mean())
    np.testing.assert_allclose(found, expected / scale, atol=1e-9)
    new = pd.DataFrame({"c": [*known, "never seen"], "x": 0.0})
    found = encoder.transform(new)[:, 0]
    np.testing.assert_allclose(found, [means.get(c, means["?"]) / scale for c in new.c], atol=1e-9)


def test_target_means_of_classes_have_a_column_each_but_one_of_two():
    frame = mixed_frame()
    two, three = np.arange(300) % 2, np.arange(300) % 3
    names = TableEncoder(numbers="pieces").fit(frame, two).get_feature_names_out()
    assert [name for name in names if name.startswith("many")] == ["many mean 1"]
    names = (
        TableEncoder(numbers="pieces")
        .fit(frame, np.array(["p", "q", "r"])[three])
        .get_feature_names_out()
    )
    assert [name for name in names if name.startswith("many")] == [f"many mean {c}" for c in "pqr"]


def test_no_target_has_a_part_in_the_means_of_its_own_row():
    frame, y = mixed_frame(), np.random.default_rng(1).normal(size=300)
    encoder = TableEncoder(numbers="standard", dtype=np.float64)
    before = encoder.fit_transform(frame, y)
    column = list(encoder.get_feature_names_out()).index("many mean")
    means = encoder.encoding_.parts[[part.kind for _, part in encoder.encoding_.parts].index("means")][
        1
    ]
    folds = folds_of(encoder.encoding_.ordered(as_table(frame)), whole=True)
    changed = y.copy()
    changed[folds == 0] = 1e3
    encoder.fit_transform(frame, changed)
    other = encoder.encoding_.parts[[part.kind for _, part in encoder.encoding_.parts].index("means")][
        1
    ]
    ratio = other.means[0] / np.where(means.means[0] == 0.0, 1.0, means.means[0])
    ratio = ratio[means.means[0] != 0.0]
    np.testing.assert_allclose(ratio, ratio[0], err_msg="the same but for the scale")
    assert before[:, column].std() == pytest.approx(1.0, abs=0.1)


def test_means_do_not_depend_on_the_unit_of_weights():
    table, y = as_table(mixed_frame()), np.random.default_rng(1).normal(size=300)
    task = replace_task(y)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, size=300)
    one = TableEncoder(numbers="pieces").learn(table, task, (y, weight), named=True).transform(table)
    other = (
        TableEncoder(numbers="pieces")
        .learn(table, task, (y, 1e-6 * weight), named=True)
        .transform(table)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def replace_task(y):
    """A task of these targets."""
    from asset_svm.tasks import Regression

    return Regression().settled(y, np.ones(len(y)))


# Folds ------------------------------------------------------------------------------------------


@few
@given(seeds)
def test_folds_do_not_depend_on_the_order_of_rows_or_of_names(seed):
    frame = mixed_frame(100, seed)
    order = np.random.default_rng(seed).permutation(100)
    folds = folds_of(as_table(frame))
    np.testing.assert_array_equal(folds_of(as_table(frame.iloc[order])), folds[order])
    np.testing.assert_array_equal(folds_of(as_table(frame)[17:40]), folds[17:40])
    np.testing.assert_array_equal(folds_of(as_table(frame), whole=True), folds, "no two are equal")


def test_folds_are_of_like_sizes():
    counts = np.bincount(folds_of(as_table(mixed_frame(5000))), minlength=FOLDS)
    assert len(counts) == FOLDS
    assert (np.abs(counts - 1000) < 150).all()


def test_equal_rows_of_a_whole_table_are_dealt_out():
    table = as_table(pd.DataFrame({"c": np.repeat(["a", "b", "c"], 50)}))
    assert len(set(folds_of(table)[:50])) == 1
    folds = folds_of(table, whole=True)
    for start in (0, 50, 100):
        np.testing.assert_array_equal(np.bincount(folds[start : start + 50]), np.full(FOLDS, 10))


# All columns together ---------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("learning", [False, True])
def test_rows_one_by_one_are_those_all_at_once(numbers, learning):
    frame, y = mixed_frame(), np.arange(300) % 2
    encoding = TableEncoder(numbers=numbers).fit(frame, y).encoding_
    table = as_table(frame)
    whole = encoding(table, learning=learning)
    single = [encoding(table[k : k + 1], learning=learning) for k in range(0, 300, 7)]
    np.testing.assert_array_equal(np.concatenate(single), whole[::7])


@pytest.mark.parametrize("learning", [False, True])
def test_sparse_rows_are_dense_ones(learning):
    frame, y = mixed_frame(), np.arange(300) % 2
    encoding = TableEncoder(max_levels=100).fit(frame, y).encoding_
    dense = encoding(as_table(frame), learning=learning)
    sparse = replace(encoding, sparse=True)(as_table(frame), learning=learning)
    assert sp.issparse(sparse)
    assert sparse.dtype == dense.dtype
    np.testing.assert_array_equal(sparse.toarray(), dense)


def test_rows_are_sparse_where_it_pays():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({k: rng.integers(0, 200, 3000).astype(str) for k in "abc"})
    encoder = TableEncoder(max_levels=300)
    assert sp.issparse(encoder.fit_transform(frame))
    assert not sp.issparse(encoder.fit_transform(frame.assign(a=1.0 * rng.integers(0, 9, 3000))[["a"]]))


def test_blocks_of_rows_are_all_rows(monkeypatch):
    frame = mixed_frame()
    encoder = TableEncoder(numbers="pieces").fit(frame, np.arange(300) % 2)
    expected = encoder.rows(frame, learning=True)
    monkeypatch.setattr("asset_svm.encoding.encoding.BLOCK_ROWS", 7)
    np.testing.assert_array_equal(encoder.rows(frame, learning=True), expected)


def test_frames_of_either_library_and_arrays_give_the_same_rows():
    frame, y = mixed_frame(), np.arange(300) % 2
    expected = TableEncoder(numbers="pieces").fit_transform(frame, y)
    np.testing.assert_array_equal(
        TableEncoder(numbers="pieces").fit_transform(pl.from_pandas(frame), y), expected
    )
    objects = TableEncoder(numbers="pieces")
    np.testing.assert_array_equal(objects.fit_transform(frame.to_numpy(dtype=object), y), expected)
    assert objects.get_feature_names_out()[0].startswith("x0")
    lists = frame.to_numpy(dtype=object).tolist()
    np.testing.assert_array_equal(TableEncoder(numbers="pieces").fit_transform(lists, y), expected)
    categories = frame.astype({"level": "category", "many": "category", "truth": "category"})
    np.testing.assert_array_equal(TableEncoder(numbers="pieces").fit_transform(categories, y), expected)
    nullable = frame.convert_dtypes()
    np.testing.assert_array_equal(TableEncoder(numbers="pieces").fit_transform(nullable, y), expected)
    arrow = frame.convert_dtypes(dtype_backend="pyarrow")
    np.testing.assert_array_equal(TableEncoder(numbers="pieces").fit_transform(arrow, y), expected)


@few
@given(
    st.lists(st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3)), min_size=1)
)
def test_a_column_of_anything_is_the_same_in_a_frame_and_in_an_array(values):
    one = as_table(pd.DataFrame({"x0": pd.Series(values, dtype=object)})).columns[0]
    other = as_table(np.array([*values, None], dtype=object)[:-1, None]).columns[0]
    assert type(one) is type(other)
    if isinstance(one, Levels):
        one, other = ([each.names[k] if k >= 0 else None for k in each.codes] for each in (one, other))
    np.testing.assert_array_equal(one, other)


@few
@given(st.lists(st.one_of(st.none(), finite), min_size=1, max_size=30))
def test_levels_of_numbers_are_told_apart_as_the_numbers_are(values):
    column = np.array([np.nan if v is None else v for v in values])
    levels = as_levels(column)
    there = ~np.isnan(column)
    np.testing.assert_array_equal(levels.codes >= 0, there)
    assert len(set(levels.names)) == len(levels.names) == len(np.unique(column[there]))


def test_tables_joined_have_the_rows_of_all():
    frame = mixed_frame()
    table = as_table(frame)
    parts = Table.joined([as_table(frame[:100]), as_table(frame[100:101]), as_table(frame[101:])])
    encoder = TableEncoder(numbers="pieces").fit(frame, np.arange(300) % 2)
    np.testing.assert_array_equal(encoder.transform(parts), encoder.transform(table))


# Kinds of columns -------------------------------------------------------------------------------

N = 40
KINDS = {
    "nullable integers": (pd.array([1, 2, None, 4] * 10, dtype="Int64"), "number"),
    "nullable truth values": (pd.array([True, False, None, True] * 10, dtype="boolean"), "levels"),
    "strings": (pd.array(["a", "b", None, "d"] * 10, dtype="string"), "levels"),
    "categories, some unused": (pd.Categorical(["a", "b"] * 20, categories=list("zaqb")), "levels"),
    "categories of numbers": (pd.Categorical([1.0, 2.5] * 20), "levels"),
    "intervals": (pd.cut(np.arange(N), 4), "levels"),
    "times in a zone": (pd.date_range("2020", periods=N, freq="7h", tz="Europe/Berlin"), "time"),
    "lengths of time": (pd.to_timedelta(np.arange(N), unit="h"), "number"),
    "lengths of time as objects": (
        pd.Series([dt.timedelta(hours=k) for k in range(N)], dtype=object),
        "number",
    ),
    "dates as objects": ([dt.date(2020, 1, 1) + dt.timedelta(k) for k in range(N)], "time"),
    "decimals": ([decimal.Decimal(k) / 7 for k in range(N)], "number"),
    "decimals that are none": ([decimal.Decimal("sNaN"), decimal.Decimal(1), 2, None] * 10, "number"),
    "bytes": ([b"a", b"\xff", b"\xfe", b"a"] * 10, "levels"),
    "text and numbers": ([1, "a", 2.5, None] * 10, "levels"),
    "truth values and numbers": ([True, 1, 0, False] * 10, "levels"),
    "texts like gaps": (["nan", "None", "", "NaN"] * 10, "levels"),
    "levels named as our own": (["gap", "other", None, "k"] * 10, "levels"),
    "integers beyond 2^53": (np.arange(N) * 1000 + 2**60, "number"),
    "huge numbers": (np.where(np.arange(N) % 3, 1e300, -1e300), "number"),
    "one value and gaps": ([5.0, np.nan] * 20, "number"),
    "one level and gaps": (["a", None] * 20, "levels"),
    "sparse numbers": (pd.arrays.SparseArray([0, np.nan, 1, 0] * 10), "number"),
}


@pytest.mark.parametrize("case", KINDS)
@pytest.mark.parametrize("numbers", ["standard", "pieces"])
def test_a_column_of_this_kind_is_encoded(case, numbers):
    values, kind = KINDS[case]
    frame = pd.DataFrame({"c": values})
    encoder = TableEncoder(numbers=numbers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = encoder.fit_transform(frame)
    assert encoder.columns_[0]["kind"] == kind
    assert encoder.columns_[0]["kept"]
    assert np.isfinite(rows).all()
    assert len(set(encoder.get_feature_names_out())) == rows.shape[1]
    assert (rows.var(axis=0) > 0.0).all(), "no column of one value"


POLARS = {
    "enum": (pl.Series(["a", "b"] * 20, dtype=pl.Enum(["a", "b", "z"])), "levels"),
    "categorical": (pl.Series(["a", None] * 20, dtype=pl.Categorical), "levels"),
    "duration": (pl.Series([dt.timedelta(hours=k) for k in range(N)]), "number"),
    "date": (pl.Series([dt.date(2020, 1, 1), None] * 20), "time"),
    "datetime": (pl.Series([dt.datetime(2020, 1, 1, k % 24, tzinfo=dt.UTC) for k in range(N)]), "time"),
    "decimal": (pl.Series([decimal.Decimal(k) for k in range(N)]), "number"),
    "boolean": (pl.Series([True, None] * 20), "levels"),
    "binary": (pl.Series([b"a", b"b"] * 20), "levels"),
    "integer": (pl.Series([1, None, 3, 4] * 10), "number"),
}


@pytest.mark.parametrize("case", POLARS)
def test_a_polars_column_of_this_kind_is_encoded(case):
    values, kind = POLARS[case]
    encoder = TableEncoder()
    rows = encoder.fit_transform(pl.DataFrame({"c": values}))
    assert encoder.columns_[0]["kind"] == kind
    assert np.isfinite(rows).all()
    assert rows.shape[1] == len(encoder.get_feature_names_out()) > 0


X = np.arange(N, dtype=float)
REFUSED = {
    "lists": (pd.DataFrame({"x": X, "c": [1, [1], 2.5, None] * 10}), "'c'.*list"),
    "dicts": (pd.DataFrame({"x": X, "c": [{"a": 1}] * N}), "'c'.*dict"),
    "times of a day": (pd.DataFrame({"x": X, "c": [dt.time(k % 24) for k in range(N)]}), "'c'.*time"),
    "periods": (pd.DataFrame({"x": X, "c": pd.period_range("2020", periods=N)}), "'c'.*Period"),
    "complex numbers": (pd.DataFrame({"x": X, "c": X + 1j}), "'c'.*[Cc]omplex"),
    "complex objects": (pd.DataFrame({"c": pd.Series(X + 1j, dtype=object)}), "'c'.*[Cc]omplex"),
    "infinite numbers": (pd.DataFrame({"x": X, "c": np.where(X > 3, np.inf, X)}), "'c'.*infinite"),
    "integers beyond floats": (pd.DataFrame({"c": [10**400 + k for k in range(N)]}), "'c'.*infinite"),
    "numbers at the end of floats": (pd.DataFrame({"c": [1.7e308, -1.7e308] * 20}), "'c'.*1e"),
    "far times": (
        pd.DataFrame({"c": np.array(["2000000-01-01", "1999"] * 20, dtype="datetime64[s]")}),
        "'c'.*years",
    ),
    "equal names": (pd.DataFrame(np.c_[X, X], columns=["a", "a"]), "two columns named 'a'"),
    "names equal as text": (pd.DataFrame({1: X, "1": X}), "two columns named '1'"),
    "no rows": (pd.DataFrame({"x": [], "c": []}), "0 sample"),
    "no columns": (pd.DataFrame(index=range(N)), "0 feature"),
    "gaps alone": (pd.DataFrame({"c": [None] * N}), "c: left out, no row has a value"),
    "one value": (pd.DataFrame({"c": ["a"] * N}), "c: left out, every row"),
    "one row": (pd.DataFrame({"c": ["a"]}), "n_samples=1"),
    "a series": (pd.Series(X), "2D"),
    "records": (np.zeros(N, dtype=[("x", float), ("c", "U1")]), "records"),
    "ragged rows": ([[1.0, "a"], [2.0]] * 20, "2D"),
    "a dict": ({"x": X}, "2D.*dict"),
    "nothing": (None, "2D"),
    "a sparse matrix": (sp.eye(N).tocsr(), "sparse"),
    "polars lists": (pl.DataFrame({"x": X, "c": [[1, 2]] * N}), "'c'.*list"),
    "polars records": (pl.DataFrame({"x": X, "c": [{"a": 2}] * N}), "'c'.*dict"),
    "polars objects": (pl.DataFrame({"c": pl.Series([object()] * N, dtype=pl.Object)}), "'c'.*object"),
    "a lazy frame": (pl.DataFrame({"x": X}).lazy(), "collect"),
    "complex array": (np.full((N, 2), 1j), "[Cc]omplex"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_encoded_is_refused_in_one_sentence_and_the_earlier_fit_stays(case):
    table, message = REFUSED[case]
    encoder = TableEncoder().fit(mixed_frame(50))
    before = encoder.transform(mixed_frame(50))
    with pytest.raises((ValueError, TypeError), match=message):
        encoder.fit(table)
    for y in (np.arange(N) % 2, np.arange(N) / 7.0):
        with pytest.raises((ValueError, TypeError)):
            encoder.fit(table, y)
    np.testing.assert_array_equal(encoder.transform(mixed_frame(50)), before)
    assert encoder.n_features_in_ == 8


def test_names_of_any_kind_are_text():
    frame = pd.DataFrame({0: X, ("a", "b"): X % 3, None: X % 5, "": X % 2})
    encoder = TableEncoder(numbers="standard").fit(frame)
    assert list(encoder.feature_names_in_) == ["0", "('a', 'b')", "None", ""]
    columns = pd.MultiIndex.from_product([["a"], ["b", "c"]])
    assert TableEncoder().fit(pd.DataFrame(np.c_[X, X], columns=columns)).n_features_in_ == 2


def test_names_of_numbers_differ_whatever_columns_and_levels_are_called():
    frame = pd.DataFrame({"a": ["b c", "d"] * 20, "a b": ["c", "e"] * 20, "a b c (2)": X % 2})
    names = TableEncoder(numbers="standard").fit(frame).get_feature_names_out()
    assert len(set(names)) == len(names) == 5


def test_masked_values_are_gaps():
    values = np.ma.masked_array(np.c_[X, X], mask=np.c_[X > 30, X < 0])
    expected = np.where(values.mask, np.nan, values.data)
    found = TableEncoder(numbers="pieces").fit_transform(values)
    np.testing.assert_array_equal(found, TableEncoder(numbers="pieces").fit_transform(expected))


def test_surrogates_are_text():
    values = np.array([[f"\ud800{k % 20}", float(k)] for k in range(N)], dtype=object)
    assert np.isfinite(TableEncoder(max_levels=3).fit_transform(values, np.arange(N) % 2)).all()


def test_a_hundred_thousand_levels_are_one_column():
    values = np.arange(200_000) % 100_000
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(values, [f"l{k}" for k in range(100_000)])})
    encoder = TableEncoder()
    assert encoder.fit_transform(frame, np.arange(200_000) % 2).shape == (200_000, 1)
    assert "100000 levels" in encoder.columns_[0]["made"]


def test_levels_beyond_what_is_counted_are_estimated_and_the_frequent_ones_stay(monkeypatch):
    monkeypatch.setattr("asset_svm.encoding.summary.MOST_LEVELS", 100)
    found = ColumnSummary()
    for start in range(0, 1000, 50):
        found.add(Levels.of([f"l{k}" for k in range(start, start + 50)] + ["often"] * 20), "c")
    assert found.levels["often"] == 400
    assert len(found.levels) <= 100
    assert found.n_levels >= 1000


# What is left out -------------------------------------------------------------------------------


def test_columns_that_tell_nothing_are_left_out_with_a_word():
    frame = pd.DataFrame(
        {
            "x": X,
            "constant": 1.0,
            "one level": "a",
            "empty": [None] * N,
            "name": [f"row {k}" for k in range(N)],
            "dropped": X,
        }
    )
    encoder = TableEncoder(drop=["dropped"], numbers="standard").fit(frame)
    assert list(encoder.get_feature_names_out()) == ["x"]
    made = {note["name"]: note["made"] for note in encoder.columns_ if not note["kept"]}
    assert made == {
        "constant": "every row has the same value",
        "one level": "every row has the same value",
        "empty": "no row has a value",
        "name": "it names rows: a level a row",
        "dropped": "as asked",
    }
    rows = encoder.transform(frame[["x"]])
    np.testing.assert_array_equal(rows, encoder.transform(frame), "what is left out need not come")


def test_columns_to_leave_out_are_not_looked_at():
    frame = pd.DataFrame({"x": X, "lists": [[1]] * N, "endless": np.inf})
    for drop in (["lists", "endless"], [1, 2], np.array(["lists", "endless"])):
        assert TableEncoder(drop=drop).fit_transform(frame).shape[0] == N
    assert TableEncoder(drop="lists").fit(frame.assign(endless=1.0)).n_features_in_ == 3


def test_sentences_are_left_out_with_a_warning():
    texts = [f"this is the sentence number {k % 70} of many" for k in range(100)]
    with pytest.warns(UserWarning, match="'text' is left out: it has sentences"):
        TableEncoder().fit(pd.DataFrame({"x": np.arange(100.0), "text": texts}))


def test_a_column_of_one_value_and_gaps_tells_gaps_alone_whatever_comes():
    encoder = TableEncoder().fit(pd.DataFrame({"c": [5.0, np.nan] * 20}))
    assert list(encoder.get_feature_names_out()) == ["c gap"]
    found = encoder.transform(pd.DataFrame({"c": [5.0, 1e9, np.nan]}))
    np.testing.assert_array_equal(found, [[0], [0], [1]])


# Rows at prediction -----------------------------------------------------------------------------


def test_columns_may_come_in_another_order_with_others_among_them():
    frame = mixed_frame()
    encoder = TableEncoder(categorical=[1]).fit(frame)
    expected = encoder.transform(frame)
    np.testing.assert_array_equal(encoder.transform(frame[frame.columns[::-1]]), expected)
    wider = frame.copy()
    wider.insert(0, "extra", [[1]] * 300)
    np.testing.assert_array_equal(encoder.transform(wider), expected, "which are not looked at")


def test_a_missing_column_and_another_kind_are_told_by_name():
    frame = mixed_frame()
    encoder = TableEncoder().fit(frame)
    with pytest.raises(DataError, match="'level' is missing"):
        encoder.transform(frame.drop(columns="level"))
    for name, other in [("number", "level"), ("number", "day"), ("day", "level"), ("day", "number")]:
        with pytest.raises(DataError, match=f"{name!r} has .*; in training it had"):
            encoder.transform(frame.assign(**{name: frame[other]}))
    with pytest.raises(DataError, match="'gaps' has infinite numbers"):
        encoder.transform(frame.assign(gaps=np.inf))


def test_new_gaps_are_the_median_or_no_level_in_any_kind_of_column():
    frame = mixed_frame()
    encoder = TableEncoder(numbers="standard").fit(frame)
    for nothing in (None, np.nan, pd.NA, pd.NaT):
        holes = pd.DataFrame({name: [nothing] * 2 for name in frame.columns})
        found = dict(zip(encoder.get_feature_names_out(), encoder.transform(holes)[0], strict=True))
        median = (frame.number.median() - frame.number.mean()) / frame.number.std(ddof=0)
        assert found["number"] == pytest.approx(median, abs=0.02)
        assert found["level red"] == found["truth true"] == found["day week cos"] == 0.0
        assert found["gaps gap"] == 1.0


def test_truth_values_may_come_as_numbers_and_the_other_way_round():
    truth = pd.DataFrame({"t": [True, False] * 20, "x": X})
    encoder = TableEncoder().fit(truth)
    expected = encoder.transform(truth)
    for kind in (int, float, object):
        np.testing.assert_array_equal(encoder.transform(truth.astype({"t": kind})), expected)
    holes = encoder.transform(pd.DataFrame({"t": [1.0, np.nan], "x": [0.0, 1.0]}))
    np.testing.assert_array_equal(holes[:, :2], [[0, 1], [0, 0]])
    numbers = TableEncoder().fit(truth.astype({"t": int}))
    np.testing.assert_array_equal(numbers.transform(truth), numbers.transform(truth.astype({"t": int})))


def test_arrays_are_taken_by_position_as_scikit_learn_does():
    frame = mixed_frame()
    encoder = TableEncoder().fit(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but TableEncoder"):
        found = encoder.transform(frame.to_numpy(dtype=object))
    np.testing.assert_array_equal(found, encoder.transform(frame))
    unnamed = TableEncoder().fit(frame.to_numpy(dtype=object))
    assert not hasattr(unnamed, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but TableEncoder"):
        np.testing.assert_array_equal(unnamed.transform(frame), found)
    with pytest.raises(ValueError, match="X has 2 features, but TableEncoder is expecting 8"):
        encoder.transform(frame.to_numpy(dtype=object)[:, :2])


# The transformer --------------------------------------------------------------------------------


@parametrize_with_checks([TableEncoder(), TableEncoder(numbers="pieces")])
def test_scikit_learn_checks_pass(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_come_in_the_frame_that_is_asked_for(library):
    frame = mixed_frame()
    encoder = TableEncoder(numbers="pieces").set_output(transform=library)
    found = encoder.fit_transform(frame, np.arange(300) % 2)
    assert isinstance(found, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library])
    assert list(found.columns) == list(encoder.get_feature_names_out())
    plain = TableEncoder(numbers="pieces").fit_transform(frame, np.arange(300) % 2)
    np.testing.assert_array_equal(found.to_numpy(), plain)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"numbers": "log"}, "numbers='log'"),
        ({"n_pieces": 0}, "n_pieces=0"),
        ({"max_levels": 1.5}, "max_levels=1.5"),
        ({"dtype": np.int32}, "dtype="),
        ({"categorical": ["nobody"]}, "categorical has 'nobody'"),
        ({"drop": [8]}, "drop has 8"),
        ({"drop": list(mixed_frame(2).columns)}, "No column of X"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**parameters).fit(mixed_frame())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(300) % 2, np.nan, 1.0), "NaN"),
        (np.array(["a", None] * 150, dtype=object), "row 1"),
        (np.arange(299), "inconsistent"),
        (np.zeros((300, 2)), "1d"),
    ],
)
def test_targets_that_are_not_there_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(mixed_frame(), y)


def test_targets_of_one_value_have_no_means():
    encoder = TableEncoder().fit(mixed_frame(), np.zeros(300))
    assert not encoder.encoding_.crossed


def test_a_pipeline_has_names_and_tells_when_it_was_not_fitted():
    pipe = make_pipeline(TableEncoder(numbers="standard"), StandardScaler(with_mean=False))
    pipe.fit(mixed_frame(), np.arange(300) % 2)
    assert "number" in pipe.get_feature_names_out()
    with pytest.raises(NotFittedError):
        TableEncoder().transform(mixed_frame())


# Small things -----------------------------------------------------------------------------------


def test_levels_have_the_names_that_people_would_give():
    assert [level_text(v) for v in (True, 1.0, 1, "1", " 1 ", 1.5, b"1", np.float32(2))] == [
        *("true", "1", "1", "1", "1", "1.5", "1", "2")
    ]
    assert level_text(b"\xff") != level_text(b"\xfe")
    nothing = (
        None,
        float("nan"),
        pd.NA,
        pd.NaT,
        "",
        "  ",
        decimal.Decimal("sNaN"),
        np.datetime64("NaT"),
    )
    assert all(map(is_gap, nothing))
    assert not any(map(is_gap, (0, "nan", "None", False, b"", [1])))


def test_a_frame_of_numbers_without_gaps_is_plain():
    frame = pd.DataFrame({"x": X, "k": X.astype(int), "t": X > 3})
    for plain in (frame, pl.from_pandas(frame), frame.convert_dtypes(), frame.astype(object)[["x"]]):
        assert is_plain(plain)
    assert is_plain(pl.DataFrame({"d": [decimal.Decimal(1), decimal.Decimal(2)]}))
    for column in (
        [None, 1.0],
        ["a", "b"],
        pd.to_timedelta([1, 2], unit="h"),
        pd.to_datetime(["2020"] * 2),
    ):
        other = pd.DataFrame({"x": [1.0, 2.0], "c": column})
        assert not is_plain(other)
        assert not is_plain(pl.from_pandas(other))


def test_one_hot_of_no_rows_is_empty():
    part = OneHot(("a", "b"), True, True)
    assert part(Levels(np.zeros(0, dtype=np.int32), ("a",))).shape == (0, 4)
