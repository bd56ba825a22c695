"""Pages: the same content on a terminal and off it, aligned, and safe whatever the data says."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.stand_in import StandIn, mixture
from cli.terminal import Terminal, on_a_terminal
from softcount.evaluate.scores import Evaluation
from softcount.learn.record import FitRecord
from softcount.pictures.text import cell_width
from softcount.report.answers import ExplainedRow, add_reasons, query_page
from softcount.report.classes import model_page
from softcount.report.fit import FitOutcome, fit_page, fit_record, full_page
from softcount.report.page import Page, jsonable, render_text, show_page
from softcount.report.quality import schema_page

EVALUATION = Evaluation(
    how="5-fold cross-validation",
    n_rows=8,
    accuracy=0.875,
    log_loss=0.25,
    baseline_accuracy=0.75,
    baseline_log_loss=0.5623,
    folds=[],
    balanced_accuracy=0.8333,
    baseline_balanced_accuracy=0.5,
    reliability=(),
    brier=0.2,
)


def report(fitted: StandIn, evaluation: object = EVALUATION) -> FitOutcome:
    fitted.record = FitRecord(evaluation=evaluation)
    return FitOutcome(fitted, 8, "my model.sc", "a b.csv")


def pages() -> list[Page]:
    fitted = StandIn()
    return [
        fit_page(report(fitted)),
        fit_page(report(mixture(), None)),
        full_page(report(fitted)),
        full_page(report(mixture(), None)),
        model_page(fitted),  # type: ignore[arg-type]
        schema_page(fitted.schema, 8, fitted.missing),
        query_page("colour", {"sort": "a"}, {fitted.levels["colour"][1]: 0.25, "blue": 0.75}),
    ]


def test_no_page_off_a_terminal_holds_a_control_character():
    for page in pages():
        text = render_text(page)
        assert "\\x1b[31m" in text or "blue" in text or "colour" in text
        assert all(char.isprintable() for char in text.replace("\n", ""))


def test_markup_and_escapes_in_the_data_are_shown_on_a_terminal_not_obeyed(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_a_terminal(fit_page(report(StandIn())), monkeypatch, columns=200)
    assert "\x1b[31m" not in shown
    assert "\\x1b[31m" in shown
    assert "[bold]" in shown


def test_no_color_leaves_no_colour(monkeypatch):
    page = Page()
    page.heading("Classes")
    page.grid(["class"], [["a"]])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in on_a_terminal(page, monkeypatch, columns=200)


def test_a_dumb_terminal_gets_plain_text(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    show_page(fit_page(report(StandIn())), stream)
    assert stream.getvalue() == render_text(fit_page(report(StandIn())))


CELLS = st.text(st.characters(exclude_characters="|"), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_every_second_column_begins_at_the_same_place(rows):
    page = Page()
    page.grid(["first", "|second"], [(one, "|" + two) for one, two in rows])
    starts = {cell_width(line[: line.index("|")]) for line in render_text(page).splitlines()}
    assert len(starts) == 1


def test_the_fit_page_says_what_was_promised():
    text = render_text(full_page(report(StandIn())))
    for promised in (
        "from 8 rows",
        "a different value in every row",
        "5-fold cross-validation",
        "87.5 %",
        "75.0 %",
        "83.3 %",
        "0.25",
        "0.5623",
        "Columns that matter most",
        "2 missing cells",
        "1 column left out: id",
        "my model.sc",
        "softcount explain 'my model.sc' 'a b.csv' --row 1",
    ):
        assert promised in text, promised


def test_probabilities_worse_than_the_baseline_are_said_to_be():
    assert "overconfident" not in render_text(fit_page(report(StandIn())))
    worse = replace(EVALUATION, log_loss=0.6)
    assert "overconfident" in render_text(fit_page(report(StandIn(), worse)))


def test_the_columns_that_matter_most_come_first():
    text = render_text(fit_page(report(StandIn())))
    part = text[text.index("Columns that matter most") :]
    assert part.index("size") < part.index("colour")


def test_a_mixture_says_how_many_starts_agreed_and_how_large_its_classes_are():
    text = render_text(full_page(report(mixture(), None)))
    assert "3 of 10 initialisations reached the best" in text
    assert "class 0" in text
    assert "75.0 %" in text


def test_a_lonely_best_start_suggests_more():
    fitted = mixture()
    fitted.agreed = (1, 10)
    assert "--starts 100" in render_text(fit_page(report(fitted, None)))


def test_the_share_of_missing_cells_is_of_all_rows():
    line = next(
        line for line in render_text(schema_page(StandIn().schema, 8, StandIn.missing)).splitlines() if "colour" in line
    )
    assert line.endswith("25.0 %")


def test_a_model_of_many_classes_has_a_card_for_each():
    fitted = mixture()
    fitted.n_groups, fitted.shares = 6, StandIn().shares.repeat(3) / 3
    fitted.describe = lambda key: [f"{key} in {group}" for group in range(6)]  # type: ignore[method-assign]
    text = render_text(model_page(fitted))  # type: ignore[arg-type]
    assert "How class 5 differs (8.3 % of the rows)" in text
    assert "size in 5" in text


def test_the_document_holds_what_the_page_says():
    document = jsonable(fit_record(report(StandIn())))
    assert document["evaluation"]["accuracy"] == 0.875
    assert document["evaluation"]["baseline"]["accuracy"] == 0.75
    assert document["saved"] == "my model.sc"
    assert [entry["column"] for entry in document["influence"]] == ["size", "colour"]


def test_the_reasons_are_ordered_by_weight_and_add_up():
    import pyarrow as pa

    heads = {"(row)": [3], "(class)": ["a"], "(against)": ["b"]}
    line = {**heads, "(prior)": [1.0], "size": [-0.25], "colour": [2.0], "(total)": [2.75]}
    page = Page()
    add_reasons(page, ExplainedRow(pa.table(line).to_pylist()[0], {"size": "1.5", "colour": "red"}))
    text = render_text(page)
    assert "Row 3: a rather than b" in text
    assert [line.split()[0] for line in text.splitlines()[2:]] == ["colour", "(prior)", "size", "(total)"]
    assert "+2.75" in text
    assert "odds 15.6 to 1" in text


def test_a_numeric_answer_gives_mean_spread_and_quantiles():
    answer = SimpleNamespace(mean=2.0, variance=9.0, quantile=lambda level: 100 * level)
    text = render_text(query_page("age", {}, answer))
    for figure in ("mean", "2", "standard deviation", "3", "5% quantile", "95% quantile", "95"):
        assert figure in text
