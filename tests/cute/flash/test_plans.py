"""Plans of calls of `ops.attention`: later calls with arrays of the same kind look them up."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import attention, plan_cache
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.plan import are_fixed, plans

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import normal

SMALL = Config(tile=(16, 16), warps=1)


@pytest.fixture
def planned(monkeypatch):
    """The calls that make a plan, and those that launch, which compute nothing here."""
    made, launched = [], []
    plan = flash._plan
    monkeypatch.setattr(flash, "_plan", lambda *given: made.append(given) or plan(*given))
    monkeypatch.setattr(flash, "_launch", lambda *given: launched.append(given))
    monkeypatch.setattr(plan_cache, "repeated", lambda *_: None)
    plans.clear()
    return made, launched


def arrays(length=20):
    q = normal(1, length, 2, 32)
    # The same alignment each time, on which a plan depends.
    whole = np.empty(2 * q.size + 32, np.float16)
    start = -whole.__array_interface__["data"][0] % 32 // 2
    out = whole[start : start + q.size].reshape(q.shape)
    out[...] = q
    return out


def test_a_second_call_looks_its_plan_up(planned):
    made, launched = planned
    for _ in range(3):
        attention(arrays(), arrays(), arrays(), causal=True)
    assert (len(made), len(launched)) == (1, 3)
    attention(arrays(), arrays(), arrays())  # other options
    attention(arrays(24), arrays(24), arrays(24))  # other extents
    assert (len(made), len(launched)) == (3, 5)


def test_numbers_are_told_apart(planned):
    made, launched = planned
    for scale in (0.5, 0.25, 0.5):
        attention(arrays(), arrays(), arrays(), scale=scale)
    factors = [given[12] for given in launched]
    assert len(made) == 2 and factors[0] == factors[2] == 2 * factors[1]


def test_launches_get_tuples_without_tuples(planned):
    _, launched = planned
    bias = np.zeros((20, 20), np.float32)
    attention(arrays(), arrays(), arrays(), bias=bias, return_lse=True)
    (given,) = launched
    inner = [x for one in given if isinstance(one, tuple) for x in one]
    assert len(inner) > 6 and not any(isinstance(x, tuple) for x in inner)
    assert {type(one) for one in given if isinstance(one, tuple)} == {tuple}


def test_plans_share_their_static_arguments(planned):
    _, launched = planned
    for length in (20, 24):
        attention(arrays(length), arrays(length), arrays(length), window=(3, None))
    one, other = (given[-4:-2] for given in launched)
    assert all(x is y for x, y in zip(one, other, strict=True))


def test_what_may_change_has_no_key(planned):
    made, _ = planned
    assert are_fixed((0.5, (3, None), SMALL))
    assert not are_fixed((np.array(0.5), None))
    assert not are_fixed(((3, [1]), None))
    scale = np.array(0.5)
    for number in (0.5, 0.25):
        scale[...] = number
        attention(arrays(), arrays(), arrays(), scale=scale)
    attention(*[arrays()] * 3, mask=lambda b, h, q, k: k <= q)
    attention(*[arrays()] * 3, mask=lambda b, h, q, k: k >= q)
    assert len(made) == 4 and not plans


def test_results_of_planned_calls():
    q, k, v = normal(1, 20, 2, 40), normal(1, 24, 1, 40, seed=1), normal(1, 24, 1, 24, seed=2)
    q, k, v = (np.pad(x, [(0, 0)] * 3 + [(0, 64 - x.shape[3])]) for x in (q, k, v))
    first = attention(q, k, v, config=SMALL)
    again = attention(q, k[:, ::-1], v[:, ::-1], config=SMALL)  # a copy, whose plan is not kept
    np.testing.assert_allclose(np.float32(again), np.float32(first), atol=4e-3)
    out = np.full_like(q, np.nan)
    for _ in range(2):
        assert attention(q, 2 * k, v, config=SMALL, out=out) is out
    wanted = attention(2 * q, k, v, config=SMALL)
    np.testing.assert_allclose(np.float32(out), np.float32(wanted), atol=4e-3)


def test_a_planned_call_checks_that_out_is_apart():
    q, k = normal(1, 20, 2, 32), normal(1, 20, 2, 32, seed=1)
    both = normal(2, 20, 2, 32, seed=2)
    attention(q, k, both[1:], config=SMALL, out=both[:1])
    with pytest.raises(DSLTypeError, match="out shares memory with v"):
        attention(q, k, both[:1], config=SMALL, out=both[:1])


@pytest.mark.parametrize(
    ("known", "given", "message"),
    [
        ({"window": (5, 3)}, {"window": (5.0, 3)}, r"window=\(5.0, 3\)"),
        ({"window": (1, 3)}, {"window": (True, 3)}, r"window=\(True, 3\)"),
        ({"scale": 1.0}, {"scale": True}, "scale=True"),
        ({"causal": True}, {"causal": 1}, "causal=1"),
        ({"return_lse": True}, {"return_lse": "no"}, "return_lse='no'"),
    ],
)
def test_a_known_plan_is_none_of_an_option_that_only_equals_its_own(planned, known, given, message):
    attention(arrays(), arrays(), arrays(), **known)
    with pytest.raises(DSLTypeError, match=message):
        attention(arrays(), arrays(), arrays(), **given)


@pytest.mark.parametrize("name", ["q", "k", "v", "bias", "out"])
def test_masked_arrays_are_refused_beside_a_known_plan(planned, name):
    given = {"q": arrays(), "k": arrays(), "v": arrays(), "bias": np.zeros((1, 2, 20, 20))}
    given["bias"], given["out"] = given["bias"].astype(np.float32), arrays()
    attention(**given)
    given[name] = np.ma.masked_greater(given[name], 0.5)
    with pytest.raises(DSLTypeError, match="masked array"):
        attention(**given)
