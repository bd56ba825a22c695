"""The page in use: clicks, keys, undoing, addresses, what is impossible; and that nothing in it can do harm."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from explored_models import STARS
from html_checks import HOSTILE

SHARES = "() => Array.from(softcount.engine.answer(softcount.state.evidence).shares[0])"
SHOWN = "() => [...document.querySelectorAll('#asked .share')].map(x => x.textContent)"


def bar(name: str, place: int) -> str:
    """Where a level or bar of a column is."""
    return f'.card:has(h3:text-is("{name}")) .bar[data-cell="{place}"]'


@cache
def with_rows() -> str:
    """The page of naive Bayes, with rows to load."""
    explored = STARS["naive_bayes"]()
    return str(explored.model.explore(explored.rows).html)


@pytest.fixture
def page(opened: Any) -> Any:
    return opened(with_rows()).ready()


def test_a_click_is_evidence_and_a_second_click_takes_it_back(page: Any) -> None:
    before = page.run(SHARES)
    page.page.click(bar("colour", 0))
    model = STARS["naive_bayes"]().model
    assert page.run(SHARES) == pytest.approx(list(model.query("animal", {"colour": "blue"}).values()), abs=1e-9)
    assert page.page.get_attribute(bar("colour", 0), "aria-pressed") == "true"
    assert "colour=blue" in page.page.url
    page.page.click(bar("colour", 0))
    assert page.run(SHARES) == before


def test_with_shift_it_is_one_of_several_and_with_alt_not_this_one(page: Any) -> None:
    cells = "() => { const e = softcount.state.evidence[10]; return e && Array.from(e.cells); }"
    page.page.click(bar("colour", 0))
    page.page.click(bar("colour", 2), modifiers=["Shift"])
    assert page.run(cells) == [1, 0, 1, 0]
    page.page.click("#clear")
    page.page.click(bar("colour", 1), modifiers=["Alt"])
    assert page.run(cells) == [1, 0, 1, 1]
    page.page.click("#undo")
    page.page.click("text=one of several")
    page.page.click(bar("colour", 3))
    page.page.click(bar("colour", 1))
    assert page.run(cells) == [0, 1, 0, 1]


def test_dragging_over_bars_is_a_range_and_the_box_takes_a_number(page: Any) -> None:
    model = STARS["naive_bayes"]().model
    page.page.locator(bar("height", 4)).scroll_into_view_if_needed()
    start, end = (page.page.locator(bar("height", place)).bounding_box() for place in (4, 8))
    page.page.mouse.move(start["x"] + start["width"] / 2, start["y"] + 40)
    page.page.mouse.down()
    page.page.mouse.move(end["x"] + end["width"] / 2, end["y"] + 40, steps=4)
    page.page.mouse.up()
    assert page.run("() => softcount.state.evidence[1].cells.slice(3, 10).join('')") == "0111110"
    page.page.fill(".card:has(h3:text-is('height')) input", "171.5")
    page.page.keyboard.press("Enter")
    assert page.run(SHARES) == pytest.approx(list(model.query("animal", {"height": 171.5}).values()), abs=1e-9)
    page.page.fill(".card:has(h3:text-is('visits')) input", "2.5")
    page.page.keyboard.press("Enter")
    assert page.page.get_attribute(".card:has(h3:text-is('visits')) input", "aria-invalid") == "true"


def test_undo_goes_back_step_by_step(page: Any) -> None:
    seen = [page.run(SHARES)]
    for name, place in (("colour", 0), ("height", 5), ("colour", 2)):
        page.page.click(bar(name, place))
        seen.append(page.run(SHARES))
    for expected in seen[-2::-1]:
        page.page.click("#undo")
        assert page.run(SHARES) == expected
    assert page.page.is_disabled("#undo")


def test_the_keyboard_alone_suffices(page: Any) -> None:
    page.page.focus(".card:has(h3:text-is('colour')) .bar")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    model = STARS["naive_bayes"]().model
    second = page.run("() => document.activeElement.querySelector('.name').textContent")
    shares = model.query("colour")
    assert second == sorted(shares, key=lambda level: -shares[level])[1]
    assert page.run(SHARES) == pytest.approx(list(model.query("animal", {"colour": second}).values()), abs=1e-9)
    page.page.keyboard.press("Delete")
    assert not page.run("() => softcount.state.evidence.some(Boolean)")
    page.page.focus(".card:has(h3:text-is('height')) .bar")
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Shift+ArrowRight")
    page.page.keyboard.press("Shift+ArrowRight")
    assert page.run("() => softcount.state.evidence[1].cells.slice(0, 6).join('')") == "001110"
    page.page.keyboard.press("Control+z")
    page.page.keyboard.press("Control+z")
    assert not page.run("() => softcount.state.evidence.some(Boolean)")
    reached = page.run(
        """() => [...document.querySelectorAll('button, input, select, textarea, summary, a')].filter(
          x => !x.disabled && x.offsetParent && x.tabIndex < 0 && !x.closest('.levels, .plot')).length"""
    )
    assert reached == 0


def test_the_address_holds_what_is_given_by_names(page: Any, opened: Any) -> None:
    page.page.click(bar("colour", 1), modifiers=["Alt"])
    page.page.click(bar("height", 5))
    page.page.fill(".card:has(h3:text-is('income')) input", "1234.5")
    page.page.keyboard.press("Enter")
    again = opened(address=page.page.url).ready()
    assert again.run(SHARES) == page.run(SHARES)
    strange = opened(address=page.page.url.split("#")[0], part="#colour=pink&nobody=1&height=[x&=&%zz=1").ready()
    assert not strange.run("() => softcount.state.evidence.some(Boolean)")


def test_the_question_can_be_asked_elsewhere(page: Any) -> None:
    page.page.click(bar("colour", 1))
    page.page.fill(".card:has(h3:text-is('income')) input", "1234.5")
    page.page.keyboard.press("Enter")
    page.page.click(bar("size", 0), modifiers=["Alt"])
    shell, python, left = (
        page.run(f"() => document.getElementById('{id}').textContent") for id in ("shell", "python", "left")
    )
    assert shell == "softcount query model.sc --of animal --given income=1234.5 --given colour=green"
    assert "size" in left
    asked = eval(python.replace('softcount.load("model.sc")', "model"), {"model": STARS["naive_bayes"]().model})
    page.page.click("#undo")
    assert page.run(SHARES) == pytest.approx(list(asked.values()), abs=1e-9)


def test_a_row_of_the_data_can_be_loaded(page: Any) -> None:
    explored = STARS["naive_bayes"]()
    page.page.fill("#row", "3")
    page.page.click("#load")
    assert page.run(SHARES) == pytest.approx(explored.model.predict_proba(explored.rows[2:3])[0].tolist(), abs=1e-9)
    assert len(page.run("() => [...document.querySelectorAll('.chip')].map(x => x.textContent)")) == 11


def test_what_is_impossible_is_named_with_no_more_than_is_needed(opened: Any) -> None:
    """Under ml a level never seen in a class is impossible there; two such levels leave no class."""
    frame = pd.DataFrame(
        {
            "a": ["x", "x", "y", "y"] * 5,
            "b": ["p", "p", "q", "q"] * 5,
            "c": ["u", "v", "u", "v"] * 5,
            "k": [*"iijj"] * 5,
        }
    )
    page = opened(sc.NaiveBayes(estimate="ml").fit(frame, "k").explore().html).ready()
    for name, place in (("c", 0), ("a", 0), ("b", 1)):
        page.page.click(bar(name, place))
    said = page.page.inner_text("#problem")
    assert "a x" in said and "b q" in said and "c u" not in said
    page.page.click("#undo")
    assert page.page.is_hidden("#problem")
    assert page.run(SHARES) == [1, 0]


def test_what_would_tell_most_is_the_information_about_the_class(page: Any) -> None:
    """Against the library's answers for every level of a column."""
    import numpy as np

    model = STARS["naive_bayes"]().model
    page.page.click(bar("size", 0))
    found = page.run("() => softcount.engine.information(softcount.state.evidence).find(x => x.at === 10).bits")
    given = {"size": "L"}
    whole = np.array(list(model.query("animal", given).values()))
    shares = model.query("colour", given)
    bits = 0.0
    for level, share in shares.items():
        after = np.array(list(model.query("animal", {**given, "colour": level}).values()))
        bits += share * float((after * np.log2(after / whole)).sum())
    assert found == pytest.approx(bits, abs=1e-9)


