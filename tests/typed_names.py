"""What mypy knows of the public names; checked with `mypy`, never run. An unused `type: ignore` is an error there."""

import softcount as sc

sc.NaiveBayes(prior=1)
sc.NaiveBayes(prio=1)  # type: ignore[call-arg]
sc.Mixture(n_components="auto", random_state=0)
sc.HiddenMarkov(n_state=2)  # type: ignore[call-arg]
sc.families.Normal(tied="classes")
sc.families.Normal(tie="classes")  # type: ignore[call-arg]
sc.priors.expert_prior({}, None)
sc.priors.Beta(5, 3)
print(sc.conditions.above(3).pieces)
print(sc.Normal)  # type: ignore[attr-defined]
print(sc.BayesNot)  # type: ignore[attr-defined]
