"""Covertype (UCI): its 7 types, columns as published; split in the sizes of the paper's task."""

from __future__ import annotations

from datasets import covtype
from datasets.base import DataSet

DATASET = DataSet("COVTYPE, 7 types", covtype.types, sizes=(464_809, 58_101))
