"""The errors of a cluster.

RuntimeError
 └─ ClusterError          the scheduler, every worker, or the only copy of some rows is gone
     └─ GivenUpError      a task was given up by Dask: its workers died again and again
"""

from __future__ import annotations


class ClusterError(RuntimeError):
    """The cluster cannot finish the run; no model is returned."""


class GivenUpError(ClusterError):
    """Dask has given up a task whose workers die of it; others may still end well."""
