"""What a server answers: the library's own numbers, for every kind of model, to whoever asks and however many do."""

import numpy as np
import pytest

import softcount as sc
from explained import contributions
from served_rows import POINTS, TABLE, TEXTS, app_of, asked, body, infer, outputs, tensor
from softcount.errors import DataError, ModelFileError
from softcount.serve.models import open_by_name, open_served


def table_body(**more) -> bytes:
    return body(
        tensor("age", TABLE["age"]),
        tensor("sex", TABLE["sex"], "BYTES"),
        tensor("deck", TABLE["deck"], "INT64"),
        **more,
    )


@pytest.mark.parametrize("name", ["titanic", "chosen", "found", "tree"])
def test_probabilities_and_labels_are_those_of_the_library(app, paths, name):
    model, found = sc.load(paths[name]), outputs(infer(app, name, table_body()))
    assert (found["probabilities"] == model.predict_proba(TABLE)).all()
    assert (found["label"] == model.predict(TABLE)).all()
    assert (found["classes"][found["probabilities"].argmax(axis=1)] == found["label"]).all()


def test_columns_without_names_are_called_by_their_places(app, paths):
    content = body(tensor("1", POINTS[:, 1].tolist()), tensor("0", POINTS[:, 0].tolist()))
    found = outputs(infer(app, "points", content))
    assert (found["probabilities"] == sc.load(paths["points"]).predict_proba(POINTS)).all()
    for name in ("centres", "named"):
        places = ("0", "1") if name == "centres" else ("x", "y")
        content = body(*(tensor(key, POINTS[:, at].tolist()) for at, key in enumerate(places)))
        found, model = outputs(infer(app, name, content)), sc.load(paths["centres"])
        assert (found["label"] == model.predict(POINTS)).all()
        assert (found["distances"] == model.transform(POINTS)).all()


def test_documents_are_one_column_of_text(app, paths):
    found = outputs(infer(app, "spam", body(tensor("text", [*TEXTS, None], "BYTES"))))
    assert found["label"][:4].tolist() == ["spam", "ham", "spam", "ham"]
    assert (found["probabilities"] == sc.load(paths["spam"]).predict_proba([*TEXTS, None])).all()


def test_a_document_that_is_a_path_is_only_words(app, paths):
    path = paths["titanic"]
    found = outputs(infer(app, "spam", body(tensor("text", [path, "/etc/passwd"], "BYTES"))))
    assert (found["probabilities"] == sc.load(paths["spam"]).predict_proba([path, "/etc/passwd"])).all()


@pytest.mark.parametrize("name", ["titanic", "chosen", "found", "tree"])
def test_reasons_are_those_of_the_library(app, paths, name):
    found = outputs(infer(app, name, table_body(), "explain"))
    explained = sc.load(paths[name]).explain(TABLE)
    frame = contributions(explained)
    wanted = np.stack([frame[key].to_numpy() for key in frame.column_names], axis=1)
    assert found["columns"].tolist() == frame.column_names
    assert (found["contributions"] == wanted).all()
    assert list(map(str, found["label"])) == list(map(str, explained["(class)"]))
    assert list(map(str, found["against"])) == list(map(str, explained["(against)"]))
    assert (found["label"] != found["against"]).all()


def test_k_means_gives_no_reasons(app):
    response = infer(app, "named", body(tensor("x", [1.0]), tensor("y", [1.0])), "explain")
    assert response.status_code == 400 and "no explanations" in response.json()["error"]


def test_null_is_missing_and_what_is_not_sent_or_not_known_is_said(app, paths):
    response = infer(app, "titanic", body(tensor("age", [None, 30.0]), tensor("sex", [None, "x"], "BYTES")))
    model = sc.load(paths["titanic"])
    with pytest.warns(sc.DataWarning):
        wanted = model.predict_proba({"age": [None, 30.0], "sex": [None, "x"]})
    assert (outputs(response)["probabilities"] == wanted).all()
    note = response.json()["parameters"]["note"]
    assert "not sent, taken as missing: 'deck'" in note and "never seen in training, in 'sex' (1)" in note


