"""Tests of the choice of neighbourhoods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import random_codes, random_problem

from lns.accept import Outcome
from lns.rounds import Part, View
from lns.select import REWARDS, STRATEGIES, AdaptiveSelector, Roulette

N = 30  # codes


def make_view(elites=(), seed=0, n=N):
    """A view of made-up gains and partners."""
    rng = np.random.default_rng(seed)
    gains = rng.normal(size=(n, 2))
    partner = np.array([rng.permutation(np.delete(np.arange(n), i))[:3] for i in range(n)])
    return View(rng.integers(0, 16, n).astype(np.int32), lambda: gains, partner, list(elites))


def make_selector(**changes):
    """A selector with rounds of up to 20 bits."""
    usual = {
        "max_bits": 20,
        "bits_per_weight": 2,
        "max_examples": 5,
        "background": "curvature",
        "coding": "window",
    }
    return AdaptiveSelector(N, **{**usual, **changes})


def shares(wheel, draws=4000):
    """How often each option is drawn."""
    rng = np.random.default_rng(0)
    return np.bincount([wheel.draw(rng) for _ in range(draws)], minlength=len(wheel.options)) / draws


# ---- strategies ----


@pytest.mark.parametrize("name", STRATEGIES)
@settings(deadline=None)
@given(size=st.integers(1, N), seed=st.integers(0, 1000))
def test_strategies_choose_different_weights(name, size, seed):
    """Tests that as many as asked for are chosen, each once, all of them weights."""
    chosen = STRATEGIES[name](make_view(seed=seed), size, np.random.default_rng(seed))
    assert len(chosen) == size
    assert len(np.unique(chosen)) == size
    assert chosen.min() >= 0
    assert chosen.max() < N


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_repeat_themselves_with_a_seed(name):
    """Tests that the generator passed in is the only source of luck."""
    first, second = (STRATEGIES[name](make_view(), 8, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_do_not_always_choose_the_same(name):
    """Tests that every strategy explores: far more weights turn up than one choice has."""
    rng = np.random.default_rng(0)
    seen = {int(i) for _ in range(300) for i in STRATEGIES[name](make_view(), 8, rng)}
    assert len(seen) >= 16


def test_promising_weights_are_chosen_more_often():
    """Tests that cheap moves come first, with some luck."""
    view = make_view()
    rng = np.random.default_rng(0)
    count = np.zeros(N)
    for _ in range(300):
        count[STRATEGIES["gain"](view, 5, rng)] += 1
    order = np.argsort(view.gains().min(axis=1))
    assert count[order[:5]].min() > count[order[-10:]].max()


def test_a_block_grows_along_partners():
    """Tests a chain 0 - 1 - 2 - ... in which each weight knows its neighbours."""
    partner = np.array(
        [[max(i - 1, 0) if i else 1, min(i + 1, N - 1) if i < N - 1 else N - 2] for i in range(N)]
    )
    view = View(np.zeros(N, dtype=np.int32), lambda: np.zeros((N, 2)), partner, [])
    for seed in range(20):
        chosen = np.sort(STRATEGIES["block"](view, 6, np.random.default_rng(seed)))
        assert chosen[-1] - chosen[0] == 5


def test_a_block_of_islands_is_filled_up():
    """Tests that weights without further partners do not make a block too small."""
    partner = np.array([[i ^ 1] for i in range(N)])  # pairs that know only each other
    view = View(np.zeros(N, dtype=np.int32), lambda: np.zeros((N, 2)), partner, [])
    chosen = STRATEGIES["block"](view, 7, np.random.default_rng(0))
    assert len(np.unique(chosen)) == 7


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_work_on_real_views(name):
    """Tests gains that are infinite at the edge of the grid."""
    problem = random_problem()
    codes = np.zeros(7, dtype=np.int32)
    view = Part(problem, codes, 10**6, 0).view(codes, [])
    assert len(np.unique(STRATEGIES[name](view, 5, np.random.default_rng(0)))) == 5


# ---- roulette ----


def test_a_fresh_roulette_is_fair():
    """Tests equal shares."""
    np.testing.assert_allclose(shares(Roulette(list("abcd"))), 0.25, atol=0.03)


def test_rewards_shift_the_odds():
    """Tests that an option that pays is drawn more often, and one that does not less often."""
    wheel = Roulette(list("abc"))
    for _ in range(30):
        wheel.reward(0, 8.0)
        wheel.reward(1, 0.0)
    drawn = shares(wheel)
    assert drawn[0] > drawn[2] > drawn[1]


def test_no_option_ever_dies():
    """Tests the floor: after a thousand failures an option is still drawn now and then."""
    wheel = Roulette(list("ab"))
    for _ in range(1000):
        wheel.reward(0, 0.0)
    floor = wheel.floor / (wheel.floor + 1.0)
    assert shares(wheel)[0] == pytest.approx(floor, abs=0.03)


def test_an_option_recovers_from_its_floor():
    """Tests that the past is forgotten."""
    wheel = Roulette(list("ab"))
    for _ in range(1000):
        wheel.reward(0, 0.0)
    for _ in range(200):
        wheel.reward(0, 8.0)
    assert shares(wheel)[0] > 0.6


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 8)), max_size=50))
def test_scores_stay_between_the_rewards(rewards):
    """Tests that no sequence of rewards makes a score negative or larger than the largest reward."""
    wheel = Roulette(list("abc"))
    for index, value in rewards:
        wheel.reward(index, value)
    assert all(0 <= score <= 8 for score in wheel.scores)


def test_better_outcomes_pay_more():
    """Tests the order of the rewards."""
    values = [REWARDS[o] for o in (Outcome.BEST, Outcome.BETTER, Outcome.ACCEPT, Outcome.REJECT)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0


# ---- the selector ----


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_selector_gives_as_many_choices_as_asked_for(count):
    """Tests the number of choices, and that each has different weights in increasing order."""
    choices = make_selector()(make_view(), count, np.random.default_rng(0))
    assert len(choices) == count
    for choice in choices:
        assert (np.diff(choice.weights) > 0).all()


@settings(deadline=None)
@given(
    max_bits=st.integers(2, 64),
    per_weight=st.sampled_from([1, 2]),
    seed=st.integers(0, 100),
    fuse=st.booleans(),
)
def test_no_choice_needs_more_bits_than_allowed(max_bits, per_weight, seed, fuse):
    """Tests weights times bits against the limit, fusion included."""
    selector = make_selector(max_bits=max_bits, bits_per_weight=per_weight)
    elites = [make_view(seed=99).codes] if fuse else []
    for choice in selector(make_view(elites, seed), 6, np.random.default_rng(seed)):
        each = 1 if choice.coding in ("fusion", "relaxed") else per_weight
        assert 1 <= len(choice.weights) * each <= max_bits


@pytest.mark.parametrize("max_bits", [0, 1])
def test_without_bits_there_are_no_weights(max_bits):
    """Tests that a limit which no weight fits into gives rounds of polish alone."""
    selector = make_selector(max_bits=max_bits, relax=False)
    rng = np.random.default_rng(0)
    for _ in range(20):
        for choice in selector(make_view(), 4, rng):
            assert len(choice.weights) == 0


@pytest.mark.parametrize(
    ("name", "value"), [("background", "pinned"), ("coding", "stored"), ("max_examples", 3)]
)
def test_settings_reach_the_choices(name, value):
    """Tests that background, coding and number of examples are those asked for."""
    for choice in make_selector(**{name: value})(make_view(), 4, np.random.default_rng(0)):
        if name == "max_examples":
            assert choice.examples == (0 if choice.batch == "none" else value)
        elif name == "background" or choice.coding not in ("fusion", "relaxed"):
            assert getattr(choice, name) == value


def test_a_selector_tries_everything():
    """Tests that all kinds of neighbourhoods, sizes, heats and widths turn up."""
    selector = make_selector()
    rng = np.random.default_rng(0)
    view = make_view([random_codes(random_problem(features=N - 1), 5)])
    choices = [c for _ in range(200) for c in selector(view, 2, rng)]
    assert {c.kind for c in choices} == {*STRATEGIES, "fusion"}
    options = {name: set(wheel.options) for name, wheel in selector.wheels.items()}
    heats = {"window": options["heat"], "fusion": options["fusion heat"], "relaxed": {selector.RELAXED_HEAT}}
    assert {c.coding for c in choices} == set(heats)
    for coding, expected in heats.items():
        assert {c.heat for c in choices if c.coding == coding} == expected
    assert {c.width for c in choices if c.coding != "relaxed"} == options["width"]
    relaxed = [c for c in choices if c.coding == "relaxed"]
    assert {(c.width, c.examples) for c in relaxed} == {(selector.CAUTION, 0)}
    for coding, wheel in (("window", "size"), ("relaxed", "relaxed size")):
        assert {len(c.weights) for c in choices if c.coding == coding} == options[wheel]


@pytest.mark.parametrize("off", [{"relax": False}, {"max_bits": 0}])
def test_weights_stay_on_the_grid_if_asked_to(off):
    """Tests that no round takes weights off it, by wish or because there are no bits to bring them back."""
    rng = np.random.default_rng(0)
    selector = make_selector(**off)
    assert {c.coding for _ in range(50) for c in selector(make_view(), 2, rng)} == {"window"}


def test_fusion_takes_weights_in_which_an_elite_differs():
    """Tests that bits go where the two solutions disagree, and nowhere else."""
    view = make_view()
    other = view.codes.copy()
    other[[3, 8, 20]] += 1
    view = View(view.codes, view.gains, view.partner, [view.codes.copy(), other])
    selector = make_selector()
    rng = np.random.default_rng(0)
    fused = [c for _ in range(50) for c in selector(view, 2, rng) if c.kind == "fusion"]
    assert fused
    for choice in fused:
        assert choice.weights.tolist() == [3, 8, 20]
        np.testing.assert_array_equal(choice.other, other)


@pytest.mark.parametrize("same", [False, True])
def test_fusion_without_another_solution_falls_back(same):
    """Tests no elites, and one that is the current solution."""
    view = make_view()
    view = View(view.codes, view.gains, view.partner, [view.codes.copy()] if same else [])
    selector = make_selector()
    rng = np.random.default_rng(0)
    for _ in range(50):
        for choice in selector(view, 2, rng):
            assert choice.kind in STRATEGIES
            assert len(choice.weights) >= 1


def test_what_has_paid_is_chosen_more_often():
    """Tests that rewards reach the kind that earned them."""
    selector = make_selector()
    rng = np.random.default_rng(0)
    for _ in range(300):
        choices = selector(make_view(), 2, rng)
        selector.update([8.0 if c.kind == "block" else 0.0 for c in choices])
    after = [c.kind for _ in range(200) for c in selector(make_view(), 2, rng)]
    assert after.count("block") > 0.5 * len(after)


def test_only_what_was_used_is_learnt_about():
    """Tests which wheels a reward reaches: those of fusions, of windows or of relaxed rounds."""
    wheels = {
        "fusion": {"fusion heat", "width", "batch"},
        "window": {"size", "heat", "width", "batch", "relaxed"},
        "relaxed": {"relaxed size", "relaxed"},
    }
    seen = set()
    for seed in range(40):
        selector = make_selector()
        before = selector.state()
        view = make_view(elites=[np.zeros(N, dtype=np.int32)])
        (choice,) = selector(view, 1, np.random.default_rng(seed))
        selector.update([8.0])
        learnt = {name for name, scores in selector.state().items() if scores != before[name]}
        assert learnt == {"kind"} | wheels[choice.coding]
        seen.add(choice.coding)
    assert seen == set(wheels)


def test_updates_belong_to_the_last_call():
    """Tests that a wrong number of rewards is an error."""
    selector = make_selector()
    selector(make_view(), 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="zip"):
        selector.update([1.0])


def test_what_was_learnt_can_be_saved_and_restored():
    """Tests that a restored selector goes on as the first one would have."""
    first, second = make_selector(), make_selector()
    rng = np.random.default_rng(0)
    for k in range(20):
        choices = first(make_view(), 2, rng)
        first.update([float(k % 5), 0.0][: len(choices)])
    saved = first.state()
    second.restore(saved)
    assert second.state() == saved
    again = [s(make_view(), 4, np.random.default_rng(1)) for s in (first, second)]
    for a, b in zip(*again, strict=True):
        assert (a.kind, a.heat, a.width, a.weights.tolist()) == (b.kind, b.heat, b.width, b.weights.tolist())
    first.update([8.0] * 4)
    assert second.state() == saved  # a copy, not a view


def test_the_same_seed_gives_the_same_choices():
    """Tests two selectors of the same history."""
    first, second = (make_selector()(make_view(), 5, np.random.default_rng(4)) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert (a.kind, a.heat, a.width, a.weights.tolist()) == (b.kind, b.heat, b.width, b.weights.tolist())
