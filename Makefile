# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
MODEL  ?=#  an mBART checkpoint: a directory or a Hub name; empty: a tiny one is pretrained
TRAIN  ?=#  documents to fine-tune on; empty: an invented language pair
VALID  ?=#  documents to validate and score on
OUTPUT ?= outputs/demo
MUTANTS ?=#  pattern of those to try; empty: all
ARGS   ?=#  anything else of the recipe, e.g. ARGS="--source_column en --target_column de"

BIN := .venv/bin
OWN := $(if $(MODEL),--model $(MODEL)) $(if $(TRAIN),--train $(TRAIN)) $(if $(VALID),--valid $(VALID))

.DEFAULT_GOAL := help
.PHONY: help install demo study test coverage fuzz mutants upstream-tests tables docs lint format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed ## create .venv with everything needed to train, test and develop

.venv/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[files,serve,detect,train,dev]'
	@touch $@

demo: install ## mBART to translated documents in minutes; MODEL= TRAIN= VALID= OUTPUT= ARGS= for your own
	$(BIN)/python train/demo.py --output $(OUTPUT) $(OWN) $(ARGS)

study: install ## how many updates long inputs take, with and without groups: table and figures, an hour or two
	$(BIN)/python train/invented_language.py outputs/study/corpus --train 500 --valid 25 --test 25 --sentences 80
	$(BIN)/python train/study.py train/studies/invented_input_length.yaml --output outputs/study --jobs 2

test: install ## run the tests, without network
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

coverage: install ## run the tests and list lines and branches that none of them reaches
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile \
		--cov modeling_gtransformer --cov train --cov hub_cards --cov-branch --cov-report term-missing:skip-covered

FUZZED := tests/modeling_gtransformer/files $(addprefix tests/modeling_gtransformer/test_,plain_text.py terminology.py \
	processing_gtransformer.py group_tags.py)

fuzz: install ## search for text, files and ids that break what reads them, for about 15 minutes
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m hypothesis --hypothesis-profile=fuzz $(FUZZED)

mutants: install ## list small bugs that no test notices: hours, or MUTANTS="modeling_gtransformer.group_tags*" alone
	$(BIN)/python -m pip install --quiet 'mutmut>=3.8'
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/mutmut run $(if $(MUTANTS),"$(MUTANTS)")
	$(BIN)/mutmut results

upstream-tests: install ## run the common tests of the installed Transformers on these models; downloads them
	rm -rf build/upstream && mkdir -p build/upstream
	$(BIN)/python -m pip install --quiet parameterized
	$(BIN)/python -m pip download --quiet --no-deps --no-binary :all: --dest build/upstream \
		"transformers==$$($(BIN)/python -c 'import transformers; print(transformers.__version__)')"
	tar -xzf build/upstream/transformers-*.tar.gz -C build/upstream --strip-components=1
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --override-ini addopts= --disable-warnings \
		--override-ini "pythonpath=. tests/helpers build/upstream" tests/upstream/common_model_tests.py

tables: install ## fill the tables of README, benchmarks and results from the results files
	$(BIN)/python -m docs.fill_tables

docs: install ## build the documentation into site/
	HF_HUB_OFFLINE=1 $(BIN)/sphinx-build --fail-on-warning --fresh-env --write-all --quiet -d build/doctrees -c docs . site

lint: install ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove .venv, caches and what demo and study wrote
	rm -rf .venv outputs/demo outputs/study site build mutants *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
