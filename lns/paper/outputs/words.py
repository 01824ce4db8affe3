"""What the results page says about its tables and figures."""

from __future__ import annotations


def _line(text: str) -> str:
    return " ".join(text.split())


RUN = _line("""
What it takes to get the same numbers, and how much was tried. Settings of q-loss are compared on
some of the folds and rows. The best of them are trained there by the search; where that begins at
the end of a continuous path, the nearest levels to this end are a candidate, too ("rounded"). The
best of them, trained on all rows of every fold, counts. Rivals have ten λ (t-logistic also ten t,
cleanlab and SGD four λ, boosting one setting). Where a training fold has more rows than settings
are compared on, only the four best of q-loss and of a rival, and the two best of a method of today
are trained on all of them.
""")
NOT_RECORDED = "What it takes to get the same numbers was not recorded."
CLAIMS = "Every claim is counted over the cells of this run. A cell is a data set at a noise level."
ERRORS = _line("""
The paper's protocol: folds of 70 % of the data, negatives flipped in the training folds only, clean
test folds, and the setting with the lowest mean test error. Mean and standard deviation over the
folds; in brackets the paper's. The lowest error among q-loss and the paper's rivals is bold.
""")
TODAY = _line("""
These methods are not in the paper. Boosting is not linear: it is a yardstick for what the features
allow.
""")
HONEST = _line("""
Settings chosen on noisy validation folds by the noise-corrected error, with the flip rates known or
estimated, and scored once on clean labels of the 30 % that had no part in training and choice.
""")
SETTINGS = _line("""
Under the paper's protocol; the paper's choice in brackets. Two values of q are for negatives and
positives. λ multiplies ‖w‖² beside the mean loss, of the rivals ‖w‖² + b²; of liblinear it is 1/C
beside the sum of losses, which regularises less. "Over (d, 0)": the
path of one q leads over q = d for negatives and 0 for positives, which makes use of the fact that
the noise is among the positives. "Rounded": the nearest levels to the end of the path, without a
search.
""")
FLIPS = _line("""
Training labels flipped on purpose, and those that each method flags as wrong. The setting of q-loss
is chosen on noisy labels, with estimated rates. cleanlab runs with its defaults, and once more with
the best of ten combinations of the regression's strength and the filter, chosen by the truth.
""")
SIGNIFICANCE = _line("""
Paired t-tests over the folds at the 5 % level: Y if q-loss and the convex rival with the lowest
error differ, by how many points the rival is worse, and p. The paper's verdict in brackets.
""")
RISK = _line("""
While a loss is minimised the training error should fall with the risk: a curve that goes down to
the right. One that goes up shows that a lower risk does not mean a better classifier.
""")

# Why a rival is above the printed error, as far as trying other draws (--seed) tells.
REASONS = {
    ("long-servedio", "square"): _line("""
        Solving the normal equations exactly gives 27 to 31 % without noise on eight draws of the
        set, whatever λ: the paper's draw was easier, or its fit ended early.
        """),
    ("long-servedio", "probit"): _line("""
        It depends on the draw: 1.4 to 4.4 % at 40 % noise on four draws. More starts change nothing
        on three of them.
        """),
    ("adult9", "smoothed-hinge"): _line("""
        At λ = 0.0796, which the paper has chosen, the minimum has 34 %, whether the bias is regularised or
        not: its fit ended before the minimum, or its loss is another one.
        """),
}
