"""Writes docs/contributing/first-contact.md: real tables, the command for each, and what it says.

python scripts/first_contact.py SHARED_DATA > docs/contributing/first-contact.md
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from softcount.cli import main
from softcount.demo import table_path

TABLES = (
    ("titanic/titanic_seaborn.csv", "--target survived"),
    ("titanic/titanic_seaborn.csv", "--target survived --kind alive=ignore"),
    ("titanic/titanic_seaborn.csv", "--target survived --kind alive=ignore --model naive-bayes"),
    ("r_datasets/airquality.csv", "--target Month"),
    ("r_datasets/Pima.tr.csv", "--target type"),
    ("r_datasets/Pima.te.csv", "--target type"),
    ("r_datasets/Pima.tr2_missing.csv", "--target type"),
    ("r_datasets/iris_fisher.csv", "--target Species"),
    ("r_datasets/Titanic_table.csv", "--target Survived --weight Freq"),
    ("r_mclust/banknote.csv", "--target Status"),
    ("r_mclust/diabetes.csv", "--target class"),
    ("uci_vote/house-votes-84.data", "--no-header --target c1"),
    ("uci_car/car.data", "--no-header --target c7 --model naive-bayes"),
    ("uci_heart/processed.cleveland.data", "--no-header --target c14"),
    ("uci_credit_approval/crx.data", "--no-header --target c16"),
    ("uci_soybean/soybean-large.data", "--no-header --target c1 --model naive-bayes"),
    ("uci_promoters/promoters.data", "--no-header --target c1 --model naive-bayes"),
    ("r_datasets/faithful.csv", ""),
    ("r_datasets/faithful.csv", "--classes 3"),
    ("r_datasets/galaxies.csv", ""),
    ("r_datasets/ruspini.csv", ""),
    ("r_datasets/precip.csv", ""),
    ("lca_poLCA/carcinoma.csv", ""),
    ("lca_poLCA/gss82.csv", ""),
    ("lca_poLCA/cheating.csv", ""),
    ("uci_soybean/soybean-small.data", "--no-header --kind c36=ignore"),
    ("titanic/titanic_seaborn.csv", ""),
    ("r_datasets/HairEyeColor_table.csv", "--target Sex --weight Freq"),
    ("r_datasets/xclara.csv", ""),
    ("uci_mushroom/agaricus-lepiota.data", "--no-header --target c1 --model naive-bayes"),
    ("uci_soybean/soybean-large.test", "--no-header --target c1 --model naive-bayes"),
    ("sms_spam/SMSSpamCollection", "--no-header --target c1 --model naive-bayes"),
    ("uci_adult/adult.data.gz", "--no-header --target c15 --model naive-bayes"),
    ("nist_strd_univariate/Michelso.txt", "--skip-lines 60 --no-header"),
    ("nist_strd_univariate/Mavro.txt", "--skip-lines 60 --no-header"),
    ("nist_strd_univariate/Lew.txt", "--skip-lines 60 --no-header"),
)
BUNDLED = (
    ("load_iris", "--target target"),
    ("load_wine", "--target target"),
    ("load_breast_cancer", "--target target"),
    ("load_breast_cancer", "--kind target=ignore"),
    ("load_iris", "--kind target=ignore"),
    ("load_wine", "--kind target=ignore"),
    ("load_digits", "--target target --model naive-bayes"),
    ("load_diabetes", "--kind target=ignore"),
)
KEPT = ("accuracy ", "log-loss ", "BIC ", "log-likelihood ", "worse than")
LONGEST = 600


def lines_of(page: str) -> list[str]:
    """The heading, figures and notes of a page, the columns whose kind is told by more than plain looking first."""
    found, in_notes = [], False
    for line in page.splitlines():
        in_notes = line == "Notes" or (in_notes and line.startswith("  "))
        words = line.strip()
        if words.split() == ["accuracy", "log-loss", "weight"]:
            continue
        headed = line.startswith(("Classifier", "Naive Bayes", "A mixture"))
        guessed = words.split()[1:2] in (["amount"], ["count"], ["identifier"])
        if headed or guessed or (in_notes and line != "Notes") or words.startswith(KEPT):
            found.append(words if len(words) <= LONGEST else words[: LONGEST - 3] + "...")
    return found


def told(data: str, shown: str, options: str, folder: str) -> list[str]:
    """What one fit says, or its refusal."""
    words = ["fit", data, *shlex.split(options), "-o", str(Path(folder) / "model.sc")]
    done = CliRunner().invoke(main, words)
    said = lines_of(done.stdout) if done.exit_code == 0 else done.stderr.strip().splitlines()[:3]
    command = f"$ softcount fit {shown} {options}".rstrip()
    return ["```", command, *(line.replace(data, shown) for line in said), "```", ""]


def bundled(folder: str) -> list[tuple[str, str, str]]:
    """scikit-learn's small tables as files, with and without their classes."""
    from sklearn import datasets

    found = []
    for name, options in BUNDLED:
        frame = getattr(datasets, name)(as_frame=True).frame
        path = Path(folder) / f"{name.removeprefix('load_')}.csv"
        frame.to_csv(path, index=False)
        found.append((str(path), path.name, options))
    return found


def run(shared: Path) -> None:
    """Print the page."""
    print("# First contact\n")
    print("Some forty tables as they come, the commands for each, and what they say: the heading, the figures on rows")
    print(
        "held out, columns whose kind is worth a word, and all notes. Written by `scripts/first_contact.py`; "
        "the largest"
    )
    print("tables are not here.\n")
    with tempfile.TemporaryDirectory() as folder:
        files = [(str(shared / name), Path(name).name, options) for name, options in TABLES if (shared / name).exists()]
        own = [(str(table_path()), table_path().name, options) for options in ("--target type", "")]
        for data, shown, options in [*files, *bundled(folder), *own]:
            print("\n".join(told(data, shown, options, folder)), flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
