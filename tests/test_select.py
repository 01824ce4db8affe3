"""Tests of the choice of neighbourhoods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lns.errors import InvalidInput
from lns.select import KINDS, NOTHING, Selector, View, Wheel, connected_weights

N = 30  # codes, the last of which is that of the bias
TOPS = np.append(np.full(N - 1, 15), 255).astype(np.int32)
BITS = np.append(np.full(N - 1, 4), 8)


def make_view(others=(), seed=0):
    """A view of made-up partners; other solutions are given by their codes."""
    rng = np.random.default_rng(seed)
    partner = np.array([rng.permutation(np.delete(np.arange(N), i))[:3] for i in range(N)])
    codes = rng.integers(0, 16, N).astype(np.int32)
    return View(codes, TOPS, partner, [other.astype(float) for other in others], list(others))


def make_selector(**changes):
    """A selector with rounds of up to 20 bits."""
    usual = {
        "kinds": KINDS,
        "heats": (6.0, 2.0),
        "max_bits": 20,
        "max_examples": 5,
        "background": "curvature",
    }
    return Selector(**{**usual, **changes})


def draws(selector, view, rounds=200, count=2, seed=0):
    """Choices of many rounds that all pay alike."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(rounds):
        choices = selector(view, count, rng)
        selector.update(choices[0].kind, 1.0, 1.0)
        found.append(choices)
    return found


def shares(wheel, times=4000):
    """How often each kind is drawn."""
    rng = np.random.default_rng(0)
    drawn = [wheel.draw(list(wheel.rates), rng) for _ in range(times)]
    return {kind: drawn.count(kind) / times for kind in wheel.rates}


# ---- the wheel ----


def test_every_kind_is_tried_first():
    """Tests that kinds are drawn in turn until each has brought something or nothing."""
    wheel, rng, drawn = Wheel(), np.random.default_rng(0), []
    for _ in range(3):
        drawn.append(wheel.draw("abc", rng))
        wheel.reward(drawn[-1], 0.0, 1.0)
    assert drawn == ["a", "b", "c"]


def test_kinds_that_brought_nothing_get_work_alike():
    """Tests that those which take twice as long are drawn half as often."""
    works = {"a": 1e6, "b": 1e6, "c": 2e6}
    drawn = shares(Wheel(dict.fromkeys("abc", 0.0), works))
    np.testing.assert_allclose(list(drawn.values()), [0.4, 0.4, 0.2], atol=0.03)


def test_what_pays_gets_work_in_proportion_and_nothing_dies():
    """Tests gains far above nothing, and one of nothing."""
    drawn = shares(Wheel({"a": 3.0, "b": 1.0, "c": 0.0}, dict.fromkeys("abc", 1.0)))
    assert drawn["a"] == pytest.approx(0.75, abs=0.03)
    assert drawn["b"] == pytest.approx(0.25, abs=0.03)
    small = shares(Wheel({"a": 9 * NOTHING, "b": 0.0}, dict.fromkeys("ab", 1.0)))
    assert small["b"] == pytest.approx(1 / 11, abs=0.03)


def test_the_past_is_forgotten():
    """Tests that a kind that has stopped paying gets no more than another that brings nothing."""
    wheel = Wheel({"a": 1000.0, "b": 0.0}, dict.fromkeys("ab", 1.0))
    for _ in range(150):
        wheel.reward("a", 0.0, 1.0)
    assert shares(wheel)["a"] == pytest.approx(0.5, abs=0.03)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 8)), max_size=50))
def test_rates_stay_between_the_rewards(rewards):
    """Tests that no sequence of rewards makes a rate negative or larger than the largest reward."""
    wheel = Wheel()
    for kind, value in rewards:
        wheel.reward(kind, value, 1.0)
    assert all(0 <= rate <= 8 for rate in wheel.rates.values())


# ---- weights ----


@settings(deadline=None)
@given(bits=st.integers(1, 200), seed=st.integers(0, 1000), known=st.booleans())
def test_connected_weights_are_different_and_fit(bits, seed, known):
    """Tests that each is chosen once, that the room is kept unless one weight needs more, and never none."""
    view = make_view(seed=seed)
    if not known:
        view = View(view.codes, TOPS, np.empty((N, 0), dtype=np.intp), [], [])
    chosen = connected_weights(view, BITS, bits, np.random.default_rng(seed))
    assert 1 <= len(chosen) == len(np.unique(chosen))
    assert ((chosen >= 0) & (chosen < N)).all()
    assert BITS[chosen].sum() <= bits or len(chosen) == 1


def test_all_weights_are_taken_where_there_is_room():
    """Tests the whole problem as one neighbourhood."""
    chosen = connected_weights(make_view(), BITS, int(BITS.sum()), np.random.default_rng(0))
    assert sorted(chosen) == list(range(N))


def test_weights_are_connected_along_partners():
    """Tests a chain 0 - 1 - 2 - ... in which each weight knows its neighbours."""
    partner = np.array(
        [[max(i - 1, 0) if i else 1, min(i + 1, N - 1) if i < N - 1 else N - 2] for i in range(N)]
    )
    view = View(np.zeros(N, dtype=np.int32), TOPS, partner, [], [])
    for seed in range(20):
        chosen = np.sort(connected_weights(view, np.ones(N, dtype=int), 6, np.random.default_rng(seed)))
        assert chosen[-1] - chosen[0] == 5


def test_a_group_of_islands_is_filled_up():
    """Tests that weights without further partners do not leave room unused."""
    view = View(np.zeros(N, dtype=np.int32), TOPS, np.array([[i ^ 1] for i in range(N)]), [], [])
    chosen = connected_weights(view, np.ones(N, dtype=int), 7, np.random.default_rng(0))
    assert len(np.unique(chosen)) == 7


