"""The compiled loops over examples (numba), and nothing else.

Every kernel releases the GIL, so threads can share the cores, and is cached on disk: a machine
compiles each of them once. Loops run from 0 over slices: numba then knows that no index is negative, and
vectorises. Conventions, with s an example and i a weight:

``m``    margins y_s (w·x_s + b), float64
``cap``  the height (1 - q_s)² at which the loss of example s stops growing
``p``    the share c_s / S of example s in the mean, summing to 1
``y``    labels, ±1.0
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numba import njit
from numba.core import event

logger = logging.getLogger("lns")

# Reassociation lets sums use vector registers; NaN and infinity never get here (checked at the door).
FAST = {"nogil": True, "cache": True, "fastmath": {"reassoc", "nsz", "contract", "arcp", "nnan", "ninf"}}
BLOCK = 512  # rows whose margins stay in the first-level cache while columns stream past
MIDDLE_BLOCK = 2048  # rows of which all columns stay in the second-level cache, if there are some dozens
LONG_BLOCK = 8192  # margins in the second-level cache: longer runs of each column


class _Announcer(event.Listener):
    """Says once per process that kernels are being compiled; silent when the disk cache has them."""

    announced = False

    def on_start(self, event: Any) -> None:
        function = getattr(event.data["dispatcher"], "py_func", None)
        if not self.announced and getattr(function, "__module__", "").startswith("lns."):
            self.announced = True
            logger.warning("Compiling the inner loops (a few seconds, only once on this machine) ...")

    def on_end(self, event: Any) -> None:
        """Required by numba's interface."""


event.register("numba:compile", _Announcer())


@njit(inline="always", **FAST)
def q_loss(m, cap):  # type: ignore[no-untyped-def]
    """L_q(m) = min((1 - q)², max(0, 1 - m)²)."""
    u = max(1.0 - m, 0.0)
    return min(u * u, cap)


@njit(**FAST)
def loss_sum(m, cap, p, start, stop):  # type: ignore[no-untyped-def]
    """Sum of p_s L(m_s) over the rows of one chunk."""
    m, cap, p = m[start:stop], cap[start:stop], p[start:stop]
    total = 0.0
    for s in range(len(m)):
        total += p[s] * q_loss(m[s], cap[s])
    return total


@njit(**FAST)
def loss_sums(M, cap, p, start):  # type: ignore[no-untyped-def]
    """Sum of p_s L for each column of M, whose first row is example `start`."""
    totals = np.zeros(M.shape[1])
    for s in range(M.shape[0]):
        row, share, height = M[s], p[start + s], cap[start + s]
        for j in range(len(totals)):
            totals[j] += share * q_loss(row[j], height)
    return totals


@njit(inline="always", **FAST)
def scores_by_columns(X, w, b, s0, s1, part):  # type: ignore[no-untyped-def]
    """w·x + b of a block of rows of a column-major matrix, four columns at a time."""
    n = X.shape[1]
    whole = n // 4 * 4
    part[:] = b
    for i in range(0, whole, 4):
        x0, x1, x2, x3 = X[s0:s1, i], X[s0:s1, i + 1], X[s0:s1, i + 2], X[s0:s1, i + 3]
        w0, w1, w2, w3 = w[i], w[i + 1], w[i + 2], w[i + 3]
        for s in range(len(part)):
            part[s] += (w0 * x0[s] + w1 * x1[s]) + (w2 * x2[s] + w3 * x3[s])
    for i in range(whole, n):
        x, wi = X[s0:s1, i], w[i]
        for s in range(len(part)):
            part[s] += wi * x[s]


@njit(**FAST)
def margins_by_columns(X, w, b, y, out, start, stop):  # type: ignore[no-untyped-def]
    """Margins of a column-major matrix."""
    for s0 in range(start, stop, LONG_BLOCK):
        s1 = min(stop, s0 + LONG_BLOCK)
        part, label = out[s0:s1], y[s0:s1]
        scores_by_columns(X, w, b, s0, s1, part)
        for s in range(len(part)):
            part[s] *= label[s]


