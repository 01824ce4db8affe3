"""Tests of the choice of neighbourhoods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import random_codes, random_problem

from lns.errors import InvalidInput
from lns.rounds import question
from lns.select import KINDS, NOTHING, Selector, View, Wheel

SUB_QUBOS = ("window", "hop", "fusion", "stored")
N = 30  # codes, the last of which is that of the bias
TOPS = np.append(np.full(N - 1, 15), 255).astype(np.int32)
BITS = np.append(np.full(N - 1, 4), 8)


def make_view(others=(), seed=0, effect=None):
    """A view of weights that matter alike unless told otherwise; other solutions are given by their codes."""
    codes = np.random.default_rng(seed).integers(0, 16, N).astype(np.int32)
    effect = np.ones(N) if effect is None else np.asarray(effect, dtype=float)
    return View(codes, TOPS, effect, [other.astype(float) for other in others], list(others))


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


def sets_of_weights(kind, view=None, rounds=400, **options):
    """The weights of many rounds of one kind."""
    selector = make_selector(kinds=(kind,), **options)
    found = draws(selector, make_view() if view is None else view, rounds, count=1)
    return [choices[0].weights for choices in found]


@pytest.mark.parametrize("kind", SUB_QUBOS)
@pytest.mark.parametrize("bits", [1, 2, 5, 20, 200])
def test_weights_are_different_and_fit(kind, bits):
    """Tests that each is chosen once, that there are no more than there is room for, and never none."""
    view = make_view([make_view(seed=9).codes])
    for weights in sets_of_weights(kind, view, 50, max_bits=bits):
        assert 1 <= len(weights) <= bits
        assert (np.diff(weights) > 0).all()
        assert weights[0] >= 0
        assert weights[-1] < N


@pytest.mark.parametrize("kind", ["window", "stored"])
def test_every_weight_is_chosen_sometimes(kind):
    """Tests small neighbourhoods."""
    assert {int(k) for weights in sets_of_weights(kind, max_bits=12) for k in weights} == set(range(N))


def test_windows_have_few_weights_as_often_as_many():
    """Tests sizes from two weights to all, in the middle on a scale of factors, not of differences."""
    sizes = np.array([len(weights) for weights in sets_of_weights("window", rounds=2000, max_bits=N)])
    assert (sizes.min(), sizes.max()) == (2, N)
    assert np.mean(sizes < np.sqrt(2 * (N + 1))) == pytest.approx(0.5, abs=0.05)


def test_windows_prefer_weights_that_matter():
    """Tests single weights, drawn in proportion to what a level of each does."""
    effect = np.zeros(N)
    effect[[3, 17, 29]] = 1.0, 3.0, 6.0
    drawn = np.concatenate(sets_of_weights("window", make_view(effect=effect), 2000, max_bits=1))
    shares = [np.mean(drawn == k) for k in (3, 17, 29)]
    np.testing.assert_allclose(shares, [0.1, 0.3, 0.6], atol=0.05)


def test_weights_that_do_nothing_are_left_out():
    """Tests that there are no more weights than matter, however many there is room for."""
    effect = np.where(np.arange(N) < 4, 1.0, 0.0)
    found = sets_of_weights("window", make_view(effect=effect), max_bits=N)
    assert max(len(weights) for weights in found) == 4
    assert all(weights[-1] < 4 for weights in found)


@pytest.mark.parametrize("bits", [5, N])
def test_a_hop_throws_a_few_weights_and_frees_others(bits):
    """Tests that a tenth is thrown at most, any of them, and that others get bits as far as there is room."""
    (found,) = zip(*draws(make_selector(kinds=("hop",), max_bits=bits), make_view(), 300, 1), strict=True)
    assert {len(choice.thrown) for choice in found} == {1, 2, 3}
    assert {int(k) for choice in found for k in choice.thrown} == set(range(N))
    for choice in found:
        assert not np.intersect1d(choice.thrown, choice.weights).size
        assert len(choice.weights) == min(bits, N - len(choice.thrown))


def test_only_hops_throw_weights():
    """Tests all other kinds."""
    view = make_view([make_view(seed=9).codes])
    for choices in draws(make_selector(kinds=(*KINDS, "stored")), view):
        for choice in choices:
            assert (len(choice.thrown) > 0) == (choice.kind == "hop")


@pytest.mark.parametrize("bits", [3, 4, 11, 20, BITS.sum()])
def test_stored_bits_are_those_of_whole_weights(bits):
    """Tests that as many weights are taken as fit, at least one, and all of them where there is room."""
    for weights in sets_of_weights("stored", rounds=50, max_bits=bits):
        used = BITS[weights].sum()
        assert used <= bits or len(weights) == 1
        assert used > bits - 8 or len(weights) == N


@pytest.mark.parametrize("kind", SUB_QUBOS)
@pytest.mark.parametrize("bits", [1, 3, 7, 100])
def test_no_question_has_more_bits_than_there_is_room_for(kind, bits):
    """Tests the sub-QUBOs that choices lead to."""
    problem = random_problem()
    codes, others = random_codes(problem, 1), [random_codes(problem, 2)]
    points = [problem.point(other) for other in others]
    view = View(codes, problem.tops, problem.effects(), points, others)
    for (choice,) in draws(make_selector(kinds=(kind,), max_bits=bits), view, 20, 1):
        sub = question(problem, codes, choice, np.random.default_rng(0)).sub
        assert 1 <= sub.num_weight_bits <= bits


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
        for choices in draws(make_selector(kinds=SUB_QUBOS, max_bits=bits), view, 60):
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
    view = make_view([view.codes.copy(), other])
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
        view = make_view([view.codes.copy()])
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
        [(c.kind, c.heat, c.thrown.tolist(), c.weights.tolist()) for c in choices]
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


def test_a_hop_leaves_a_weight_that_matters():
    """Tests features that no example has: only the bias has an effect."""
    view = View(np.zeros(4, dtype=np.int32), np.full(4, 15, dtype=np.int32), np.array([0, 0, 0, 0.1]), [], [])
    select = Selector(("hop",), (), max_bits=8, max_examples=0, background="curvature")
    for seed in range(5):
        (choice,) = select(view, 1, np.random.default_rng(seed))
        assert (choice.weights.tolist(), len(choice.thrown)) == ([3], 0)
