"""Who signed a bundle, and whether the signature is over its sums. No figure here was measured."""

from __future__ import annotations

from commands import bundle
from tests.helpers.forged_bundles import differs, forged, replaced


def test_a_signed_bundle_says_which_key_signed_and_whose_it_is_where_that_is_known(
    clone, tmp_path, capsys, key
):
    path = bundle.pack(clone, bundle.Packing(out=tmp_path / "b.tar.gz", key=key))
    bundle.verify(path, None)
    said = capsys.readouterr().out
    assert "signature: good, ED25519 key SHA256:" in said and "is not known" in said
    public = key.with_suffix(".pub").read_text().split()
    signers = tmp_path / "signers"
    signers.write_text(f"a-lab {public[0]} {public[1]}\n")
    bundle.verify(path, signers)
    assert "of a-lab" in capsys.readouterr().out
    signers.write_text("")
    assert "is of none of the signers" in differs(path, capsys, signers)


def test_a_signature_over_other_sums_is_no_good_one(clone, tmp_path, capsys, key):
    path = bundle.pack(clone, bundle.Packing(out=tmp_path / "b.tar.gz", key=key))
    change = replaced("page/report.md", "gpudyno ·", "Gpudyno ·")
    assert "SHA256SUMS.sig: 'SHA256SUMS.sig' is no good signature" in differs(
        forged(path, tmp_path, change), capsys
    )


def test_an_unsigned_bundle_is_refused_where_a_signer_is_asked_for(good, tmp_path, capsys):
    signers = tmp_path / "signers"
    signers.write_text("")
    assert "there is no signature" in differs(good, capsys, signers)
