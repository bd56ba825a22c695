"""Worked example 14: a hidden node between causes and symptoms saves parameters."""

import numpy as np

import softcount as sc

CAUSES, SYMPTOMS = ["c1", "c2", "c3"], ["s1", "s2", "s3"]
RNG = np.random.default_rng(14)
TABLE = {name: RNG.permutation(np.arange(60) % 3).tolist() for name in [*CAUSES, *SYMPTOMS]}
QUICK = {"n_init": 1, "max_iter": 3, "random_state": 0}


def test_with_the_hidden_node_seventy_eight():
    edges = [*((cause, "Disease") for cause in CAUSES), *(("Disease", symptom) for symptom in SYMPTOMS)]
    net = sc.BayesNet(edges, {"Disease": 3}, **QUICK).fit(TABLE)
    assert net.n_parameters_ == 2 + 2 + 2 + 54 + 6 + 6 + 6 == 78


def test_without_it_seven_hundred_and_eight():
    edges = [(a, b) for place, b in enumerate(SYMPTOMS) for a in [*CAUSES, *SYMPTOMS[:place]]]
    net = sc.BayesNet(edges).fit(TABLE)
    assert net.n_parameters_ == 2 + 2 + 2 + 54 + 162 + 486 == 708