@njit(**FAST)
def candidate_losses(X, columns, changes, shifts, y, m, cap, p, start, stop):  # type: ignore[no-untyped-def]
    """Σ p_s L of candidates that change some weights of margins m, one row of `changes` each; column-major X.

    Only the columns that a candidate changes are read, four at a time, while a block of rows stays in cache.
    """
    totals = np.zeros(len(changes))
    moved = np.empty(BLOCK)
    for s0 in range(start, stop, BLOCK):
        s1 = min(stop, s0 + BLOCK)
        yb, mb, capb, pb, score = y[s0:s1], m[s0:s1], cap[s0:s1], p[s0:s1], moved[: s1 - s0]
        for k in range(len(totals)):
            score[:] = shifts[k]
            used = np.flatnonzero(changes[k])
            whole = len(used) // 4 * 4
            for j in range(0, whole, 4):
                c0, c1, c2, c3 = used[j], used[j + 1], used[j + 2], used[j + 3]
                x0, x1 = X[s0:s1, columns[c0]], X[s0:s1, columns[c1]]
                x2, x3 = X[s0:s1, columns[c2]], X[s0:s1, columns[c3]]
                d0, d1, d2, d3 = changes[k, c0], changes[k, c1], changes[k, c2], changes[k, c3]
                for s in range(len(score)):
                    score[s] += (d0 * x0[s] + d1 * x1[s]) + (d2 * x2[s] + d3 * x3[s])
            for j in range(whole, len(used)):
                x, d = X[s0:s1, columns[used[j]]], changes[k, used[j]]
                for s in range(len(score)):
                    score[s] += d * x[s]
            total = 0.0
            for s in range(len(score)):
                total += pb[s] * q_loss(mb[s] + yb[s] * score[s], capb[s])
            totals[k] += total
    return totals


@njit(**FAST)
def margins_by_rows(X, w, b, y, out, start, stop):  # type: ignore[no-untyped-def]
    """Margins of a row-major matrix."""
    for s in range(start, stop):
        x = X[s]
        total = 0.0
        for i in range(len(w)):
            total += w[i] * x[i]
        out[s] = y[s] * (total + b)


@njit(inline="always", **FAST)
def slopes(m, y, q, shift, width, p, out):  # type: ignore[no-untyped-def]
    """Sum of p_s L(m_s), and its derivatives in the scores w·x + b in `out`.

    q is lowered by `shift`, and the loss averaged over margins up to `width` away, to either side.
    """
    total = 0.0
    if width > 0.0:
        for s in range(len(out)):
            top, u = 1.0 - q[s] + shift, 1.0 - m[s]
            low, high = min(max(u - width, 0.0), top), min(max(u + width, 0.0), top)
            beyond = max(u + width - top, 0.0) - max(u - width - top, 0.0)
            share = 0.5 * p[s] / width
            total += share * ((high * high * high - low * low * low) / 3.0 + top * top * beyond)
            out[s] = -share * y[s] * (high * high - low * low)
        return total
    for s in range(len(out)):
        top = 1.0 - q[s] + shift
        u = min(max(1.0 - m[s], 0.0), top)
        total += p[s] * u * u
        out[s] = -2.0 * p[s] * y[s] * u if u < top else 0.0
    return total


@njit(**FAST)
def slopes_of_rows(m, y, q, shift, width, p, out, start, stop):  # type: ignore[no-untyped-def]
    """`slopes` of the rows of one chunk."""
    return slopes(m[start:stop], y[start:stop], q[start:stop], shift, width, p[start:stop], out[start:stop])