def test_nobody_stumbles_over_it(page: Any, axe: str) -> None:
    """By every rule; what a dark screen changes are colours, and what a narrow one does is where things are."""
    page.page.click(bar("colour", 0))
    page.page.click("summary >> nth=0")
    assert page.grave_faults(axe) == []
    page.page.emulate_media(color_scheme="dark")
    assert page.grave_faults(axe, ["color-contrast"]) == []
    page.page.set_viewport_size({"width": 390, "height": 800})
    assert page.grave_faults(axe, ["color-contrast", "scrollable-region-focusable"]) == []
    assert page.run("() => document.documentElement.scrollWidth <= innerWidth")


def test_dark_and_print_have_colours_of_their_own(opened: Any) -> None:
    html = STARS["mixture"]().model.explore().html
    ground = "() => getComputedStyle(document.body).backgroundColor"
    page = opened(html, color_scheme="dark").ready()
    assert sum(map(int, re.findall(r"\d+", page.run(ground))[:3])) < 150
    page.page.emulate_media(media="print")
    assert sum(map(int, re.findall(r"\d+", page.run(ground))[:3])) == 765
    assert page.page.is_hidden(".tools")


def test_hostile_names_and_cells_are_only_text(opened: Any) -> None:
    names = [name for name in HOSTILE if name.strip()]
    columns = {name: [HOSTILE[(i + j % 4) % len(HOSTILE)] for j in range(40)] for i, name in enumerate(names)}
    frame = pd.DataFrame(columns | {"</script>": ["<b>", "<i>"] * 20})
    html = sc.NaiveBayes(kinds=dict.fromkeys(names, "categorical")).fit(frame, "</script>").explore(frame).html
    page = opened(html).ready()
    tags = set(page.run("() => [...document.body.querySelectorAll('*')].map(x => x.localName)"))
    assert not tags & {"img", "iframe", "svg", "object", "embed", "video", "form", "math", "base", "link", "style", "i"}
    assert page.run("() => document.scripts.length") == 2
    shown = page.run("() => [...document.querySelectorAll('h3')].map(x => x.textContent)")
    assert set(shown) == {*names, "</script>"}
    page.page.click(".bar >> nth=3")
    page.page.fill("#row", "2")
    page.page.click("#load")
    assert opened(address=page.page.url).ready().run(SHARES) == page.run(SHARES)


