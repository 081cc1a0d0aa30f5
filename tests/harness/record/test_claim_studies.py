"""Who published a study: found by name and by id, once in all files."""

from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.record.published.claim_set import read_claims
from tests.harness.record.test_claims import put
from tests.helpers.here import claims_here, load_claims

STUDY = """
[[studies]]
id = "007"
name = "Lee 2024"
title = "Nets"
source = "https://example.org/nets"
"""


def test_a_study_is_found_by_its_name_and_by_its_id_and_keeps_its_id_where_it_has_no_name(tmp_path):
    found = load_claims(put(tmp_path, STUDY))
    assert found.study_name("007") == "Lee 2024"
    assert found.study("Lee 2024") is found.study("007") is found.studies[0]
    assert found.study_name("008") == "008" and found.study("008") is None


def test_a_study_that_is_named_twice_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"two studies are called '(007|Lee 2024)'"):
        load_claims(put(tmp_path, STUDY + STUDY))


def test_the_claims_of_one_study_are_had_by_its_name_and_by_its_id():
    found = claims_here()
    assert found.of("Perbos 2019") == found.of("004-perbos")
    assert {claim.study for claim in found.of("Perbos 2019")} == {"004-perbos"}


def test_every_study_of_the_clone_has_a_name_of_its_own():
    found = claims_here()
    named = {claim.study: found.study_name(claim.study) for claim in found.claims}
    assert named["004"] == "Bhutani 2019" and named["002"] == "UniLu 2019"
    assert {study.id for study in found.studies} == named.keys()


def test_a_file_in_doubt_is_left_out_alone_and_named_and_refused_where_all_are_needed(tmp_path):
    root = put(tmp_path, STUDY)
    folder = root / "results" / "claims"
    (folder / "mine.toml").write_text("x = 1\n")
    (folder / "twin.toml").write_text(STUDY)
    found = read_claims(root)
    assert [study.name for study in found.studies] == ["Lee 2024"]
    assert [str(problem)[:30] for problem in found.problems] == [
        "results/claims/mine.toml: 'x':",
        "results/claims/twin.toml: two ",
    ]
    with pytest.raises(UserError, match="unknown key"):
        load_claims(root)