def test_every_weight_is_chosen_sometimes():
    """Tests that the first weight is drawn from all."""
    rng, view = np.random.default_rng(0), make_view()
    seen = {int(i) for _ in range(300) for i in connected_weights(view, BITS, 12, rng)}
    assert seen == set(range(N))


# ---- the selector ----


def test_neighbourhoods_of_a_round_are_of_one_kind():
    """Tests the number of choices, and that weights come in increasing order."""
    for count in (1, 2, 5):
        for choices in draws(make_selector(), make_view([make_view(seed=9).codes]), 20, count):
            assert len(choices) == count
            assert len({choice.kind for choice in choices}) == 1
            for choice in choices:
                assert (np.diff(choice.weights) > 0).all()


def test_all_kinds_turn_up():
    """Tests that each kind asked for is drawn, and no other."""
    view = make_view([make_view(seed=9).codes])
    for kinds in (KINDS, ("window",), ("stored",), ("walk", "fusion")):
        found = draws(make_selector(kinds=kinds), view)
        assert {choices[0].kind for choices in found} == set(kinds)


@pytest.mark.parametrize("max_bits", [0, -1])
def test_a_neighbourhood_that_frees_no_weight_is_an_error(max_bits):
    """Tests that rounds without room are refused, and walks, which need none, are not."""
    with pytest.raises(
        InvalidInput, match=rf"needs room for at least one weight bit\. Got max_bits = {max_bits}"
    ):
        make_selector(max_bits=max_bits)
    (choice,) = make_selector(max_bits=max_bits, kinds=("walk",))(make_view(), 1, np.random.default_rng(0))
    assert choice.kind == "walk"


def test_every_round_frees_a_weight():
    """Tests all kinds but walks at the smallest sizes."""
    view = make_view([make_view(seed=9).codes])
    for bits in (1, 2, 3, 20):
        kinds = tuple(kind for kind in KINDS if kind != "walk")
        for choices in draws(make_selector(kinds=(*kinds, "stored"), max_bits=bits), view, 60):
            assert all(len(choice.weights) >= 1 for choice in choices)
            assert all(choice.max_bits == bits for choice in choices)


def test_walks_take_their_heats_in_turn():
    """Tests the order, and that a restored selector goes on with it."""
    selector = make_selector(kinds=("walk",), heats=(3.0, 2.0, 1.0))
    heats = [choice.heat for choices in draws(selector, make_view(), 3) for choice in choices]
    assert heats == [3.0, 2.0, 1.0, 3.0, 2.0, 1.0]


def test_settings_reach_the_choices():
    """Tests the background, and the most examples of those that have any."""
    for choices in draws(make_selector(background="pinned", max_examples=3), make_view(), 50):
        for choice in choices:
            assert choice.kind == "walk" or choice.background == "pinned"
            assert choice.examples in (0, 3)


def test_fusion_takes_weights_in_which_another_solution_differs():
    """Tests that bits go where the two solutions disagree, and nowhere else."""
    view = make_view()
    other = view.codes.copy()
    other[[3, 8, 20]] += 1
    view = View(view.codes, TOPS, view.partner, [view.codes * 1.0, other * 1.0], [view.codes.copy(), other])
    fused = [c for choices in draws(make_selector(), view) for c in choices if c.kind == "fusion"]
    assert fused
    for choice in fused:
        assert choice.weights.tolist() == [3, 8, 20]
        np.testing.assert_array_equal(choice.other, other)


@pytest.mark.parametrize("kinds", [KINDS, ("fusion", "window")])
@pytest.mark.parametrize("same", [False, True])
def test_fusion_without_another_solution_falls_back(same, kinds):
    """Tests no elites, and one that is the current solution; fusion among other kinds, and as the first."""
    view = make_view()
    if same:
        view = View(view.codes, TOPS, view.partner, [view.codes * 1.0], [view.codes.copy()])
    drawn = {choices[0].kind for choices in draws(make_selector(kinds=kinds), view)}
    assert drawn == set(kinds) - {"fusion"}


def test_what_has_paid_is_chosen_more_often():
    """Tests gains against the work that they took."""
    selector, rng = make_selector(kinds=("walk", "window")), np.random.default_rng(0)
    for _ in range(60):
        kind = selector(make_view(), 2, rng)[0].kind
        selector.update(kind, 1.0, 10.0 if kind == "walk" else 100.0)
    after = [selector(make_view(), 2, rng)[0].kind for _ in range(300)]
    assert after.count("walk") > 0.7 * len(after)


def test_a_loss_is_no_gain():
    """Tests that a round that ended higher counts as one that brought nothing."""
    one, two = make_selector(), make_selector()
    one.update("walk", -5.0, 1.0)
    two.update("walk", 0.0, 1.0)
    assert one.state() == two.state()


def test_what_was_learnt_can_be_saved_and_restored():
    """Tests that a restored selector goes on as the first one would have."""
    view = make_view([make_view(seed=9).codes])
    first, second = make_selector(), make_selector()
    draws(first, view, 23)
    saved = first.state()
    second.restore(saved)
    assert second.state() == saved
    again = [
        [(c.kind, c.heat, c.width, c.weights.tolist()) for c in choices]
        for selector in (first, second)
        for choices in draws(selector, view, 10, seed=1)
    ]
    assert again[:10] == again[10:]
    assert second.state() != saved  # what was saved is a copy


def test_the_same_seed_gives_the_same_choices():
    """Tests two selectors of the same history."""
    first, second = (draws(make_selector(), make_view(), 8, seed=4) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert [(c.kind, c.heat, c.weights.tolist()) for c in a] == [
            (c.kind, c.heat, c.weights.tolist()) for c in b
        ]
