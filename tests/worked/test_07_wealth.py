"""Worked example 7: wealth from gender and hours, out of the whole joint table."""

import numpy as np
import pytest

import softcount as sc

JOINT = {
    ("F", "<=40.5", "poor"): 0.253122, ("F", "<=40.5", "rich"): 0.0245895,
    ("F", ">40.5", "poor"): 0.0421768, ("F", ">40.5", "rich"): 0.0116293,
    ("M", "<=40.5", "poor"): 0.331313, ("M", "<=40.5", "rich"): 0.0971295,
    ("M", ">40.5", "poor"): 0.134106, ("M", ">40.5", "rich"): 0.105933,
}  # fmt: skip
TABLE = {"gender": [key[0] for key in JOINT], "hours": [key[1] for key in JOINT]}
WEALTH = [key[2] for key in JOINT]
RICH = {("F", "<=40.5"): 0.088543, ("F", ">40.5"): 0.216133, ("M", "<=40.5"): 0.226704, ("M", ">40.5"): 0.441316}


@pytest.fixture(scope="module")
def net():
    return sc.BayesNet("joint", estimate="ml").fit(TABLE | {"wealth": WEALTH}, "wealth", list(JOINT.values()))


@pytest.mark.parametrize(("gender", "hours"), RICH)
def test_the_chance_to_be_rich(net, gender, hours):
    wanted = RICH[gender, hours]
    assert net.query("wealth", {"gender": gender, "hours": hours})["rich"] == pytest.approx(wanted, abs=5e-7)
    row = net.predict_proba({"gender": [gender], "hours": [hours]})[0]
    assert dict(zip(net.classes_, row, strict=True))["rich"] == pytest.approx(wanted, abs=5e-7)


def test_every_cell_of_the_joint_table_comes_back(net):
    found = net.query(["gender", "hours", "wealth"])
    total = sum(JOINT.values())
    assert found.keys() == JOINT.keys()
    for key, share in JOINT.items():
        assert found[key] == pytest.approx(share / total, rel=1e-12)


def test_margins_and_conditions_are_sums_of_cells(net):
    total = sum(JOINT.values())
    men = sum(share for key, share in JOINT.items() if key[0] == "M")
    assert net.query("gender")["M"] == pytest.approx(men / total, rel=1e-12)
    rich_men = JOINT["M", "<=40.5", "rich"] + JOINT["M", ">40.5", "rich"]
    rich = sum(share for key, share in JOINT.items() if key[2] == "rich")
    assert net.query("gender", {"wealth": "rich"})["M"] == pytest.approx(rich_men / rich, rel=1e-12)


def test_the_joint_has_seven_free_parameters(net):
    assert net.n_parameters_ == 7
    again = sc.BayesNet.joint(TABLE, WEALTH, estimate="ml")
    assert again.n_parameters_ == 7 and len(again.edges_) == 3
    np.testing.assert_array_equal(again.predict(TABLE)[:2], again.predict(TABLE)[:1].repeat(2))
