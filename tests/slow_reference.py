"""The paper's formulas in plain Python, one example at a time."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from lns.problem import QLossProblem

LAYOUTS = {
    "rows32": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "columns32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "rows64": lambda X: np.ascontiguousarray(X, dtype=np.float64),
    "columns64": lambda X: np.asfortranarray(X, dtype=np.float64),
    "sparse32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "sparse64": lambda X: sparse.csc_array(X),
}


def q_loss(m, q):
    """L_q(m) = min((1 - q)², max(0, 1 - m)²)."""
    return min((1 - q) ** 2, max(0.0, 1 - m) ** 2)


def dense(problem):
    """The data as a list of rows."""
    X = problem.matrix.X
    return (X.toarray() if hasattr(X, "toarray") else X).astype(float).tolist()


def margins(problem, w, b):
    """y_s (w·x_s + b)."""
    return [
        float(y) * (sum(wi * xi for wi, xi in zip(w, x, strict=True)) + b)
        for x, y in zip(dense(problem), problem.y, strict=True)
    ]


def penalty(problem, w):
    """λ Σ w_i²."""
    return problem.lam * sum(wi**2 for wi in w)


def objective(problem, w, b):
    """Mean q-loss and penalty."""
    losses = [
        p * q_loss(m, q) for p, m, q in zip(problem.share, margins(problem, w, b), problem.q, strict=True)
    ]
    return sum(losses) + penalty(problem, w)


def level(lo, hi, bits):
    """The value of bits, least significant first."""
    code = sum(int(bit) << k for k, bit in enumerate(bits))
    return lo + (hi - lo) * code / (2 ** len(bits) - 1)


def read_sample(problem, sample):
    """Weights, bias, targets and most significant target bits of a sample of `to_bqm`."""
    wg, bg, tg = problem.weight_grid, problem.bias_grid, problem.target_grid
    w = [
        level(wg.lo[i], wg.hi[i], [sample["w", i, k] for k in range(problem.weight_bits)])
        for i in range(problem.num_features)
    ]
    b = level(bg.lo[0], bg.hi[0], [sample["b", k] for k in range(problem.bias_bits)])
    t_bits = [[sample["t", s, k] for k in range(problem.target_bits)] for s in range(problem.num_examples)]
    return w, b, [level(tg.lo[0], tg.hi[0], bits) for bits in t_bits], [bits[-1] for bits in t_bits]


def qubo_energy(problem, sample):
    """mean[(m - t)² + (1 - q)² (1 - msb)] + λ Σ w_i²."""
    w, b, t, msb = read_sample(problem, sample)
    per_example = zip(problem.share, margins(problem, w, b), t, problem.q, msb, strict=True)
    return sum(p * ((m - ts) ** 2 + (1 - q) ** 2 * (1 - top)) for p, m, ts, q, top in per_example) + penalty(
        problem, w
    )


def all_bits(count):
    """Every setting of so many bits, as rows."""
    return np.array(list(itertools.product((0, 1), repeat=count)), dtype=np.int8).reshape(-1, count)


@st.composite
def problems(draw, max_examples=5, max_features=3, max_target_bits=4):
    """Random small problems in every layout, with every form of q, with and without sample weights."""
    rows, features = draw(st.integers(2, max_examples)), draw(st.integers(1, max_features))
    values = st.integers(-8, 8).map(lambda k: k / 4)  # exact in single precision
    X = np.array([[draw(values) for _ in range(features)] for _ in range(rows)])
    y = [1, -1, *draw(st.lists(st.sampled_from([-1, 1]), min_size=rows - 2, max_size=rows - 2))]
    q_value = st.floats(-3, 0)
    q = draw(
        st.one_of(
            q_value,
            st.fixed_dictionaries({-1: q_value, 1: q_value}),
            st.lists(q_value, min_size=rows, max_size=rows),
        )
    )
    weights = st.lists(st.floats(0.1, 5), min_size=rows, max_size=rows)
    lo = [draw(st.floats(-3, 1)) for _ in range(features)]
    hi = [low + draw(st.floats(0.5, 4)) for low in lo]
    return QLossProblem(
        draw(st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.get))(X),
        y,
        q=q,
        lam=draw(st.floats(0, 1)),
        sample_weight=draw(st.none() | weights),
        weight_bits=draw(st.integers(1, 3)),
        weight_range=(lo, hi),
        bias_bits=draw(st.integers(1, 3)),
        bias_range=(-1.0, draw(st.floats(0, 2))),
        target_bits=draw(st.integers(1, max_target_bits)),
        target_span=draw(st.floats(1, 12)),
    )


@st.composite
def problems_with_codes(draw, **sizes):
    """A small problem and codes on its grids."""
    problem = draw(problems(**sizes))
    codes = np.array([draw(st.integers(0, int(top))) for top in problem.tops], dtype=np.int32)
    return problem, codes
