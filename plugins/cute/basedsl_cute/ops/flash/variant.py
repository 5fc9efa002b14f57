"""The variant of an attention kernel: which keys a query sees, and how its scores are changed.

Kernels work on tiles of (queries, keys). A `Variant` is static: its windows bound the keys that a
tile of queries visits, its functions are traced into the kernel for single scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError, logical_not, with_article
from basedsl_cute import arch
from basedsl_cute.ops.derivative import derivative, opaque
from basedsl_cute.ops.flash.bounds import Truth, truth_of
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.flash.dependence import is_difference, is_plain
from basedsl_cute.ops.flash.extremes import pairs_of
from basedsl_cute.ops.flash.spans import span_of

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


@dataclass(frozen=True)
class Variant:
    """The static description of an attention.

    Query i and key j are counted from the beginning of their sequences, and the diagonal of query
    i is key i + `shift`: 0 with `from_start`, else keys - queries, so that the last query stands
    at the last key. A query sees keys from diagonal - `left` to diagonal + `right`, None for no
    bound. `softcap` c makes a score s into c tanh(s / c), `score` and `mask` are functions of the
    user's. `alibi` and `sinks` say that there is a slope and a sink's logit for each head, `bias`
    that there is a number for each score.
    """

    left: int | None = None
    right: int | None = None
    from_start: bool = False
    softcap: float | None = None
    score: Captured | None = None
    mask: Captured | None = None
    alibi: bool = False
    sinks: bool = False
    bias: bool = False

    @property
    def is_scored(self) -> bool:
        """True if scores are changed one by one."""
        return self.softcap is not None or self.score is not None or self.alibi or self.bias

    @property
    def has_only_windows(self) -> bool:
        """True if nothing is computed for single scores."""
        return not self.is_scored and self.mask is None

    def most_keys(self, queries: int, keys: int) -> int:
        """The most of `keys` keys that the queries of a sequence, so many, see by the windows."""
        if self.from_start and self.right is not None:
            keys = min(keys, queries + self.right)
        if self.left is None or (self.from_start and self.right is None):
            return keys
        return min(keys, self.left + queries + (self.right or 0))

    @property
    def is_unbounded(self) -> bool:
        """True if each query sees all keys."""
        return self.left is None and self.right is None and self.mask is None


@dataclass
class Sequence:
    """The lengths of one sequence, and where its queries and keys begin in packed tensors."""

    queries: Any
    keys: Any
    first_query: Any = 0
    first_key: Any = 0


class Place:
    """The place of a tile's scores: the sequence, its number, and what a score depends on there."""

    def __init__(self, variant, sequence, batch, slopes, bias, captured):
        self.variant, self.sequence, self.batch = variant, sequence, batch
        self.slopes, self.bias = slopes, bias
        self.user_score, self.user_mask = (
            None if fn is None else fn.traced(captured) for fn in (variant.score, variant.mask)
        )
        self.arrays = pairs_of(captured or (), variant)
        # If functions get places inside of the sequence alone: those need that read memory there.
        self.mask_inside = self.score_inside = True
        self.is_relative = False  # if nothing but the difference of query and key goes into scores
        self.shift = cute.Int32(0)
        if not variant.from_start:
            self.shift = cute.Int32(sequence.keys - sequence.queries)

    def keys_of(self, first, last):
        """The keys [begin, end) that queries `first` to `last` may see by the windows."""
        begin, end = cute.Int32(0), cute.Int32(self.sequence.keys)
        if self.variant.left is not None:
            begin = cute.max(begin, first + self.shift - self.variant.left)
        if self.variant.right is not None:
            end = cute.min(end, last + self.shift + self.variant.right + 1)
        return begin, cute.max(begin, end)

    def queries_of(self, first, last):
        """The queries [begin, end) that may see keys `first` to `last` by the windows."""
        begin, end = cute.Int32(0), cute.Int32(self.sequence.queries)
        if self.variant.right is not None:
            begin = cute.max(begin, first - self.shift - self.variant.right)
        if self.variant.left is not None:
            end = cute.min(end, last - self.shift + self.variant.left + 1)
        return begin, cute.max(begin, end)

    def is_whole(self, first, last, key, keys):
        """True if queries `first` to `last` see each of `keys` keys from `key` on."""
        variant = self.variant
        whole = key + keys <= self.sequence.keys
        if variant.left is not None:
            whole = whole & (key >= last + self.shift - variant.left)
        if variant.right is not None:
            whole = whole & (key + keys - 1 <= first + self.shift + variant.right)
        return whole

    @cute.jit
    def shows_whole(self, area, key, keys: cute.Constexpr):
        """True if all queries of `area`, heads and queries, each (first, last), see each of `keys`
        keys from `key` on, by the windows and the mask.
        """
        heads, queries = area
        whole = self.is_whole(queries[0], queries[1], key, keys)
        if cute.const_expr(self.user_mask is not None):
            whole = whole and not self.truth(heads, queries, (key, key + keys - 1)).false
        return whole

    def truth(self, heads, queries, keys):
        """If the mask of the user's may be true, and false, in a tile of heads, queries and keys,
        each (first, last), that may reach beyond the sequence.
        """
        if self.user_mask is None:
            return Truth(True, False)
        sequence = self.sequence
        queries = tuple(cute.min(query, sequence.queries - 1) for query in queries)
        keys = tuple(cute.min(key, sequence.keys - 1) for key in keys)
        areas = (heads, queries, keys)
        return truth_of(self.user_mask, self.batch, *areas, arrays=self.arrays)

    @cute.jit
    def tile_before(
        self, number, low, heads, queries, keys: cute.Constexpr, step: cute.Constexpr = 1
    ):
        """The last tile of `keys` keys, of each `step`-th from `number` down to `low`, that the
        mask lets queries see; a number below `low` if there is none. All threads of a warp ask for
        the same: each looks at a tile.
        """
        if cute.const_expr(self.user_mask is not None):
            lane = arch.lane_idx() * step
            found = cute.Int32(0)
            while found == 0 and number >= low:
                own = cute.max(number - lane, low)
                shown = self.truth(heads, queries, (own * keys, own * keys + keys - 1)).true
                found = arch.vote_ballot_sync((number - lane >= low) & shown)
                # Those behind the first that is found.
                behind = arch.popc(~found & (found - 1)) if found != 0 else 32
                number -= behind * step
        return number

    @cute.jit
    def look_at_tiles(self, top, low, area, keys: cute.Constexpr):
        """A bit for each of 32 tiles of `keys` keys, from `top` down to `low`: if the mask may let
        the queries of an area see one of its keys, and if it may hide one. Each lane looks at a
        tile.
        """
        shown, cut = cute.Int32(0), cute.Int32(0)
        if low * keys < self.sequence.keys:  # else functions get no place
            own = cute.max(top - arch.lane_idx(), low)
            heads, queries = area
            truth = self.truth(heads, queries, (own * keys, own * keys + keys - 1))
            shown = arch.vote_ballot_sync((top - arch.lane_idx() >= low) & truth.true)
            whole = self.is_whole(queries[0], queries[1], own * keys, keys)
            hidden: Any = logical_not(whole) | truth.false
            cut = arch.vote_ballot_sync(hidden)
        return top, shown, cut

    @cute.jit
    def next_tile(self, number, looked, low, area, keys: cute.Constexpr):
        """The last tile from `number` down to `low` that queries see, a number below `low` if there
        is none, if they see it whole, and what was looked at, which begins as `look_at_tiles`.
        """
        top, shown, cut = looked
        behind = top - number
        rest = shown & (cute.Int32(-1) << behind) if behind < 32 else 0
        while rest == 0 and top - 32 >= low:
            top, shown, cut = self.look_at_tiles(top - 32, low, area, keys)
            rest = shown
        place = arch.popc(~rest & (rest - 1))
        is_found = rest != 0
        whole = is_found and (cut >> place) & 1 == 0
        return cute.where(is_found, top - place, low - 1), whole, (top, shown, cut)

    def spans(self, rows, key):
        """For each of some (head, query) the keys [begin, end) that it sees, begin None for no
        bound; None if the mask's are not known to be a span. `key` is any.
        """
        found = []
        windows = self.spans_of_windows(rows)
        for (head, query), (first, end) in zip(rows, windows, strict=True):
            begin = cute.Int32(0) if first is None else first
            if self.user_mask is not None:
                place = self._inside(query, key)
                given = self.batch, head, place[0], place[1], self.arrays
                span = span_of(self.user_mask, *given)
                if span is None:
                    return None
                if span.low is not None:
                    first = cute.Int32(cute.min(cute.max(span.low, begin), end))
                if span.high is not None:
                    end = cute.Int32(cute.max(cute.min(span.high, end), begin))
            found.append((first, end))
        return found

    def spans_of_windows(self, rows):
        """For each of some (head, query) the keys [begin, end) that the windows let it see, begin
        None for no bound.
        """
        ends = [self.keys_of(query, query) for _, query in rows]
        return [(None if self.variant.left is None else begin, end) for begin, end in ends]

    def sees(self, head, query, key):
        """True if a query sees a key."""
        variant = self.variant
        seen = key < self.sequence.keys
        if variant.left is not None:
            seen = seen & (key >= query + self.shift - variant.left)
        if variant.right is not None:
            seen = seen & (key <= query + self.shift + variant.right)
        return seen if self.user_mask is None else seen & self.shows(head, query, key)

    def shows(self, head, query, key):
        """True if the mask of the user's shows a query a key, of a tile that may reach beyond the
        sequence.
        """
        place = self._inside(query, key) if self.mask_inside else (query, key)
        mask: Any = self.user_mask
        shown = mask(self.batch, head, *place)
        if not isinstance(shown, bool | cute.Boolean):
            raise DSLTypeError(
                f"a mask returns {with_article(type(shown))}",
                hint="return a comparison: True where the query sees the key",
            )
        return shown

    def score(self, score, head, query, key, apart=None):
        """The score of a query and a key, made from their scaled product. `apart` is their
        difference if the place is relative: LLVM finds out then which pairs have the same.
        """
        cap = self.variant.softcap
        if cap is not None:
            score = cute.math.tanh(score * (1 / cap)) * cap
        score = self._biased(score, head, query, key)
        if self.user_score is not None:
            place = (query, key if apart is None else query - apart)
            if self.score_inside:
                place = self._inside(query, key)
            score = _as_score(self.user_score(score, self.batch, head, *place))
        return score

    def look(self, head, query, key):
        """Find out what functions make of the query and the key: those that read no memory there,
        and do not divide by them, need no place inside of the sequence, which costs two minima.
        They are traced at the given place, moved inside.
        """
        for fn, kind in ((self.user_mask, "mask"), (self.user_score, "score")):
            if fn is not None:
                place = [x + arch.thread_idx()[0] * 0 for x in self._inside(query, key)]
                first = (cute.Float32(0.0),) if kind == "score" else ()
                fn(*first, self.batch, head, *place)
                roots = [x.ir_value() for x in place]
                setattr(self, f"{kind}_inside", not is_plain(roots))
                self.is_relative = kind == "score" and is_difference(*roots)

    def score_and_slope(self, score, head, query, key):
        """The score, and its derivative by the scaled product."""
        slope = cute.Float32(1.0)
        cap = self.variant.softcap
        if cap is not None:
            bent = cute.math.tanh(score * (1 / cap))
            score, slope = bent * cap, 1.0 - bent * bent
        score = self._biased(score, head, query, key)
        if self.user_score is not None:
            place = self._inside(query, key)
            score = opaque(score)
            made = _as_score(self.user_score(score, self.batch, head, *place))
            score, slope = made, slope * derivative(made, score)
        return score, slope

    def _biased(self, score, head, query, key):
        if self.variant.alibi:
            away = cute.Float32(key - query - self.shift)
            score = score - cute.Float32(self.slopes[head]) * cute.where(away < 0, -away, away)
        if self.variant.bias:
            query, key = self._inside(query, key)
            score = score + cute.Float32(self.bias[query, key, head, self.batch])
        return score

    def _inside(self, query, key):
        """The query and key for functions of the user's, which may index captured tensors: tiles
        reach beyond the ends of sequences.
        """
        last = [cute.max(end - 1, 0) for end in (self.sequence.queries, self.sequence.keys)]
        return [cute.max(cute.min(query, last[0]), 0), cute.min(key, last[1])]


def _as_score(made):
    """A score that a function of the user's returned, as a number of the kernel."""
    if isinstance(made, bool | cute.Boolean) or not isinstance(made, (Real, cute.Numeric)):
        raise DSLTypeError(
            f"a score returns {with_article(type(made))}",
            hint="return the changed score, a number; `mask` says which keys a query sees",
        )
    return cute.Float32(made)
