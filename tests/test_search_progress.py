"""What a search tells of its length: before the first map a guess, after each what is left."""

import pytest
from sklearn.datasets import make_moons

from asset_svm import AssetClassifierCV, AssetRegressorCV
from asset_svm.families.cells import trainer
from asset_svm.search import cells
from asset_svm.search.cost import cell_seconds, map_seconds
from asset_svm.solvers.cells import CellProblem

X, Y = make_moons(300, noise=0.2, random_state=0)


@pytest.mark.filterwarnings("ignore:.* changed nothing")  # what serves large cells
@pytest.mark.parametrize("n_cells", [None, 1, 3])
def test_what_is_ahead_is_told_before_the_first_map_and_what_is_left_after_each(n_cells):
    told = []
    search = AssetClassifierCV(
        Cs=[0.1, 1.0], gammas=[0.1, 1.0, 10.0], cv=4, n_components=20, n_cells=n_cells, random_state=0
    )
    search._fit_watched(X, Y, None, watch=told.append, foreseen=lambda *ahead: told.append(ahead))
    (maps, models, seconds), *after = told
    assert maps == 3 and models == 2 * 4 and seconds > 0.0
    assert [progress.done for progress in after] == [1, 2, 3]
    for progress in after:
        left = progress.seconds * (3 - progress.done) / progress.done
        assert progress.seconds_left == pytest.approx(left)


def test_epsilons_are_counted():
    told = []
    search = AssetRegressorCV(Cs=[1.0], gammas=[1.0], epsilons=[0.1, 0.2], cv=2, n_components=20)
    search._fit_watched(X, X[:, 0], None, watch=told.append, foreseen=lambda *ahead: told.append(ahead))
    assert told[0][:2] == (2, 2) and told[1].seconds_left > 0.0 and told[2].seconds_left == 0.0


def test_a_guess_grows_with_what_is_to_be_done():
    one = cell_seconds([1000], 5, 10, 0.8, 2)
    assert cell_seconds([1000], 5, 20, 0.8, 2) > one
    assert cell_seconds([2000], 5, 10, 0.8, 2) == pytest.approx(4 * one)
    assert cell_seconds([1000] * 4, 5, 10, 0.8, 2) == pytest.approx(2 * one)
    assert map_seconds(1000, 5, 200, 10, 5) > map_seconds(1000, 5, 100, 10, 5)


def test_models_of_a_search_learn_from_some_rows_of_a_large_cell_and_that_is_told(monkeypatch, caplog):
    sizes, whole, sweep = [], CellProblem.kernel_matrix, trainer.sweep_cells

    def watched(self, rows, *args):
        sizes.append(len(rows))
        return whole(self, rows, *args)

    def swept(problem, groups, *args):
        sizes.extend(map(len, groups))
        return sweep(problem, groups, *args)

    monkeypatch.setattr(CellProblem, "kernel_matrix", watched)
    monkeypatch.setattr(trainer, "sweep_cells", swept)
    monkeypatch.setattr(cells, "MOST_SEARCHED", 200)
    search = AssetClassifierCV(Cs=[1.0], gammas=[0.5, 1.0], cv=2, n_cells=1, random_state=0).fit(X, Y)
    assert sizes == [200, 200, 300]  # the last is the best model's
    assert "up to 300 rows: models of the search learn from at most 200 of each" in caplog.text
    assert len(caplog.records) == 1
    assert search.best_score_ > 0.9
