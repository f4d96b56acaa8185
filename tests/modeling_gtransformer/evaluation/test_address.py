"""Forms of address: which ones a sentence has, and whether documents keep to one."""

import pytest

from modeling_gtransformer.evaluation.address import compare_address, consistency_of_address, forms_of_address


@pytest.mark.parametrize(
    ("sentence", "forms"),
    [
        ("Können Sie mir Ihren Namen sagen?", {"formal"}),
        ("Kannst du mir deinen Namen sagen?", {"informal"}),
        ("Du hast Ihnen geschrieben, und Sie?", {"formal", "informal"}),
        ("Gut, Sie bekommen es.", {"formal"}),
        # At its beginning a sentence has a capital letter for "they" and "her" as well.
        ("Sie sind da. Ihr Haus steht dort.", set()),
        ("Ich gebe sie ihnen und ihr ihre Bücher.", set()),
        ("Das Duell, euphorisch und indirekt.", set()),
    ],
)
def test_forms_of_a_sentence(sentence, forms):
    assert forms_of_address(sentence) == forms


def test_documents_that_mix_forms():
    references = [["Was wollen Sie?", "Ja.", "Wo sind Sie?"], ["Bist du da?", "Wo bist du?"], ["Ich höre dich."]]
    kept = consistency_of_address(references, references)
    assert (kept["formal"], kept["informal"]) == (2, 3)
    # The third document addresses somebody only once, and cannot mix.
    assert kept["mixed"] == {"share": 0, "of": 2, "interval": [0, 0]}
    assert kept["as_reference"] == {"share": 1, "of": 5, "interval": [1, 1]}

    mixing = consistency_of_address([["Was willst du?", "Ja.", "Wo sind Sie?"], *references[1:]], references)
    assert (mixing["mixed"]["share"], mixing["mixed"]["of"]) == (0.5, 2)
    assert (mixing["as_reference"]["share"], mixing["as_reference"]["of"]) == (0.8, 5)
    low, high = mixing["as_reference"]["interval"]
    assert low < 0.8 < high


def test_two_systems_are_compared_document_by_document():
    references = [["Was wollen Sie?", "Wo sind Sie?"]] * 30
    mixing = [["Was willst du?", "Wo sind Sie?"]] * 30
    half = [*references[:15], *mixing[15:]]
    differences = compare_address([references, half], [mixing, half], references)
    # The documents of both seeds: 15 of 60 mix the forms, against 45.
    assert differences["mixed"]["difference"] == -0.5 and differences["mixed"]["p_value"] < 0.01
    assert differences["as_reference"]["difference"] == pytest.approx(0.25)
    same = compare_address([half], [half], references)["mixed"]
    assert (same["difference"], same["interval"], same["p_value"]) == (0, [0, 0], 1)
    with pytest.raises(ValueError, match="has no form of address"):
        compare_address([references], [[["Ja.", "Nein."]] * 30], references)


def test_documents_that_address_nobody():
    counts = consistency_of_address([["Ja."]], [["Nein."]])
    assert counts["mixed"] == counts["as_reference"] == {"share": None, "of": 0, "interval": None}
