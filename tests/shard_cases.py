"""Shards without a cluster, and data cut into files."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lns.shard import Shard


class ShardsHere:
    """The shards in this process: what `lns.sharded.ShardedProblem` sees of a cluster, without one."""

    def __init__(self, sources):
        self.shards = [Shard(source) for source in sources]
        self.rebuilt = self.moved_bytes = 0
        self.asked = []

    def setup(self, method, each):
        """As `ask`: nothing is ever lost here."""
        return self.ask(method, each=each)

    def ask(self, method, *args, each=None):
        """Answers in the order of the shards."""
        self.asked.append(method)
        words = [(*args, *own) for own in each or [()] * len(self.shards)]
        return [getattr(shard, method)(*one) for shard, one in zip(self.shards, words, strict=True)]

    def close(self):
        """Forget them."""
        self.shards = []


def write_svm(path, X, y, first_index=1):
    """Rows in LIBSVM format."""
    lines = []
    for x, label in zip(X, y, strict=True):
        entries = " ".join(f"{i + first_index}:{float(x[i])!r}" for i in np.flatnonzero(x))
        lines.append(f"{label} {entries}")
    path.write_text("\n".join(lines) + "\n")


def write_shards(folder, X, y, pieces, suffix=".npz"):
    """The rows in files of unequal size; their paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = np.linspace(0, 1, pieces + 1) ** 1.3 * len(y)
    cuts = np.round(cuts).astype(int)
    paths = []
    for k in range(pieces):
        part, labels = X[cuts[k] : cuts[k + 1]], y[cuts[k] : cuts[k + 1]]
        path = folder / f"part-{k}{suffix}"
        if suffix == ".svm":
            write_svm(path, part, labels)
        elif suffix == ".csv":
            np.savetxt(path, np.column_stack([part, labels]), delimiter=",", fmt="%.17g")
        elif suffix == ".parquet":
            import pyarrow as arrow
            from pyarrow import parquet

            columns = {f"x{i}": part[:, i] for i in range(X.shape[1])}
            parquet.write_table(arrow.table({**columns, "label": labels}), path)
        elif suffix == ".csr.npz":
            csr = sparse.csr_matrix(part)
            np.savez(path, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, y=labels)
        else:
            np.savez(path, X=part, y=labels)
        paths.append(path)
    return paths
