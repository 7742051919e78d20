# Proving test-set contamination, reproducibly. `make help` lists the targets.
#
#   profile --> corpus --+--> models/contaminated --> stores/contaminated --+
#               canaries |                                                  +--> scores --> notebooks --> tables
#               tokenizer+--> models/clean ---------> stores/clean ---------+                   |         figures
#                                                                                            manifest --> report
#
# Every target is a file. Expensive stages write build/<profile>/; results/ is made from them alone.
# Code counts by package: import-linter keeps every package from importing what stands above it.
# Works with GNU make 3.81 (macOS) and later.

PROFILE ?= laptop
PYTHON  ?= python3

VENV := .venv
BIN  := $(VENV)/bin
SRC  := src/contamination
P    := profiles/$(PROFILE).yaml
B    := build/$(PROFILE)
# Results of the default profile lie in results/, those of others beside them, never over them.
R    := $(if $(filter laptop,$(PROFILE)),results,results/$(PROFILE))

ifneq ($(words $(CURDIR)),1)
$(error the path '$(CURDIR)' has a blank in it, which make cannot handle: move the repository)
endif
ifeq ($(wildcard $(P)),)
$(error unknown PROFILE '$(PROFILE)': choose one of $(notdir $(basename $(wildcard profiles/*.yaml))))
endif

# On several GPUs: make reproduce LAUNCH="accelerate launch --multi_gpu" (docs/how-to/reproduce.md).
LAUNCH ?=
# Small models gain little from a second thread: two steps at a time, each on half of the cores.
# Numbers depend on the threads in their last digits, so they are the same whatever runs beside.
CORES := $(shell getconf _NPROCESSORS_ONLN)
SMALL := $(if $(LAUNCH),,$(filter quick laptop,$(PROFILE)))
JOBS  ?= $(if $(SMALL),2,1)
OMP_NUM_THREADS ?= $(if $(SMALL),$(shell expr \( $(CORES) + 1 \) / 2))
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS)
endif

SETUP := $(VENV)/.installed
PIP   := $(BIN)/python -m pip install --disable-pip-version-check
STAGE := $(BIN)/python -m reproduction
# What make is going to run, written once and before the first stage: stages count themselves by it.
PLANNED = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,$(eval PLANNED := $(shell \
  MAKEFLAGS='$(MAKEFLAGS)' $(MAKE) -n $(MAKECMDGOALS) > $(B)/steps 2>/dev/null; echo $(B)/steps))$(PLANNED))
# Bars on terminals alone: a pipe gets plain lines.
BARS  := $(shell test -t 2 || echo TQDM_DISABLE=1)
# Memory of glibc in huge pages: the same numbers in 5 to 10% less time (docs/throughput.md).
GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1
ENV    = STEPS=$(PLANNED) $(BARS) GLIBC_TUNABLES=$(GLIBC_TUNABLES) $(addprefix OMP_NUM_THREADS=,$(OMP_NUM_THREADS))
RUN    = @$(ENV) $(STAGE)
ON    := --profile $(P) --build $(B)
# Every pass over a model: LAUNCH starts it in all processes, by a program of the environment or another.
SPREAD = @$(ENV) $(if $(LAUNCH),PATH="$(abspath $(BIN)):$$PATH" $(LAUNCH) -m reproduction,$(STAGE))

# What a profile lists under `notebooks:`; BASE has what it does not give.
BASE := $(patsubst %,profiles/%.yaml,$(shell sed -n 's/^base: *//p' $(P)))
listed_in = $(shell sed -n '/^notebooks:/,/^[a-z]/s/^  \([0-9A-Za-z_]*\):.*/\1/p' $(1))
# A profile without a corpus trains nothing: it runs what it lists, on the models of the registry.
TRAINED := $(if $(shell grep -l '^corpus:' $(P) $(BASE)),contaminated clean)
RELEASED := $(if $(TRAINED),,data/models.yaml)
# Further sizes, named by their width: clean-64 ... (key `sizes` of the profile).
widths_in = $(shell sed -n '/^sizes:/,/^[a-z]*:$$/s/.*n_embd: *\([0-9]*\).*/\1/p' $(1))
SIZES   := $(addprefix clean-,$(or $(call widths_in,$(P)),$(if $(BASE),$(call widths_in,$(BASE)))))
ALL     := $(foreach m,$(TRAINED) $(SIZES),$(B)/models/$(m)/training.json)
BOTH    := $(TRAINED:%=$(B)/models/%/training.json)
CLEAN   := $(filter %/clean/training.json,$(BOTH))
STORES  := $(TRAINED:%=$(B)/stores/%.json)

# Each notebook: the package of its experiment; what its passes over models read (none where there
# are none); what else it reads; what it writes (tables, then figures).
00_start_here := start | | data/stores/stores.json docs/measurements/mmlu_lines.csv | start.csv | start_orderings start_sets start_gains
01_canary_eval := canaries | | $(STORES) | canaries.csv duplication_power.csv canaries.md canaries_clean.md canaries_redrawn.md canaries_published.md | duplication_power
02_shard_permutation_ablation := ablation | $(STORES) | | shard_ablation.csv permutation_ablation.csv | shard_ablation permutation_ablation
03_open_model_audit := open_models | $(STORES) $(RELEASED) | | open_models.csv open_models.md open_models_by_model.md open_models_published.md | open_models
04_mmlu_fisher := mmlu | $(if $(filter benchmarks paper,$(PROFILE)),$(ALL)) $(RELEASED) | docs/measurements/mmlu_lines.csv | mmlu_subsets.csv mmlu_fisher.csv mmlu_lines.csv mmlu_exclusions.csv mmlu_fisher.md mmlu_table4.md mmlu_exclusions.md | mmlu_ecdf
05_beyond_the_paper := beyond | $(STORES) | docs/measurements/power.csv | power_replicates.csv power_per_token.csv power_ranking.csv calibration.csv failures.csv power_ranking.md power_study.md failures.md | power_per_token calibration
06_wikimia := wikimia | $(ALL) $(RELEASED) | | wikimia.csv wikimia_blind.csv wikimia.md wikimia_lengths.md wikimia_blind.md wikimia_published.md | wikimia
07_min_k_baseline := min_k | $(BOTH) | $(R)/notebooks/01_canary_eval.ipynb | min_k.csv min_k.md min_k_clean.md min_k_published.md | min_k
08_detection_assumptions := assumptions | $(ALL) $(RELEASED) | | assumptions_within.csv assumptions_cross.csv assumptions_blind.csv assumptions_perplexity.csv assumptions_within.md assumptions_blind.md assumptions_tuned.md assumptions_sizes.md assumptions_published.md assumptions_conclusions.md assumptions_perplexity.md | assumptions_cross assumptions_density $(addprefix assumptions_density_,min_prob_25 mem_25 entropy_25)
09_controlled_contamination := controlled | $(CLEAN) | | controlled_contamination.csv controlled_trends.csv controlled_contamination.md controlled_rates.md controlled_published.md controlled_conclusions.md | controlled_contamination
10_book_audit := books | $(CLEAN) | | books.csv books_validation.csv books.md books_validation.md books_published.md | books
11_unlearning_audit := unlearning | $(BOTH) | | unlearning.csv unlearning_detection.csv unlearning.md unlearning_detection.md unlearning_truth.md | unlearning
12_released_checkpoints := checkpoints | $(RELEASED) data/registry.yaml | | checkpoints.csv checkpoints_shards.csv checkpoints_permutations.csv checkpoints_min_k.csv checkpoints.md checkpoints_min_k.md | checkpoints_power checkpoints_shards checkpoints_permutations
14_option_order := options | $(CLEAN) | | options.csv options.md | options
LISTED    := $(or $(call listed_in,$(P)),$(if $(BASE),$(call listed_in,$(BASE))))
NOTEBOOKS := $(sort $(basename $(notdir $(wildcard notebooks/[01]*.ipynb))))
NOTEBOOKS := $(if $(TRAINED),$(filter-out 12_% 13_%,$(NOTEBOOKS)),$(filter $(LISTED),$(NOTEBOOKS)))
EXECUTED  := $(NOTEBOOKS:%=$(R)/notebooks/%.ipynb)
13_beside_the_papers := papers | | $(filter-out %/13_beside_the_papers.ipynb,$(EXECUTED)) | papers.csv $(patsubst %,papers_%.md,summary reasons oren_section_4_3 $(addprefix oren_table_,1 2 4 5) $(addprefix shi_table_,1 6) $(addprefix fu_table_,3 7 8 9 10 11 12 13 14 15) fu_figure_18) | papers

# $(call part,LIST,N): words of a list between its N-1st and Nth bar.
BLANK   := $(subst |,,| |)
part     = $(subst ;, ,$(word $(2),$(subst |, ,$(subst $(BLANK),;,$($(1))))))
scores   = $(if $(strip $(call part,$(1),2)),$(B)/scores/$(1).json)
tables   = $(addprefix $(R)/tables/,$(call part,$(1),4))
figures  = $(foreach f,$(call part,$(1),5),$(R)/figures/$(f).svg $(R)/figures/$(f).png)
# A file that its rule writes beside its target and that is gone: the rule runs again.
missing  = $(if $(filter-out $(wildcard $(1)),$(1)),again)

code     = $(wildcard $(foreach s,*.py *.yaml *.lua,$(addsuffix /$(s),$(addprefix src/,$(1)))))
PRETRAIN := $(call code,reproduction/run contamination/testsets) $(wildcard $(SRC)/*.py)
SCORE    := $(PRETRAIN) $(call code,contamination/scoring contamination/audit)
MEASURE  := $(SCORE) $(filter-out %/evaluate.py,$(call code,contamination/membership))
LIBRARY  := $(MEASURE) $(call code,contamination/membership reproduction/output contamination/statistics) $(wildcard data/published/*.csv)
REPORT   := $(addprefix $(R)/report/,report.html report.pdf $(if $(TRAINED),slides.html))
# Not its links to results/, which are there for Quarto's own commands.
PAPER    := $(wildcard paper/_quarto.yml paper/*.qmd paper/*.bib paper/*.css paper/*.typ)

# Sections of the profile that change separately; make reads the profile through them alone.
$(shell awk -v out=$(B)/profile -v notebooks="$(NOTEBOOKS)" -f scripts/sections.awk $(BASE) $(P) notebooks/[01]*.ipynb)

.DELETE_ON_ERROR:
.PHONY: again help setup reproduce smoke plan rehearse audit start stores scores notebooks explore seminar study frontier benchmark attack test lint format report compare reference docs lab lock clean distclean

help: ## list the targets
	@echo "make TARGET [PROFILE=$(subst $(BLANK),|,$(notdir $(basename $(wildcard profiles/*.yaml))))]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
reproduce: $(B)/finished ## every table and figure and the report, from scratch or from what is there
	$(if $(OPEN),@$(BIN)/python -m webbrowser -t "file://$(abspath $(R)/report/report.html)")
smoke: ## the same with the quick profile (a few minutes)
	@$(MAKE) --no-print-directory reproduce PROFILE=quick

plan: $(SETUP) ## what PROFILE=open downloads, reads and takes, before it does (on other devices: GPUS="24:165", in GB:TFLOP/s)
	@$(STAGE) costs $(ON) $(addprefix --gpu ,$(GPUS))

rehearse: $(SETUP) ## PROFILE=open from end to end on stand-ins that a hub on this machine serves (numbers mean nothing)
	@$(BIN)/python scripts/rehearsal/run.py

# Words as a YAML list; paths as they are seen from anywhere.
COMMA := ,
listed = [$(subst $(BLANK),$(COMMA),$(strip $(foreach w,$(1),$(if $(wildcard $(w)),$(abspath $(w)),$(w)))))]
ASKED = --parameter 'models=$(call listed,$(MODELS))' --parameter 'sets=$(call listed,$(SETS))'
audit: $(SETUP) ## p-values of MODELS="a b" on SETS="x y": registered names, hub ids or paths (results/audit/)
	$(SPREAD) measure notebooks/03_open_model_audit.ipynb $(ON) $(ASKED)
	$(RUN) notebook notebooks/03_open_model_audit.ipynb $(ON) --results $(R)/audit $(ASKED)
	@cat $(R)/audit/tables/open_models.md
start: $(SETUP) ## see the argument in ten minutes without training: notebook 00, in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb
explore: $(SETUP) ## MMLU and single test sets in JupyterLab (the same page: results/explorer.html)
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks/explore_mmlu.ipynb
seminar: $(SETUP) ## the seminar, in JupyterLab (guide: docs/seminar-guide.md)
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks/seminar.ipynb
study: ## compare all statistics on many canary sets, two seeds (a few hours; docs/power.svg)
	@$(MAKE) --no-print-directory PROFILE=study results/study/notebooks/05_beyond_the_paper.ipynb
	@$(MAKE) --no-print-directory PROFILE=study-2 results/study-2/notebooks/05_beyond_the_paper.ipynb
	$(BIN)/python benchmarks/power_study.py study study-2
frontier: ## candidates at 1, 2 and 4 copies: chosen on one seed, confirmed on another (a day; docs/frontier.svg)
	@for profile in frontier frontier-2; do \
	  $(MAKE) --no-print-directory PROFILE=$$profile build/$$profile/models/contaminated/training.json || exit; done
	@for profile in frontier frontier-2; do \
	  $(BIN)/python benchmarks/frontier/run.py train $$profile --widths 64 512 && \
	  $(BIN)/python benchmarks/frontier/run.py score $$profile --widths 64 256 512 --what plain white_box && \
	  $(BIN)/python benchmarks/frontier/run.py score $$profile --what context triples || exit; done
	$(BIN)/python benchmarks/frontier/run.py tables "$$(date -I)"
benchmark: $(SETUP) build/harness/.installed ## tokens per second beside two other engines (results/tables/throughput.csv)
	$(BIN)/python benchmarks/throughput.py --harness-python build/harness/bin/python
attack: $(SETUP) ## thousands of bad records, templates, stores and servers, and kills (results/tables/attack.csv)
	$(BIN)/python benchmarks/attack/run.py
scores: $(STORES) $(foreach n,$(NOTEBOOKS),$(call scores,$(n))) ## every pass over models, and no notebook
notebooks: $(EXECUTED) ## every notebook, and what it needs
report: $(R)/report/report.html ## only the report and the slides (and what they need)
stores: $(R)/manifest.json ## renew data/stores, which notebook 00 reads, from the run of PROFILE
	$(RUN) ship-stores $(ON) --results $(R) --stores data/stores
compare: $(SETUP) ## the numbers of this run beside those of results/reference: identical, within tolerance or different
	$(RUN) compare --results $(R)
reference: $(SETUP) ## renew what git holds of a finished run of laptop (results/reference/), and the numbers of README.md
	$(RUN) reference --results $(R) $(foreach n,$(NOTEBOOKS),$(call tables,$(n)) $(call figures,$(n)))
	$(BIN)/python scripts/readme.py
docs: build/docs/index.html ## the documentation as a site, with the notebooks of the last run (build/docs/index.html)
setup: $(SETUP) ## the virtual environment, from the exact lock
test: $(SETUP) ## the test suite
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile
lint: $(SETUP) ## lint, format check, type check and the layers of the packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
format: $(SETUP) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
lab: $(SETUP) ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=notebooks
lock: $(SETUP) ## resolve requirements.lock anew from pyproject.toml (needs uv on PATH)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
	  --fork-strategy fewest --no-header --no-annotate --quiet --output-file requirements.new
	@# torch pins its own CUDA packages; listing them here would force them on machines without a GPU.
	grep -vE '^(nvidia-|cuda-|triton)' requirements.new > requirements.lock
	rm requirements.new
clean: ## remove the results and intermediate files of PROFILE
	rm -rf $(B) $(addprefix $(R)/,tables figures notebooks report audit explorer.html comparison.csv manifest.json variables.yml)
distclean: ## remove everything that make has made, the environment included; what git holds stays
	rm -rf build $(filter-out results/reference,$(wildcard results/* results/.[!.]*)) $(VENV) src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# --- set-up: one at a time, so that two makes cannot install over each other ------------------------

$(SETUP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11; give a newer one with PYTHON=python3.12" >&2; exit 2; }
	@mkdir -p build; mkdir build/installing 2>/dev/null || \
	  { echo "error: another make installs into $(VENV); wait for it, or 'rmdir build/installing' if it was killed" >&2; exit 2; }
	@echo "installing the packages of requirements.lock into $(VENV): a few minutes; log: build/setup.log"
	@trap 'rmdir build/installing' EXIT; \
	{ test -d $(VENV)/conda-meta || $(PYTHON) -m venv $(VENV); } > build/setup.log 2>&1 && \
	$(PIP) --requirement requirements.lock >> build/setup.log 2>&1 && \
	$(PIP) --no-deps --no-build-isolation --editable . >> build/setup.log 2>&1 || \
	  { tail -n 15 build/setup.log; echo "error: the installation failed; all that pip said: build/setup.log" >&2; exit 2; }
	@touch $@

# lm-evaluation-harness pins packages of its own, so it gets an environment of its own.
build/harness/.installed: requirements.lock
	$(PYTHON) -m venv build/harness
	build/harness/bin/python -m pip install --disable-pip-version-check \
	  "$$(grep ^torch== requirements.lock)" "lm_eval[hf]==0.4.13"
	@touch $@

# --- the DAG ----------------------------------------------------------------------------------------

$(B)/corpus/corpus.json: $(B)/profile/corpus.txt requirements.lock $(PRETRAIN) | $(SETUP)
	$(RUN) corpus $(ON)

$(B)/models/%/training.json: $(B)/corpus/corpus.json $(PRETRAIN)
	$(SPREAD) train $* $(ON)
$(TRAINED:%=$(B)/models/%/training.json): $(B)/profile/training.txt
$(SIZES:%=$(B)/models/%/training.json): $(B)/profile/sizes.txt

$(STORES): $(B)/stores/%.json: $(B)/models/%/training.json $(B)/profile/scoring.txt $(SCORE)
	$(SPREAD) score $* $(ON)

# Passes over models start on all processes; a notebook runs in one and reads what they stored.
define measurement
$(B)/scores/$(1).json: $(B)/profile/$(1).txt $(call part,$(1),2) $(MEASURE) \
    $(filter-out %/tables.py %/figures.py %/planned.py,$(call code,reproduction/notebooks/$(call part,$(1),1))) | $(SETUP)
	$$(SPREAD) measure notebooks/$(1).ipynb $$(ON)
endef
$(foreach n,$(NOTEBOOKS),$(if $(call scores,$(n)),$(eval $(call measurement,$(n)))))

define notebook
$(R)/notebooks/$(1).ipynb: notebooks/$(1).ipynb $(B)/profile/$(1).txt $(LIBRARY) \
    $(filter-out %/planned.py,$(call code,reproduction/notebooks/$(call part,$(1),1))) $(call scores,$(1)) $(call part,$(1),3) $(call missing,$(call tables,$(1)) $(call figures,$(1))) | $(SETUP)
	$$(RUN) notebook $$< $$(ON) --results $(R)
$(call tables,$(1)) $(call figures,$(1)): $(R)/notebooks/$(1).ipynb ;
endef
$(foreach n,$(NOTEBOOKS),$(eval $(call notebook,$(n))))

EXPLORER := $(if $(TRAINED),$(R)/explorer.html)
$(R)/explorer.html: $(STORES) $(R)/notebooks/03_open_model_audit.ipynb $(R)/notebooks/04_mmlu_fisher.ipynb \
    $(LIBRARY) $(call code,reproduction/notebooks/mmlu) $(wildcard src/reproduction/report/explorer/*.* docs/measurements/mmlu_*.csv)
	$(RUN) explorer $(ON) --results $(R)

$(R)/manifest.json: $(EXECUTED) $(call code,reproduction/report) $(call missing,$(R)/variables.yml)
	$(RUN) manifest $(ON) --results $(R)

$(R)/report/report.html: $(R)/manifest.json $(PAPER) $(call code,reproduction/report) $(call missing,$(REPORT))
	$(RUN) report --results $(R)

$(B)/finished: $(R)/report/report.html $(EXPLORER)
	$(RUN) summary --results $(R)
	@touch $@

# Shows the notebooks of the last run, but runs none.
build/docs/index.html: README.md $(filter-out docs/notebooks/%,$(wildcard docs/*.* docs/*/*.*)) $(shell find src scripts -name '*.py') \
    $(wildcard notebooks/*.ipynb results/reference/*.json) \
    $(if $(shell find results/notebooks -name '*.ipynb' -newer build/docs/index.html 2>/dev/null),again) | $(SETUP)
	$(BIN)/sphinx-build -n -W --keep-going -q -b html docs build/docs
	@touch $@