@njit(**FAST)
def loss_and_gradient_by_columns(X, w, b, y, q, shift, width, p, start, stop):  # type: ignore[no-untyped-def]
    """Sum of p_s L as in `slopes`, and its gradient, bias last; blocks stay in cache for both."""
    n = X.shape[1]
    whole = n // 4 * 4
    sums = np.zeros(n + 2)
    margins, bends = np.empty(MIDDLE_BLOCK), np.empty(MIDDLE_BLOCK)
    for s0 in range(start, stop, MIDDLE_BLOCK):
        s1 = min(stop, s0 + MIDDLE_BLOCK)
        m, label, slope = margins[: s1 - s0], y[s0:s1], bends[: s1 - s0]
        scores_by_columns(X, w, b, s0, s1, m)
        for s in range(len(m)):
            m[s] *= label[s]
        sums[0] += slopes(m, label, q[s0:s1], shift, width, p[s0:s1], slope)
        for i in range(0, whole, 4):
            x0, x1, x2, x3 = X[s0:s1, i], X[s0:s1, i + 1], X[s0:s1, i + 2], X[s0:s1, i + 3]
            g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
            for s in range(len(slope)):
                g0 += slope[s] * x0[s]
                g1 += slope[s] * x1[s]
                g2 += slope[s] * x2[s]
                g3 += slope[s] * x3[s]
            sums[i + 1] += g0
            sums[i + 2] += g1
            sums[i + 3] += g2
            sums[i + 4] += g3
        for i in range(whole, n):
            x, total = X[s0:s1, i], 0.0
            for s in range(len(slope)):
                total += slope[s] * x[s]
            sums[i + 1] += total
        for s in range(len(slope)):
            sums[n + 1] += slope[s]
    return sums


@njit(**FAST)
def loss_and_gradient_by_rows(X, w, b, y, q, shift, width, p, start, stop):  # type: ignore[no-untyped-def]
    """`loss_and_gradient_by_columns` for a row-major matrix."""
    n = X.shape[1]
    sums = np.zeros(n + 2)
    gradient = sums[1 : n + 1]
    margins, bends = np.empty(BLOCK), np.empty(BLOCK)
    for s0 in range(start, stop, BLOCK):
        s1 = min(stop, s0 + BLOCK)
        m, label, slope = margins[: s1 - s0], y[s0:s1], bends[: s1 - s0]
        margins_by_rows(X[s0:s1], w, b, label, m, 0, len(m))
        sums[0] += slopes(m, label, q[s0:s1], shift, width, p[s0:s1], slope)
        for s in range(len(slope)):
            if slope[s] != 0.0:
                x, factor = X[s0 + s], slope[s]
                for i in range(len(gradient)):
                    gradient[i] += factor * x[i]
        for s in range(len(slope)):
            sums[n + 1] += slope[s]
    return sums


@njit(**FAST)
def margins_of_sparse_rows(indptr, indices, data, w, b, y, out, start, stop):  # type: ignore[no-untyped-def]
    """Margins of a matrix in compressed rows."""
    for s in range(start, stop):
        total = 0.0
        for k in range(indptr[s], indptr[s + 1]):
            total += w[np.uint64(indices[k])] * data[k]
        out[s] = y[s] * (total + b)


@njit(**FAST)
def transposed_sparse(indptr, indices, data, r, out, start, stop):  # type: ignore[no-untyped-def]
    """Xᵀ r for some columns of a matrix in compressed columns."""
    for i in range(start, stop):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += r[np.uint64(indices[k])] * data[k]
        out[i] = total


@njit(**FAST)
def squares_sparse(indptr, indices, data, p, out, start, stop):  # type: ignore[no-untyped-def]
    """Σ_s p_s x_si² for some columns of a matrix in compressed columns."""
    for i in range(start, stop):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[k])
            total += p[np.uint64(indices[k])] * x * x
        out[i] = total


@njit(**FAST)
def moments_sparse(indptr, indices, data, rows, place, bias, h, g, second, first):  # type: ignore[no-untyped-def]
    """Add Σ h_s x_s x_sᵀ and Σ g_s x_s over some rows of compressed rows; of the former one triangle only.

    `place` says where each column is to be found in the sums, -1 for nowhere; `bias` the same of the constant
    1. Which triangle: each pair of columns once, in the order in which a row has them.
    """
    at, x = np.empty(place.shape[0] + 1, np.int64), np.empty(place.shape[0] + 1)
    for r in range(rows.shape[0]):
        s = rows[r]
        count = 0
        for k in range(indptr[s], indptr[s + 1]):
            if place[indices[k]] >= 0:
                at[count], x[count] = place[indices[k]], data[k]
                count += 1
        if bias >= 0:
            at[count], x[count] = bias, 1.0
            count += 1
        for a in range(count):
            first[at[a]] += g[s] * x[a]
            line, hx = second[at[a]], h[s] * x[a]
            for b in range(a, count):
                line[at[b]] += hx * x[b]
