# Proving test-set contamination, reproducibly. `make help` lists the targets.
#
#   profile --> corpus --+--> models/contaminated --> stores/contaminated --+
#               canaries |                                                  +--> scores --> notebooks --> tables
#               tokenizer+--> models/clean ---------> stores/clean ---------+                   |         figures
#                                                                                            manifest --> report
#
# Every target is a file. Expensive stages write build/<profile>/; results/ is made from them alone.
# The rules below say how a file is made. What it is made from stands in build/<profile>/rules.mk, which
# Python writes: from the profile, the table of notebooks and the imports of every stage.
# Works with GNU make 3.81 (macOS) and later.

PROFILE ?= laptop
PYTHON  ?= python3
VENV  := .venv
BIN   := $(VENV)/bin
SETUP := $(VENV)/.installed
P     := profiles/$(PROFILE).yaml
B     := build/$(PROFILE)
# Results of the default profile lie in results/, those of others beside them, never over them.
R     := $(if $(filter laptop,$(PROFILE)),results,results/$(PROFILE))
KNOWN := $(notdir $(basename $(wildcard profiles/*.yaml)))
$(if $(filter 1,$(words $(CURDIR))),,$(error the path '$(CURDIR)' has a blank in it, which make cannot handle: move the repository))
$(if $(filter 1,$(words $(VENV))),,$(error VENV is '$(VENV)': give the path of one environment, without a blank))
$(if $(filter $(PROFILE),$(KNOWN)),,$(error unknown PROFILE '$(PROFILE)': choose one of $(KNOWN)))

# On several GPUs: make reproduce LAUNCH="accelerate launch --multi_gpu" (docs/how-to/reproduce.md).
# Small models gain little from a second thread: two steps at a time, each on half of the cores.
# Numbers depend on the threads in their last digits, so they are the same whatever runs beside.
CORES := $(shell getconf _NPROCESSORS_ONLN)
SMALL := $(if $(LAUNCH),,$(filter quick laptop,$(PROFILE)))
JOBS  ?= $(if $(SMALL),2,1)
OMP_NUM_THREADS ?= $(if $(SMALL),$(shell expr \( $(CORES) + 1 \) / 2))
# No built-in rules (-r): make would look for a thousand sources that a file might be compiled from.
MAKEFLAGS += -r $(if $(filter 0,$(MAKELEVEL)),-j$(JOBS))

PIP   := $(BIN)/python -m pip install --disable-pip-version-check
STAGE := $(BIN)/python -m reproduction
ON    := --profile $(P) --build $(B)
DRY   := $(findstring n,$(firstword -$(MAKEFLAGS)))
# The stages that make is going to run, written before the first of them; each uses it for its step number.
STEPS  = $(if $(DRY),,$(eval STEPS := $(shell MAKEFLAGS='$(MAKEFLAGS)' \
  $(MAKE) -n $(MAKECMDGOALS) 2>/dev/null | sed -n 's/.*-m reproduction //p' > $(B)/steps; echo $(B)/steps))$(STEPS))
# Bars on terminals alone: a pipe gets plain lines.
BARS  := $(shell test -t 2 || echo TQDM_DISABLE=1)
ENV    = STEPS=$(STEPS) $(BARS) $(addprefix OMP_NUM_THREADS=,$(OMP_NUM_THREADS))
RUN    = @$(ENV) $(STAGE)
# Every pass over a model: LAUNCH starts it in all processes, by a program of the environment or another.
SPREAD = @$(ENV) $(if $(LAUNCH),PATH="$(abspath $(BIN)):$$PATH" $(LAUNCH) -m reproduction,$(STAGE))
# Files that a rule writes beside its target: if one is gone, the rule runs again.
missing = $(if $(filter-out $(wildcard $(1)),$(1)),again)
.DELETE_ON_ERROR:
TARGETS := help setup reproduce smoke plan rehearse audit start stores scores notebooks explore seminar study frontier benchmark attack test lint format report compare reference docs lab lock clean distclean
.PHONY: again $(TARGETS)
# A target without a slash is none of the files: a slip is refused before anything is installed.
$(foreach goal,$(MAKECMDGOALS),$(if $(findstring /,$(goal))$(filter $(goal),$(TARGETS)),,$(error unknown target '$(goal)': `make help` lists them)))

help: ## list the targets
	@echo "make TARGET [PROFILE=laptop]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile
	@echo "Profiles: laptop (the default), quick (tiny), pocket (a released model), open"
	@echo "and paper (the papers' models, on GPUs); docs/how-to/reproduce.md has all."
# The stores come before passes that could begin without them: the notebook that takes longest waits
# for them, and would otherwise run last, alone. Where not everything is made, nothing is added.
EARLIER = $(if $(filter reproduce scores notebooks report stores,$(MAKECMDGOALS)),$(STORES))
# Prerequisites, and the stamps that say which code and which parts of the profile have changed.
UNRULED := help setup smoke plan rehearse audit start explore seminar lab study frontier benchmark attack test lint format compare docs lock clean distclean
include $(if $(filter-out $(UNRULED),$(or $(MAKECMDGOALS),help)),$(B)/rules.mk)
$(B)/rules.mk: $(P) requirements.lock $(shell find src profiles notebooks data/registry.yaml data/models.yaml data/published docs/measurements \
    -type f ! -path '*/__pycache__/*') | $(if $(DRY),,$(SETUP))
	@$(STAGE) rules $(ON) --results $(R)
reproduce: $(B)/finished ## every table, figure and the report, from scratch or what is there
	$(if $(OPEN),@$(BIN)/python -m webbrowser -t "file://$(abspath $(R)/report/report.html)")
smoke: ## the same with the quick profile (a few minutes)
	@$(MAKE) --no-print-directory reproduce PROFILE=quick
plan: $(SETUP) ## what PROFILE=open downloads, reads and takes, before it does
	@$(STAGE) costs $(ON)
rehearse: $(SETUP) ## PROFILE=open on stand-ins from a local hub (numbers mean nothing)
	@$(BIN)/python scripts/rehearsal/run.py
audit: $(SETUP) ## p-values of MODELS="a b" on SETS="x y": names, hub ids or paths
	@mkdir -p results
	@$(BIN)/contamination audit $(SETS) $(addprefix --model ,$(MODELS)) --store build/audit --csv results/audit.csv --html results/audit.html
start: PAGE := 00_start_here
start: lab ## the argument in ten minutes, without training: notebook 00
explore: PAGE := explore_mmlu
explore: lab ## MMLU and single test sets in JupyterLab, as results/explorer.html
seminar: PAGE := seminar
seminar: lab ## the seminar, in JupyterLab (guide: docs/seminar-guide.md)
lab: $(SETUP) ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks$(addprefix /,$(PAGE:=.ipynb))
study: ## compare all statistics on canary sets, two seeds (a few hours)
	@for p in study study-2; do $(MAKE) --no-print-directory PROFILE=$$p results/$$p/notebooks/05_beyond_the_paper.ipynb || exit; done
	$(BIN)/python benchmarks/power_study.py study study-2
frontier: ## candidate tests at 1, 2 and 4 copies, two seeds (a day)
	@for p in frontier frontier-2; do $(MAKE) --no-print-directory PROFILE=$$p build/$$p/models/contaminated/training.json && \
	  $(BIN)/python benchmarks/frontier/run.py train $$p --widths 64 512 && \
	  $(BIN)/python benchmarks/frontier/run.py score $$p --widths 64 256 512 --what plain white_box && \
	  $(BIN)/python benchmarks/frontier/run.py score $$p --what context triples || exit; done
	$(BIN)/python benchmarks/frontier/run.py tables "$$(date -I)"
benchmark: $(SETUP) build/harness/.installed ## tokens per second beside other engines
	$(BIN)/python benchmarks/throughput.py --harness-python build/harness/bin/python
attack: $(SETUP) ## thousands of bad records, templates, stores and servers, and kills
	$(BIN)/python benchmarks/attack/run.py
scores: $(SCORES) ## every pass over models, and no notebook
notebooks: $(EXECUTED) ## every notebook, and what it needs
report: $(R)/report/report.html ## only the report and the slides (and what they need)
stores: $(R)/manifest.json ## renew data/stores, which notebook 00 reads, from a run of PROFILE
	$(RUN) ship-stores $(ON) --results $(R) --stores data/stores
compare: $(SETUP) ## numbers of this run beside the reference, or OTHER=results/PROFILE
	$(RUN) compare --results $(R) $(addprefix --other ,$(OTHER))
reference: $(SETUP) ## renew results/reference/ and the numbers of README.md from a run
	$(RUN) reference --results $(R) $(OUTPUTS)
	$(BIN)/python scripts/readme.py
docs: build/docs/index.html ## the documentation as a site: build/docs/index.html
setup: $(SETUP) $(if $(QUARTO),$(VENV)/.quarto) ## the environment of the exact lock; QUARTO=1 adds Quarto
# Tests start dozens of programs: where Python may not keep what it has compiled, each compiles it again.
test: $(SETUP) ## the test suite
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --dist worksteal $(PYTEST)
lint: $(SETUP) ## lint, formats, types, the layers of the packages and plainness
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/plain.py
format: $(SETUP) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
lock: $(SETUP) ## resolve requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra reproduce --extra dev --universal --python-version 3.11 --upgrade \
	  --fork-strategy fewest --no-header --no-annotate --quiet --output-file requirements.new
	@# Without the CUDA packages that torch pins itself: they would be forced on machines without a GPU.
	grep -vE '^(nvidia-|cuda-|triton)' requirements.new > requirements.lock
	rm requirements.new
clean: ## remove the results and intermediate files of PROFILE
	rm -rf $(B) $(addprefix $(R)/,tables figures notebooks report explorer.html comparison.csv manifest.json variables.yml)
# An environment that VENV names is its owner's: only what make has written there itself is removed.
OURS := $(if $(filter $(CURDIR)/.venv,$(abspath $(VENV))),.venv,$(VENV)/.installed $(VENV)/.quarto)
distclean: ## remove all that make has made, .venv too; what git holds stays
	rm -rf build $(filter-out results/reference,$(wildcard results/* results/.[!.]*)) $(OURS) src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# --- how each file is made: `$*` is the name of a model or notebook ---------------------------------
$(B)/corpus/corpus.json: ; $(RUN) corpus $(ON)
$(B)/models/%/training.json: ; $(SPREAD) train $* $(ON)
$(B)/stores/%.json: ; $(SPREAD) score $* $(ON)
# Passes over models start on all processes; a notebook runs in one and reads what they stored.
$(B)/scores/%.json: ; $(SPREAD) measure notebooks/$*.ipynb $(ON)
$(R)/notebooks/%.ipynb: ; $(RUN) notebook notebooks/$*.ipynb $(ON) --results $(R)
$(R)/explorer.html: ; $(RUN) explorer $(ON) --results $(R)
$(R)/manifest.json: ; $(RUN) manifest $(ON) --results $(R)
# Rendered again when Quarto has come or gone: the one in the environment, else the one on PATH.
RENDERER := $(firstword $(wildcard $(BIN)/quarto) $(shell command -v quarto) pandoc)
RENDERED := $(if $(wildcard $(B)/renderer),$(shell cat $(B)/renderer),$(RENDERER))
$(R)/report/report.html: $(wildcard paper/_quarto.yml paper/*.qmd paper/*.bib paper/*.css paper/*.typ) $(if $(filter $(RENDERER),$(RENDERED)),,again)
	$(RUN) report --results $(R)
	@echo $(RENDERER) > $(B)/renderer
$(B)/finished: $(R)/report/report.html
	$(RUN) summary --results $(R)
	@touch $@

# Shows the notebooks of the last run, but runs none.
build/docs/index.html: README.md $(filter-out docs/notebooks/%,$(wildcard docs/*.* docs/*/*.* notebooks/*.ipynb results/reference/*.json)) \
    $(shell find src scripts -name '*.py') $(if $(shell find results/notebooks -name '*.ipynb' -newer build/docs/index.html 2>/dev/null),again) | $(SETUP)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs
	@touch $@

# --- set-up: one at a time, so that two makes cannot install over each other ------------------------
# Older pips compare every file of an index with every platform: half of the time of an installation.
$(SETUP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11; give a newer one with PYTHON=python3.12" >&2; exit 2; }
	@mkdir -p build; mkdir build/installing 2>/dev/null || \
	  { echo "error: another make installs into $(VENV); wait for it, or 'rmdir build/installing' if it was killed" >&2; exit 2; }
	@echo "installing the packages of requirements.lock into $(VENV): a few minutes; log: build/setup.log"
	@trap 'rmdir build/installing' EXIT; \
	{ { test -d $(VENV)/conda-meta || $(PYTHON) -m venv $(VENV); } && $(PIP) "pip>=25" && \
	  $(PIP) --requirement requirements.lock && \
	  $(PIP) --no-deps --no-build-isolation --editable .; } > build/setup.log 2>&1 || \
	  { tail -n 15 build/setup.log; echo "error: the installation failed; all that pip said: build/setup.log" >&2; exit 2; }
	@touch $@

# The package of Quarto downloads Quarto itself from github.com while it is installed.
$(VENV)/.quarto: | $(SETUP)
	@mkdir -p build
	@if $(PIP) --no-deps "quarto-cli>=1.7" > build/quarto.log 2>&1 && $(BIN)/quarto --version >> build/quarto.log 2>&1; \
	then echo "Quarto $$($(BIN)/quarto --version) renders the report from now on"; touch $@; \
	else echo "Quarto could not be installed: its package downloads it from github.com (build/quarto.log). pandoc and typst render the same text."; fi

# lm-evaluation-harness pins packages of its own, so it gets an environment of its own; llama.cpp is compiled.
build/harness/.installed: requirements.lock
	$(PYTHON) -m venv build/harness
	build/harness/bin/python -m pip install "$$(grep ^torch== requirements.lock)" "lm_eval[hf]==0.4.13" llama-cpp-python==0.3.36
	@touch $@
