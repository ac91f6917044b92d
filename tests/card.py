"""Stand-ins for the card's kernels on torch's CPU device: their numba twins.

They obey the kernels' contracts (pieces, Gram blocks, shrinks, padding, what is written where), so that
everything around the kernels can be tested without a card.
"""

import numpy as np
import torch

from asset_svm.backends.cuda.blocks import BLOCK
from asset_svm.losses import axis_arguments
from asset_svm.solvers.average import NEVER
from asset_svm.solvers.blocked_form import run_block
from asset_svm.solvers.exact_form import solve_cell

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
        K, B = len(axis.lam), stop - begin
        every = np.arange(K)
        y = chunk.target[:, begin:stop].numpy().astype(np.float64)
        U = np.ascontiguousarray((V @ coef.T).astype(np.float64))
        norm = np.einsum("kd,kd->k", coef, coef, dtype=np.float64)
        a, gained = np.empty((2, B, K))
        margins, slopes = np.empty((2, K, B))
        c, alive, head = np.empty((3, K))
        run_block(
            np.ascontiguousarray(G), U, norm, y, every, weight[None, :], 0 * every,
            *axis_arguments(axis.loss, K), axis.loop_lam, axis.radius, axis.bound, axis.eta, axis.power,
            axis.horizon, axis.reach, np.full(K, 0 if averages else NEVER), state.intercept.numpy(),
            state.steps.numpy(), state.weight_sum.numpy(), state.intercept_total.numpy(),
            state.shrink_due.numpy(), c, alive, head, a, gained, margins, slopes,
        )  # fmt: skip
        with np.errstate(invalid="ignore"):  # the driver finds and tells it
            if averages:
                total += head[:, None] * coef + gained.T @ V
            coef[:] = c[:, None] * (alive[:, None] * coef + a.T @ V)
        seen = weight >= 0
        for k in every:
            chunk.slopes[k, begin:stop] = torch.from_numpy(slopes[k]).to(chunk.slopes.dtype)
            losses = np.maximum(axis.loss.of_model(k).value(y[k], margins[k]), 0.0)[seen].sum()
            errors, active = (y[k] * margins[k] <= 0)[seen].sum(), (slopes[k] != 0).sum()
            bad = (~np.isfinite(margins[k]))[seen].sum()
            state.tally[k] += torch.tensor([losses, errors, active, bad], dtype=torch.float64)


class HostSweeps:
    def __init__(self, real, rule, device):
        self.rule = rule

    def __call__(self, wave):
        models = len(wave.y)
        beta = torch.zeros(wave.y.shape, dtype=torch.float64)
        found = torch.zeros((len(wave.sizes), models, 3), dtype=torch.float64)
        matrices = [matrix for batch in wave.matrices for matrix in batch.numpy()]
        for c, matrix in enumerate(matrices):
            m, first = int(wave.sizes[c]), int(wave.first[c])
            part = slice(first, first + m)
            for k in range(models):
                if wave.wanted[c, k]:
                    K = np.ascontiguousarray(matrix[:m, :m])
                    seed = int(wave.seeds[c])
                    y, cost = wave.y[k, part].numpy(), wave.cost[part].numpy()
                    solved = self.solve(K, y, cost, seed, self.rule.loss.of_model(k))
                    beta[k, part], found[c, k] = solved
        return beta, found

    def solve(self, K, y, cost, seed, loss):
        rule = self.rule
        beta, F = np.zeros(len(y)), np.zeros(len(y), dtype=K.dtype)
        budget = rule.budget * len(y) ** 2
        ended = solve_cell(K, y, cost, loss, rule.tol, rule.most, budget, seed, beta, F)
        return torch.from_numpy(beta), torch.tensor(ended, dtype=torch.float64)
