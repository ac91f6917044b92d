"""Rows that belong to groups, in tiles of rows of one group: so that groups can be multiplied at once.

A tile has ``TILE`` rows of one group; a group's last tile is filled up with its last row. Rows of many
cells, each with landmarks of its own, become one batched product of tiles this way, with little waste
however unequal the groups are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

TILE = 64


@dataclass(frozen=True, eq=False)
class Tiles:
    """Which rows lie in which tile.

    Parameters
    ----------
    group : tensor of shape (tiles,)
    rows : tensor of shape (tiles, TILE)
    """

    group: Tensor
    rows: Tensor

    @classmethod
    def of(cls, groups: Tensor, count: int) -> Tiles:
        """The tiles of rows that belong to these groups, 0 <= groups < count."""
        device = groups.device
        order = torch.argsort(groups, stable=True)
        sizes = torch.bincount(groups, minlength=count)
        tiles = (sizes + TILE - 1) // TILE
        group = torch.repeat_interleave(torch.arange(count, device=device), tiles)
        before, ends = tiles.cumsum(0) - tiles, sizes.cumsum(0)
        number = torch.arange(len(group), device=device) - before[group]
        place = (ends - sizes)[group] + number * TILE
        inside = place[:, None] + torch.arange(TILE, device=device)
        return cls(group, order[inside.clamp(max=(ends - 1)[group][:, None])])

    def __getitem__(self, part: slice | Tensor) -> Tiles:
        """Return some of the tiles."""
        return Tiles(self.group[part], self.rows[part])
