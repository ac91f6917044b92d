"""A stand-in for the card's kernel on torch's CPU device: the numba twin of the blocked form.

It obeys the kernel's contract (pieces, Gram blocks, shrinks, what is written where), so that everything
around the kernel can be tested without a card.
"""

import numpy as np
import torch

from asset_svm.engines.cuda.blocks import BLOCK
from asset_svm.solvers.average import NEVER
from asset_svm.solvers.blocked_form import run_block

CPU = torch.device("cpu")


class HostForm:
    def __init__(self, axis, columns, real, value, device):
        self.axis = axis

    def run(self, state, chunk, begin, end, piece, *, averages):
        while begin < end:
            stop = min((begin // piece + 1) * piece, end)
            self.run_piece(state, chunk, begin, stop, averages)
            metric = self.axis.metric
            if metric is not None and stop % piece == 0:
                coef = state.direction.numpy()
                d = len(metric.scale) if metric.directions is None else len(metric.directions)
                due = self.axis.lam * state.shrink_due.numpy()
                coef[:, :d] = metric.shrink(coef[:, :d], due)
                state.shrink_due.zero_()
            begin = stop

    def run_piece(self, state, chunk, begin, stop, averages):
        axis = self.axis
        low = begin % BLOCK
        part = slice(low, low + stop - begin)
        G = chunk.gram[begin // BLOCK].numpy()[part, part]
        V = chunk.V[chunk.positions[begin:stop]].to(state.direction.dtype).numpy()
        coef, total = state.direction.numpy(), state.total.numpy()
        weight = chunk.weight[begin:stop].numpy()
        for k in range(len(axis.lam)):
            y = chunk.target[k, begin:stop].numpy().astype(np.float64)
            a, gained, before, margins, slopes = np.empty((5, stop - begin))
            u = (V @ coef[k]).astype(np.float64)
            norm = float(coef[k].astype(np.float64) @ coef[k])
            c, alive, head, b, j, eta_sum, b_sum, travelled = run_block(
                np.ascontiguousarray(G), u, norm, y, weight, axis.loss.code, axis.loss.epsilon,
                axis.loop_lam[k], axis.radius[k], axis.bound[k], axis.eta[k], axis.power,
                axis.horizon[k], axis.reach, 0 if averages else NEVER, float(state.intercept[k]),
                int(state.steps[k]), float(state.weight_sum[k]), float(state.intercept_total[k]),
                a, gained, before, margins, slopes,
            )  # fmt: skip
            with np.errstate(invalid="ignore"):  # the driver finds and tells it
                if averages:
                    total[k] += head * coef[k] + gained @ V
                coef[k] = c * (alive * coef[k] + a @ V)
            state.intercept[k], state.steps[k] = b, j
            state.weight_sum[k], state.intercept_total[k] = eta_sum, b_sum
            state.shrink_due[k] += travelled
            chunk.slopes[k, begin:stop] = torch.from_numpy(slopes).to(chunk.slopes.dtype)
            seen = weight >= 0
            losses = np.maximum(axis.loss.value(y, margins), 0.0)[seen].sum()
            errors, active = (y * margins <= 0)[seen].sum(), (slopes != 0).sum()
            bad = (~np.isfinite(margins))[seen].sum()
            state.tally[k] += torch.tensor([losses, errors, active, bad], dtype=torch.float64)