def test_only_its_own_script_may_run(opened: Any) -> None:
    html = STARS["mixture"]().model.explore().html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    page = opened(
        html.replace("</main>", "</main><script>document.title = 'strange'</script><img src='https://example.org/x'>")
    )
    page.ready()
    assert page.page.title() != "strange"
    assert page.failures  # the browser says what it refused
    page.failures.clear()
    page.strange.clear()


SHOWN_SHARES = "() => [...document.querySelectorAll('#asked .bar')].map(x => [Number(x.dataset.cell), x.title])"


def shown_shares(page: Any) -> list[float]:
    """The class card, in percent, by class."""
    found = sorted(page.run(SHOWN_SHARES))
    return [float(re.search(r": [<>]? ?([\d.]+) %, with", title)[1]) for _, title in found]


def test_the_class_card_shows_what_predict_says_and_of_ranges_the_average(opened: Any) -> None:
    explored = STARS["classifier"]()
    model = explored.model
    page = opened(model.explore(explored.rows).html).ready()
    page.page.click(bar("colour", 0))
    once = model.predict_proba({"colour": ["blue"]})[0]
    assert shown_shares(page) == pytest.approx(100 * once, abs=0.06)
    assert "Other columns: naive Bayes" in page.page.inner_text("#source")
    page.page.click(bar("size", 0), modifiers=["Alt"])
    sizes = [size for size in model.levels_["size"]][1:]
    shares = model.query("size", {"colour": "blue"})
    each = [model.predict_proba({"colour": ["blue"], "size": [size]})[0] for size in sizes]
    expected = sum(shares[size] * own for size, own in zip(sizes, each, strict=True)) / sum(shares[x] for x in sizes)
    assert shown_shares(page) == pytest.approx(100 * expected, abs=0.06)
    assert page.page.locator("#asked .card").count() == 1


