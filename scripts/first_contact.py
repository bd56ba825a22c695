"""Writes docs/contributing/first-contact.md: real tables, the command for each, and the verdict and notes it prints.

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
    ("titanic/titanic_seaborn.csv", ""),
    ("r_datasets/airquality.csv", "--target Month"),
    ("r_datasets/Pima.tr2_missing.csv", "--target type"),
    ("r_datasets/iris_fisher.csv", "--target Species"),
    ("r_datasets/Titanic_table.csv", "--target Survived --weight Freq"),
    ("r_mclust/banknote.csv", "--target Status"),
    ("uci_vote/house-votes-84.data", "--no-header --target c1"),
    ("uci_heart/processed.cleveland.data", "--no-header --target c14"),
    ("uci_credit_approval/crx.data", "--no-header --target c16"),
    ("uci_soybean/soybean-large.data", "--no-header --target c1 --model naive-bayes"),
    ("uci_promoters/promoters.data", "--no-header --target c1 --model naive-bayes"),
    ("r_datasets/faithful.csv", ""),
    ("r_datasets/ruspini.csv", ""),
    ("lca_poLCA/gss82.csv", ""),
    ("sms_spam/SMSSpamCollection", "--no-header --target c1 --model naive-bayes"),
    ("nist_strd_univariate/Michelso.txt", "--skip-lines 60 --no-header"),
)
LAST = ("Classes", "Columns that matter", "Characteristic words", "Next")
"""How the heading begins at which an excerpt ends."""
INTRO = """# First contact

Real tables, the command for each, and the verdict and the notes that `softcount fit` prints. Compare this page before
and after a change to reading, to kinds of columns or to notes. `scripts/first_contact.py` writes it.
"""


def excerpt(page: str) -> list[str]:
    """The lines of a page before what the columns and classes look like."""
    lines = page.splitlines()
    end = next(at for at, line in enumerate(lines) if line.startswith(LAST))
    return [line for line in lines[:end] if line]


def run(shared: Path) -> None:
    """Print the page."""
    print(INTRO)
    files = [(shared / name, options) for name, options in TABLES if (shared / name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        for path, options in [*files, (table_path(), "--target type")]:
            words = ["fit", str(path), *shlex.split(options), "-o", str(Path(folder) / "model.sc")]
            done = CliRunner().invoke(main, words)
            lines = excerpt(done.stdout) if done.exit_code == 0 else done.stderr.strip().splitlines()[:3]
            print("```", f"$ softcount fit {path.name} {options}".rstrip(), *lines, "```\n", sep="\n", flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
