"""The errors of a cluster.

RuntimeError
 └─ ClusterError          the scheduler, every worker, or the only copy of some rows is gone
"""

from __future__ import annotations


class ClusterError(RuntimeError):
    """The cluster cannot finish the run; no model is returned."""
