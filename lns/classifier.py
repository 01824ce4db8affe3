"""The scikit-learn classifier."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from lns.choose_q import DEFAULT_LAM, choose_q, choose_q_for_classes
from lns.classifier_settings import Settings, check_weight
from lns.cross_fit import NEVER
from lns.driver import solve
from lns.engine import EngineParams
from lns.errors import InvalidInput
from lns.problem import QLossProblem
from lns.result import Result
from lns.training_set import TrainingSet

# An estimator is fitted often and on small data: shorter walks than a single long run deserves.
SEARCH = EngineParams(walk_moves=500)
FLAGGED = 0.5  # label quality of an example whose margin is q
INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class QLossClassifier(ClassifierMixin, BaseEstimator):
    """A linear classifier that stays right when many training labels are wrong.

    Trains by minimising *mean q-loss + λ Σ w²* over weights of a few bits: the loss stops growing at a margin
    q, so an example with a wrong label is given up, and reported, instead of dragging the boundary along.
    Nothing needs to be set: q, one for each of two classes, and λ are chosen from the data. Features are
    scaled to [0, 1] inside. More than two classes are trained one against the rest, with one q for all.

    The order of the rows does not matter, and a row of weight two is a row given twice. Fits that do not run
    into `time_limit` are repeatable: the same data and `random_state` give the same model.

    Parameters
    ----------
    q
        Where the loss stops growing, at most 0: ``"auto"`` (see `lns.choose_q`), a number, or one for each
        class, ``{label: q}``. The nearer to 0, the sooner an example with this label is given up; -1000 or
        ``-inf`` is the squared hinge of `sklearn.svm.LinearSVC`.
    lam
        λ, weight of the squares of the weights of the *scaled* features, or ``"auto"``: chosen with q, and
        0.001 where q is given.
    flip_rates
        For ``q="auto"`` with two classes: ``{label: share of this class that carries the other label}`` if
        known; ``"auto"`` estimates it (see `lns.flip_rates` for when that works).
    weight_bits, weight_range, bias_bits, bias_range
        Precision and range of the weights of the scaled features, as for `lns.QLossProblem`.
    solver, solver_options
        Who solves the sub-QUBOs, as for `lns.solve`.
    time_limit
        Seconds of search for a binary problem; None for no limit. Small data needs far less. Choosing q and
        finding the start take their time besides, a few seconds.
    max_rounds, patience
        Rounds of search of a binary problem, and rounds without a better solution after which it ends. None
        for no limit.
    backend, workers
        Where rounds run, and how many at once, as for `lns.solve`.
    random_state
        Seed (the default is one fixed seed), a `numpy.random.RandomState`, or None for another run each time.
    verbose
        Show progress on standard error.

    Attributes
    ----------
    classes_
        The labels, sorted.
    coef_, intercept_
        Weights in the units of the features as given: (1, n_features) for two classes, otherwise one row for
        each class.
    flagged_
        For each training example, whether its label is believed to be wrong: its margin is at most q (and,
        among more than two classes, another class scores higher).
    q_, lam_
        What was used: ``{label: q}``, and λ.
    flip_rates_
        ``{label: rate}`` that q was chosen with; None where q was given, and for more than two classes.
    objective_
        The objective on the scaled features: a number, or one for each class.
    result_
        The `lns.Result` of the search, or a list with one for each class. Equal rows with equal labels are
        one example of the search (with two classes, ``result_.flagged`` is that of the rows as given).
    n_iter_
        Rounds of the longest search.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Examples
    --------
    >>> import lns
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = lns.QLossClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    def __init__(
        self,
        q: str | float | Mapping[Any, float] = "auto",
        lam: str | float = "auto",
        *,
        flip_rates: str | Mapping[Any, float] = "auto",
        weight_bits: int = 4,
        weight_range: Any = "auto",
        bias_bits: int = 8,
        bias_range: Any = "auto",
        solver: Any = "tabu",
        solver_options: Mapping[str, Any] | None = None,
        time_limit: float | None = 10.0,
        max_rounds: int | None = 50,
        patience: int | None = 10,
        backend: str = "local",
        workers: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.q = q
        self.lam = lam
        self.flip_rates = flip_rates
        self.weight_bits = weight_bits
        self.weight_range = weight_range
        self.bias_bits = bias_bits
        self.bias_range = bias_range
        self.solver = solver
        self.solver_options = solver_options
        self.time_limit = time_limit
        self.max_rounds = max_rounds
        self.patience = patience
        self.backend = backend
        self.workers = workers
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- training ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on examples X (dense or sparse, n_samples by n_features) with labels y.

        Parameters
        ----------
        X, y
            Finite features, and labels of at least two classes: numbers or strings.
        sample_weight
            Importance of each example, at least 0; only ratios matter.
        """
        X, labels = validate_data(self, X, y, **INPUT)
        check_classification_targets(labels)
        weight = check_weight(sample_weight, X.shape[0])
        used = np.flatnonzero(weight)
        self.classes_, codes = np.unique(labels[used], return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInput(
                f"y must hold at least two classes, of weight above 0. Got one class: {self.classes_[0]!r}."
            )
        settings = Settings.read(self.get_params(deep=False), self.classes_.tolist())
        examples = TrainingSet.prepare(X[used], codes, weight[used])
        self._rehearse(examples, settings)

        # Two classes are one problem, whose positive class is the second.
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        q = self._choose(examples, settings)
        self._keep([self._fit_one(examples, positive, q, settings.seed) for positive in positives], examples)
        self._judge_labels(X, labels)
        return self

    def _problem(self, X: Any, y: NDArray, q: Any, lam: float, weight: NDArray | None = None) -> QLossProblem:
        return QLossProblem(
            X, y, q=q, lam=lam, sample_weight=weight, weight_bits=self.weight_bits,
            weight_range=self.weight_range, bias_bits=self.bias_bits, bias_range=self.bias_range,
        )  # fmt: skip

    def _solve(self, problem: QLossProblem, seed: int, max_rounds: int | None) -> Result:
        return solve(
            problem,
            time_limit=self.time_limit,
            max_rounds=max_rounds,
            no_improvement=self.patience,
            solver=self.solver,
            solver_options=self.solver_options,
            backend=self.backend,
            workers=self.workers,
            seed=seed,
            progress=bool(self.verbose),
            params=SEARCH,
        )

    def _rehearse(self, examples: TrainingSet, settings: Settings) -> None:
        """Find wrong parameters before the long work: a run of no rounds on two examples."""
        rows = np.array([np.argmax(examples.codes == code) for code in (0, 1)])
        X, y = examples.X[rows], np.array([-1, 1])
        self._problem(X, y, -0.5, DEFAULT_LAM if settings.lam is None else settings.lam)
        easy = QLossProblem(X, y, weight_range=(-1, 1), bias_range=(-1, 1))
        self._solve(easy, settings.seed, 0)

    def _choose(self, examples: TrainingSet, settings: Settings) -> NDArray[np.float64]:
        """q of the examples of each class, given or chosen; sets what is known of q, λ and the noise."""
        X, weight = examples.X, examples.weight
        lam, rates, seed = settings.lam, settings.rates, settings.seed
        self.flip_rates_ = None
        labels = self.classes_.tolist()
        if settings.q is not None:
            q, self.lam_ = settings.q, DEFAULT_LAM if lam is None else lam
        elif len(labels) == 2:
            chosen = choose_q(X, examples.signs(1), weight, lam=lam, rates=rates, seed=seed)
            q, self.lam_ = np.array([chosen.q[-1], chosen.q[1]]), chosen.lam
            if chosen.rates is not None:
                self.flip_rates_ = dict(zip(labels, chosen.rates, strict=True))
        else:
            chosen = choose_q_for_classes(X, examples.codes, weight, lam=lam, seed=seed)
            q, self.lam_ = np.full(len(labels), chosen.q[1]), chosen.lam
        self.q_ = dict(zip(labels, q.tolist(), strict=True))
        return q

    def _fit_one(self, examples: TrainingSet, positive: int, q: NDArray[np.float64], seed: int) -> Result:
        """Search: one class against all others."""
        problem = self._problem(
            examples.X, examples.signs(positive), q[examples.codes], self.lam_, examples.weight
        )
        return self._solve(problem, seed, self.max_rounds)

    def _keep(self, results: list[Result], examples: TrainingSet) -> None:
        """Weights in the units of the features, and what the search says of itself."""
        scaling = examples.scaling
        self.coef_ = np.stack([result.weights for result in results]) / scaling.span
        self.intercept_ = np.array([result.bias for result in results]) - self.coef_ @ scaling.offset
        self.n_iter_ = max(len(result.rounds) for result in results)
        self.objective_: Any = np.array([result.objective for result in results])
        self.result_: Any = results
        if len(results) == 1:
            self.objective_, self.result_ = float(self.objective_[0]), results[0]

    def _judge_labels(self, X: Any, labels: NDArray) -> None:
        """How much each training label is believed; those of classes without weight are not judged."""
        known = np.isin(labels, self.classes_)
        self._quality = np.full(len(labels), np.nan)
        self._quality[known] = self._quality_of(self._scores(X[known]), labels[known])
        self.flagged_ = self._quality <= FLAGGED
        if not isinstance(self.result_, list):  # in the rows of the caller, not in those of the search
            self.result_ = dataclasses.replace(self.result_, flagged=self.flagged_)

    # ---- use -----------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores w·x + b: of the second of two classes (above 0: predicted), or one column per class."""
        check_is_fitted(self)
        return self._scores(validate_data(self, X, reset=False, **INPUT))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray:
        """The label of every example."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def label_quality(self, X: Any = None, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """How much the model believes each label: from 0 to 1, the lower the more suspicious.

        The margin m of an example is set against the q of its class: 1 / (1 + exp(-4 (m - q) / (1 - q))).
        This is at most 0.5 for flagged examples, and 0.98 where the margin is 1 and the loss ends. With more
        than two classes the lead of the example's class over the best other one takes the place of
        (m - q) / (1 - q) where it is larger. ``argsort`` of it is the order in which to look at the labels.

        Parameters
        ----------
        X, y
            Examples and the labels to judge; the training examples if left out. (Training examples with a
            label that has no weight anywhere get NaN.)
        """
        check_is_fitted(self)
        if X is None and y is None:
            return self._quality.copy()
        if X is None or y is None:
            raise InvalidInput("label_quality takes both X and y, or neither for the training examples.")
        X, labels = validate_data(self, X, y, reset=False, **INPUT)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            known = ", ".join(map(repr, self.classes_.tolist()))
            raise InvalidInput(
                f"y must hold the labels trained with: {known}. Got {labels[unknown].tolist()[0]!r}."
            )
        return self._quality_of(self._scores(X), labels)

    def _quality_of(self, scores: NDArray, labels: NDArray) -> NDArray[np.float64]:
        codes = np.searchsorted(self.classes_, labels)
        q = np.maximum(np.array([*self.q_.values()])[codes], NEVER)
        if scores.ndim == 1:
            relative = (np.where(codes == 1, scores, -scores) - q) / (1 - q)
        else:
            rows = np.arange(len(codes))
            own, others = scores[rows, codes], scores.copy()
            others[rows, codes] = -np.inf
            relative = np.maximum((own - q) / (1 - q), own - others.max(axis=1))
        return expit(4 * relative)
