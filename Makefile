# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
OUTPUT ?= outputs/demo
UPSTREAM ?=#  a checkout of Transformers, whose tests also cover generation; empty: its source distribution
MUTANTS ?=#  pattern of those to try; empty: all
ARGS   ?=#  anything else of the recipe, e.g. ARGS="--max_steps 300"
# Every published figure was measured with this version. Seeds give the same numbers only within one version of torch.
TORCH  ?= 2.13.0

BIN := .venv/bin
ALL := --editable '.[files,serve,page,detect,train,dev]'

.DEFAULT_GOAL := help
.PHONY: help install lock demo study test test-oldest test-newest coverage fuzz mutants upstream-tests conformance tables docs lint format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed ## create .venv with everything needed to train, test and develop

.venv/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(call locked,constraints.txt) $(BIN)/python -m pip install --quiet $(ALL)
	@touch $@

# The second variable is for setuptools, which pip installs apart to build the package.
locked = PIP_CONSTRAINT=$(1) PIP_BUILD_CONSTRAINT=$(1)

lock: .venv-lock/bin/uv ## pin every package for make install and make test-oldest; ARGS=--upgrade renews all pins
	mkdir -p build
	echo torch==$(TORCH) > build/torch.txt
	$(COMPILE) --universal --constraint build/torch.txt --output-file constraints.txt
	sed -nE '/^install_requires/,/^dev =/ s/^ +([a-z0-9-]+)(\[.*\])?>=([0-9.]+).*/\1==\3/p' setup.cfg | sed /^torch==/d > build/oldest.txt
	$(COMPILE) --python-platform linux --constraint build/torch.txt --constraint build/oldest.txt \
		--output-file constraints-oldest.txt

COMPILE = .venv-lock/bin/uv pip compile setup.cfg --all-extras --python-version 3.10 --no-annotate --quiet \
	--custom-compile-command "make lock" $(ARGS)

.venv-lock/bin/uv:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet uv

demo: install ## mBART to translated documents in minutes, in an invented language
	$(BIN)/python train/demo.py --output_dir $(OUTPUT)/gtransformer $(ARGS)

study: install ## how many updates long inputs take, with and without groups: table and figures, an hour or two
	$(BIN)/python train/studies/invented_language.py outputs/study/corpus --train 500 --valid 25 --test 25 --sentences 80
	$(BIN)/python train/study.py train/studies/invented_input_length.yaml --output outputs/study --jobs 2

PYTEST := -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

test: install ## run the tests, without network
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST)

test-oldest: .venv-oldest/installed ## run the tests with the lowest versions that setup.cfg admits
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 .venv-oldest/bin/python $(PYTEST)

.venv-oldest/installed: setup.cfg pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv --clear .venv-oldest
	$(call locked,constraints-oldest.txt) .venv-oldest/bin/python -m pip install --quiet $(ALL)
	@touch $@

test-newest: .venv-newest/torch-$(TORCH) ## run the tests with the newest releases; TORCH= (empty) for the newest torch, too
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 .venv-newest/bin/python $(PYTEST)

# Transformers comes last, without the ceiling of setup.cfg, about which pip complains.
.venv-newest/torch-$(TORCH): setup.cfg pyproject.toml
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet $(if $(TORCH),torch==$(TORCH)) $(ALL)
	.venv-newest/bin/python -m pip install --quiet --upgrade transformers
	@touch $@

coverage: install ## run the tests and list lines and branches that none of them reaches
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST) \
		--cov modeling_gtransformer --cov train --cov hub_cards --cov-branch --cov-report term-missing:skip-covered

FUZZED := tests/modeling_gtransformer/files $(addprefix tests/modeling_gtransformer/test_,plain_text.py terminology.py \
	processing_gtransformer.py group_tags.py)

fuzz: install ## search for text, files and ids that break what reads them, for about 15 minutes
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m hypothesis --hypothesis-profile=fuzz $(FUZZED)

mutants: install ## list small bugs that no test notices: hours, or MUTANTS="modeling_gtransformer.group_tags*" alone
	$(BIN)/python -m pip install --quiet 'mutmut>=3.8'
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/mutmut run $(if $(MUTANTS),"$(MUTANTS)")
	$(BIN)/mutmut results

upstream-tests: install ## run the common tests of the installed Transformers on these models; UPSTREAM= or downloads them
	$(BIN)/python -m pip install --quiet parameterized
ifeq ($(UPSTREAM),)
	rm -rf build/upstream && mkdir -p build/upstream
	$(BIN)/python -m pip download --quiet --no-deps --no-binary :all: --dest build/upstream \
		"transformers==$$($(BIN)/python -c 'import transformers; print(transformers.__version__)')"
	tar -xzf build/upstream/transformers-*.tar.gz -C build/upstream --strip-components=1
endif
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --override-ini addopts= --disable-warnings \
		--override-ini "pythonpath=. tests/helpers $(or $(UPSTREAM),build/upstream)" tests/upstream/common_model_tests.py

# Parsers that only judge the translated files.
JUDGES := html5lib lxml odfdo pysubs2 ebooklib markdown-it-py

conformance: install ## translate the test files of other programs, from PyPI, npm and Debian (network, npm, apt-get, msgfmt)
	$(BIN)/python -m pip install --quiet $(JUDGES)
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python tests/conformance/conformance.py $(ARGS)

tables: install ## fill the tables of quickstart, benchmarks and results from their files
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

clean: ## remove environments, caches and what demo and study wrote
	rm -rf .venv .venv-* outputs/demo outputs/study site build mutants *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
