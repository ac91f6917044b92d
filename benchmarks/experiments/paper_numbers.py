"""The paper's own figures: S. Lee, S. J. Wright, "Approximate Stochastic Subgradient Estimation
Training for Support Vector Machines", 2012. Nothing else in these folders is typed in by hand.

``TABLE3``: Table 3, CPU seconds and test error in per cent, by (set, s) and column.
``TABLE3_SIZES``: its s.
``FIGURE2``: the text of its section "Large-Scale Performance".
"""

from __future__ import annotations

SOURCE = "Lee and Wright (2012)"
_HOUR = 3600.0

_COLUMNS = ("ASSET_M", "ASSET*_M", "CPSP", "CPNY", "LASVM", "SVM-Light")
_LINES = {
    ("adult", 512): (
        (23, 15.1), (24, 15.1), (3020, 15.2), (8.2 * _HOUR, 15.1), (1011, 18.0), (857, 15.1),
    ),
    ("mnist", 512): ((97, 4.0), (101, 4.0), (550, 2.7), (348, 4.1), (588, 1.4), (1323, 1.2)),
    ("ccat", 512): ((95, 8.2), (99, 8.3), (800, 5.2), (62, 8.3), (2616, 4.7), (3423, 4.7)),
    ("ijcnn", 512): ((87, 1.1), (89, 1.1), (727, 0.8), (320, 1.1), (288, 0.8), (1331, 0.7)),
    ("covtype", 512): (
        (697, 18.2), (586, 18.2), (1.8 * _HOUR, 17.7), (1842, 18.2), (38.3 * _HOUR, 13.5),
        (52.7 * _HOUR, 13.8),
    ),
    ("adult", 1024): (
        (78, 15.1), (83, 15.1), (3399, 15.2), (7.5 * _HOUR, 15.2), (1011, 18.0), (857, 15.1),
    ),
    ("mnist", 1024): ((275, 2.7), (275, 2.7), (1273, 2.0), (515, 2.7), (588, 1.4), (1323, 1.2)),
    ("ccat", 1024): ((265, 7.1), (278, 7.1), (2950, 5.2), (123, 7.2), (2616, 4.7), (3423, 4.7)),
    ("ijcnn", 1024): ((307, 0.8), (297, 0.8), (1649, 0.8), (598, 0.8), (288, 0.8), (1331, 0.7)),
    ("covtype", 1024): (
        (2259, 16.5), (2064, 16.5), (4.1 * _HOUR, 16.6), (3598, 16.5), (38.3 * _HOUR, 13.5),
        (52.7 * _HOUR, 13.8),
    ),
}  # fmt: skip
TABLE3: dict[tuple[str, int], dict[str, tuple[float, float]]] = {
    place: dict(zip(_COLUMNS, line, strict=True)) for place, line in _LINES.items()
}
TABLE3_SIZES = (512, 1024)
FIGURE2 = {"ASSET_F": 2.7, "ASSET*_F": 3.5, "LASVM": 0.2}
"""Test error in per cent after one pass over 10^6 rows, d = 16384 (7.2 hours; LASVM 4.3 days)."""