def test_a_served_page_asks_what_predict_says(opened: Any) -> None:
    """If the page cannot compute it; otherwise it asks nothing."""
    from threading import Thread

    from msgspec.structs import replace

    from softcount.explore import make_explorer
    from softcount.explore.server import PageServer, make_predictor

    model = STARS["classifier"]().model
    whole = make_explorer(model.fitted_)
    bare = replace(whole, document=whole.document | {"ensemble": None, "asks": True})
    with PageServer(bare, make_predictor(model.fitted_)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        page = opened(address=server.address).ready()
        with page.page.expect_response("**/predict"):
            page.page.click(bar("colour", 0))
        expected = pytest.approx(100 * model.predict_proba({"colour": ["blue"]})[0], abs=0.06)
        for _ in range(50):  # the answer to the first question, of no cells, may still be there
            if shown_shares(page) == expected:
                break
            page.page.wait_for_timeout(100)
        assert shown_shares(page) == expected
        page.page.click(bar("size", 0), modifiers=["Alt"])
        page.page.wait_for_selector("#source:has-text('one value')")
        assert all(url.endswith("/predict") for url in page.strange)
        page.strange.clear()
        server.shutdown()
        thread.join()


def test_numbers_show_the_rows_and_end_where_they_end(opened: Any) -> None:
    """Grey bars are shares of the rows between the edges; none lies outside the least and the largest number."""
    explored = STARS["naive_bayes"]()
    page = opened(explored.model.explore(explored.rows).html).ready()
    found = page.run("() => softcount.engine.variables.find(x => x.name === 'height')")
    cells = explored.rows["height"].dropna()
    assert found["range"] == [cells.min(), cells.max()]
    edges = [-float("inf"), *found["edges"], float("inf")]
    expected = [((cells > low) & (cells <= high)).mean() for low, high in pairwise(edges)]
    assert found["data"] == pytest.approx(expected, abs=1e-6)
    assert found["data"][0] == found["data"][-1] == 0
    shown = page.run("() => [...document.querySelectorAll('.plot')].every(x => x.querySelector('.data'))")
    assert shown


def test_a_page_that_is_too_large_leaves_out_rare_categories_and_says_so(monkeypatch: Any, opened: Any) -> None:
    from softcount.explore import page as pages

    frame = pd.DataFrame({"a": [f"level {i % 400}" for i in range(4000)], "k": [*"ij"] * 2000})
    explored = sc.NaiveBayes(kinds={"a": "categorical"}).fit(frame, "k").explore()
    size = len(explored.html)
    monkeypatch.setattr(pages, "LARGEST", size - 1000)
    html = explored.html
    assert len(html) < size - 1000
    page = opened(html).ready()
    assert "most frequent categories of a" in page.run("() => document.querySelector('.notes').textContent")
    shares = page.run("() => Array.from(softcount.engine.answer(softcount.state.evidence).shares[1])")
    assert sum(shares) == pytest.approx(1.0, abs=1e-9)


def test_many_classes_stand_in_the_order_of_their_probabilities(opened: Any) -> None:
    rng = np.random.default_rng(0)
    classes = [f"class-{k % 9}" for k in range(450)]
    table = {
        "shape": [f"shape {k % 9}" if rng.random() < 0.7 else "plain" for k in range(450)],
        "size": rng.normal(0, 1, 450).tolist(),
    }
    page = opened(sc.NaiveBayes().fit(table, classes).explore().html).ready()
    page.page.click('.card:has(h3:text-is("shape")) .bar:has(.name:text-is("shape 7"))')
    names = page.run(
        "() => [...document.querySelectorAll('#asked .bar')].map(x => x.querySelector('.name').textContent)"
    )
    parts = page.run("() => [...document.querySelectorAll('#asked .bar')].map(x => parseFloat(x.title.split(': ')[1]))")
    assert names[0] == "class-7" and sorted(names) == sorted(set(classes))
    assert parts == sorted(parts, reverse=True)
    page.page.keyboard.press("Tab")
    page.page.locator("#asked .bar").first.focus()
    page.page.keyboard.press("ArrowDown")
    assert page.run("() => document.activeElement.querySelector('.name').textContent") == names[1]


def test_a_bar_that_is_set_leaves_the_histogram_in_sight(opened: Any) -> None:
    size = np.random.default_rng(0).normal(0, 1, 400)
    page = opened(sc.NaiveBayes().fit({"size": size.tolist()}, (size > 0).tolist()).explore().html).ready()
    height = "x => Number(getComputedStyle(x).getPropertyValue('--p'))"
    assert page.page.locator("#cards .plot.seen").count() > 0
    page.page.click(bar("size", 4))
    card = '.card:has(h3:text-is("size"))'
    tallest = max(page.page.eval_on_selector_all(f"{card} .data", f"xs => xs.map({height})"))
    drawn = page.page.eval_on_selector_all(f"{card} .fill", f"xs => xs.map({height})")
    assert tallest > 0.4 and max(drawn) == 1


def test_titles_name_the_table_and_the_target_or_else_the_model() -> None:
    table = {"x": [1.5, 2.5, 3.5, 9.0] * 5, "kind": ["a", "b", "a", "c"] * 5}
    model = sc.NaiveBayes().fit(pd.DataFrame({"x": table["x"]}), pd.Series(table["kind"], name="kind"))
    assert "<h1>kind</h1>" in model.explore().html
    assert "<h1>A mixture of 2 classes</h1>" in sc.Mixture(2, random_state=0).fit(table).explore().html
    assert "<h1>Markov chain</h1>" in sc.MarkovChain().fit(["abab", "baab"]).explore().html


def test_a_click_on_a_characteristic_word_adds_it_to_the_document(opened: Any) -> None:
    documents = ["win a prize now", "see you at lunch"] * 12
    html = sc.NaiveBayes(kinds="text").fit(documents, ["spam", "ham"] * 12).explore().html
    page = opened(html).ready().page
    assert not page.locator("#tools").is_visible() and not page.locator("#informative").is_visible()
    page.get_by_role("button", name="prize").click()
    assert page.locator("textarea").input_value() == "prize"
    assert page.locator(".word.plus").first.is_visible()
