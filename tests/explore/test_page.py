"""The page of the explorer: its notes, and what a model of documents shows before one is given."""

from __future__ import annotations

import json
import re
from typing import Any

import softcount as sc

DOCUMENTS = ["win a prize now", "see you at lunch", "claim a prize", "lunch at noon"] * 6
LABELS = ["spam", "ham", "spam", "ham"] * 6


def encode_model(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="model">(.*?)</script>', html, re.S)
    assert found is not None
    return json.loads(found[1])


def test_a_leak_is_named_above_the_figures_it_spoils() -> None:
    table = {"alive": ["no", "yes"] * 40, "age": [float(n) for n in range(80)], "survived": ["0", "1"] * 40}
    html = sc.Classifier().fit(table, "survived").explore().html
    shown = re.search(r'<details class="notes" open>.*?</details>', html, re.S)
    assert shown is not None and "Column &#x27;alive&#x27; matches the class exactly" in shown[0]


def test_documents_are_asked_for_and_each_class_shows_its_words() -> None:
    html = sc.NaiveBayes(kinds="text").fit(DOCUMENTS, LABELS).explore().html
    assert "Type or paste a document" in html and "Click a bar" not in html
    ham, spam = encode_model(html)["model"]["columns"][0]["typical"]
    assert "lunch" in ham and "prize" in spam