def test_only_the_outputs_that_are_wanted_come_and_the_id_comes_back(app):
    response = infer(app, "titanic", table_body(id="7", outputs=[{"name": "label"}]))
    assert [x["name"] for x in response.json()["outputs"]] == ["label"] and response.json()["id"] == "7"
    response = infer(app, "titanic", table_body(outputs=[{"name": "odds"}]))
    assert response.status_code == 400 and "'probabilities'" in response.json()["error"]


def test_metadata_and_health(app, paths):
    names = ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/titanic", "/v2/models/titanic/ready")
    server, live, ready, model, model_ready = (x.json() for x in asked(app, *(("GET", name, None) for name in names)))
    assert server["name"] == "softcount" and server["version"] == sc.__version__
    assert live == {"live": True} and ready == {"ready": True}
    assert model_ready == {"name": "titanic", "ready": True}
    assert [(x["name"], x["datatype"]) for x in model["inputs"]] == [
        ("age", "FP64"),
        ("sex", "BYTES"),
        ("deck", "INT64"),
    ]
    assert [x["name"] for x in model["outputs"]] == ["label", "probabilities", "classes"]
    assert [x["shape"] for x in model["outputs"]] == [[-1], [-1, 2], [2]]


def test_two_hundred_at_once_get_the_same_bytes_as_one_after_another(app, paths):
    rows = len(TABLE["age"])
    bodies = []
    for place in range(200):
        at = [place % rows, (7 * place) % rows, (11 * place + 3) % rows][: 1 + place % 3]
        cells = {key: [column[i] for i in at] for key, column in TABLE.items()}
        kinds = {"age": "FP64", "sex": "BYTES", "deck": "INT64"}
        bodies.append(body(*(tensor(key, cells[key], kinds[key]) for key in cells)))
    models = ["titanic", "chosen", "found", "tree"]
    routes = ["infer", "infer", "explain"]
    requests = [("POST", f"/v2/models/{models[i % 4]}/{routes[i % 3]}", content) for i, content in enumerate(bodies)]
    together = [response.content for response in asked(app, *requests)]
    alone = [asked(app, request)[0].content for request in requests]
    assert together == alone and len(set(alone)) > 50


def test_metrics_count_requests_by_route_model_and_status(paths):
    app = app_of([paths["titanic"]])
    infer(app, "titanic", table_body())
    infer(app, "titanic", b"no")
    infer(app, "nobody", table_body())
    text = asked(app, ("GET", "/metrics", None))[0].text
    assert 'softcount_requests_total{route="infer",model="titanic",code="200"} 1\n' in text
    assert 'softcount_requests_total{route="infer",model="titanic",code="400"} 1\n' in text
    assert 'softcount_requests_total{route="infer",model="",code="404"} 1\n' in text
    assert f'softcount_rows_total{{model="titanic"}} {len(TABLE["age"])}\n' in text
    assert 'softcount_request_seconds_count{route="infer"} 3\n' in text
    assert "softcount_requests_under_way 1\n" in text


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: sc.MarkovChain().fit([["a", "b", "a"]]), "MarkovChain"),
        (lambda: sc.Histogram().fit(POINTS[:, :1]), "Histogram"),
        (lambda: sc.BayesNet.chow_liu({"a": ["x", "y"] * 5, "b": ["u", "v"] * 5}), "without a class"),
        (lambda: sc.BagOfWords().fit(TEXTS), "BagOfWords"),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(tmp_path, model, said):
    model().save(tmp_path / "other.sc")
    with pytest.raises(ModelFileError, match=said):
        open_served(str(tmp_path / "other.sc"))


def test_two_models_of_one_name_are_refused(paths, tmp_path):
    sc.load(paths["titanic"]).save(tmp_path / "titanic.sc")
    with pytest.raises(DataError, match="would both be called 'titanic'"):
        open_by_name([paths["titanic"], str(tmp_path / "titanic.sc")])
