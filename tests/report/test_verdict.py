"""A verdict is computed from a number and its target: each claim of each paper turns when it is fed a wrong one."""

from __future__ import annotations

import json
import math

import pytest

from rtmms.studies import boyer2015_claims as boyer2015
from rtmms.studies import boyer2017_claims as boyer2017
from rtmms.studies import khalil2007, porez2014, qu2024
from rtmms.view import tables as beside
from rtmms.view.tables import rows_as_table
from rtmms.view.verdict import AGREES, DIFFERS, OURS, PICTURE, Claim, Target, about, above, at_least, at_most
from tests.every import every

CLAIMS = [
    *(("boyer2015", claim) for claim in (*boyer2015.CLAIMS, *boyer2015.WHEELS)),
    *(("boyer2017", claim) for claim in (*boyer2017.FISH, *boyer2017.WINGS)),
    *(("khalil2007", claim) for claim in khalil2007.CLAIMS),
    *(("porez2014", claim) for claim in (*porez2014.CLAIMS, porez2014.CLOCK)),
    *(("qu2024", claim) for claim in qu2024.CLAIMS),
]
NAMED = {f"{paper}-{claim.key}": claim for paper, claim in CLAIMS}


def inside(target: Target) -> float:
    """A number that agrees."""
    if math.isinf(target.least):
        return target.max_value - 0.1 * abs(target.max_value)
    return target.least + 1.0 if math.isinf(target.max_value) else 0.5 * (target.least + target.max_value)


@every("claim", NAMED.values())
def test_a_wrong_number_turns_the_verdict(claim: Claim) -> None:
    target = claim.target
    if target is None:
        assert {claim.row(value).verdict for value in (0.0, 1e9, math.nan)} == {claim.unjudged}
        assert claim.unjudged not in (AGREES, DIFFERS)
        return
    good = inside(target)
    assert claim.row(good).verdict == AGREES
    wrong = [math.nan]
    wrong += [target.least] if target.beyond else []
    wrong += [] if math.isinf(target.least) else [target.least - 1e-3 * (abs(target.least) + 1e-6), -math.inf]
    wrong += (
        [] if math.isinf(target.max_value) else [target.max_value + 1e-3 * (abs(target.max_value) + 1e-6), math.inf]
    )
    for value in wrong:
        row = claim.row(value)
        assert row.verdict == row.as_data()["verdict"] == DIFFERS
        assert row.failed is claim.must
        assert claim.row(value, case="a reading").verdict == DIFFERS


@every("claim", NAMED.values())
def test_a_number_of_the_paper_s_own_agrees_with_it_and_one_far_off_is_explained(claim: Claim) -> None:
    if not isinstance(claim.paper, float):
        return
    assert claim.row(claim.paper).verdict == AGREES
    if not claim.must and claim.target is not None and not math.isinf(claim.target.least):
        assert claim.why, "a distance above 10 % wants a sentence"
        assert claim.why in claim.row(1.2 * claim.paper).remarks
        assert claim.why not in claim.row(claim.paper).remarks


def test_targets() -> None:
    assert about(10.0).holds(9.0001)
    assert not about(10.0).holds(8.9)
    assert not at_most(1.0).holds(math.nan)
    assert not above(0.0).holds(0.0)
    assert [target.range_text for target in (about(10.0), at_most(2.0), at_least(3.0), above(0.0))] == [
        "9 to 11", "at most 2", "at least 3", "above 0",
    ]  # fmt: skip


MUST = Claim("a", "an identity", "holds", "m", at_most(1e-9), ".0e", must=True)
FREE = Claim("b", "a length", 2.0, "m", about(2.0), ".1f", note="always printed", why="printed where it differs")
CURVE = Claim("c", "a curve", "drawn", "m", None, ".2f")


def test_the_words_of_a_tight_target_have_the_digits_of_its_width() -> None:
    assert Target(0.7259539483 - 7e-9, 0.7259539483 + 7e-9).range_text == "0.7259539483 +- 7e-09"
    assert Target(0.9, 1.1).range_text == "0.9 to 1.1"


def test_the_status_is_1_only_where_what_must_hold_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert beside.print_rows("p", [MUST.row(1e-12), FREE.row(9.0), CURVE.row(math.nan)], [], False) == 0
    assert beside.print_rows("p", [MUST.row(1e-3)], [], False) == 1
    assert "an identity: 1e-03 m, must be at most 1e-09" in capsys.readouterr().err


def test_json_of_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    beside.print_rows("p", [FREE.row(9.0), CURVE.row(math.nan, case="one")], [], True)
    free, curve = json.loads(capsys.readouterr().out, parse_constant=lambda word: 1 / 0)["rows"]
    assert free == {
        "name": "a length", "case": "", "where": "", "ours": 9.0, "shown": "9.0", "paper": 2.0, "unit": "m",
        "tolerance": {"least": 1.8, "most": 2.2, "beyond": False}, "verdict": DIFFERS, "must_hold": False,
        "remark": "always printed; printed where it differs",
    }  # fmt: skip
    assert curve["ours"] is curve["tolerance"] is None
    assert curve["verdict"] == PICTURE


def test_a_table_reports_where_a_case_differs_and_each_remark_once() -> None:
    rows = [FREE.row(2.1, case="one"), FREE.row(9.0, case="two")]
    text = rows_as_table("t", rows).text()
    assert "2.1  9.0 differs  1, 2" in text
    assert text.count("always printed") == text.count("printed where it differs") == 1
    plain = rows_as_table("t", [FREE.row(9.0), Claim("d", "own", "-", unjudged=OURS).row(1.0)]).markdown()
    assert "| a length | 2 | 9.0 | m | 1.8 to 2.2 | differs | 1, 2 |" in plain
    assert "| ours alone |" in plain
