"""Descending a partition's tree on the card: every row at once, a level at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from asset_svm.backends.cuda.clusters import first_largest, nearest
from asset_svm.backends.cuda.maps import to_card
from asset_svm.backends.cuda.tiles import Tiles
from asset_svm.features.cells import Node, Partition
from asset_svm.features.clusters import LARGE


class CardTree:
    """The tree in two arrays: centres of every node, and what lies below each of them.

    Below a centre is a cell, its number, or node k, as -1 - k; node 0 is the root. Nodes with fewer
    centres than others have some that no row is near to.
    """

    def __init__(self, partition: Partition, dtype: torch.dtype, device: torch.device):
        self.root = partition.root if not isinstance(partition.root, Node) else None
        self.depth = 0
        if self.root is not None:
            return
        nodes: list[Any] = [partition.root]
        level, below = [partition.root], []
        while level:  # nodes are numbered as they are met
            self.depth += 1
            following = []
            for node in level:
                codes = []
                for child in node.children:
                    codes.append(-1 - len(nodes) if isinstance(child, Node) else int(child))
                    if isinstance(child, Node):
                        nodes.append(child)
                        following.append(child)
                below.append(codes)
            level = following
        width = max(len(codes) for codes in below)
        self.below = torch.tensor([c + [0] * (width - len(c)) for c in below], device=device)
        largest = max(float(np.abs(node.centres).max()) for node in nodes)
        self.dtype = torch.float64 if largest > LARGE else dtype
        self.centres = torch.zeros(
            (len(nodes), width, partition.root.centres.shape[1]), dtype=self.dtype, device=device
        )
        self.half = torch.full((len(nodes), width), torch.inf, dtype=self.dtype, device=device)
        for k, node in enumerate(nodes):
            centres = to_card(node.centres, device, self.dtype)
            self.centres[k, : len(centres)] = centres
            self.half[k, : len(centres)] = 0.5 * centres.double().square().sum(dim=1).to(self.dtype)
        self.n_root = len(partition.root.children)

    def __call__(self, X: Tensor) -> Tensor:
        """Return the cell of every row."""
        if self.root is not None:
            return torch.full((len(X),), int(self.root), device=X.device)
        X = X.to(self.dtype)
        at = self.below[0][nearest(X, self.centres[0, : self.n_root])]
        for _ in range(1, self.depth):
            inner = (at < 0).nonzero()[:, 0]
            if len(inner) == 0:
                break
            tiles = Tiles.of(-1 - at[inner], len(self.centres))
            rows = inner[tiles.rows]
            closeness = torch.bmm(X[rows], self.centres[tiles.group].transpose(1, 2))
            closeness -= self.half[tiles.group][:, None, :]
            at[rows] = self.below[tiles.group].gather(1, first_largest(closeness))
        return at
