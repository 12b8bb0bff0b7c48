# Two commands are enough: `make demo` and `make test`. Each makes the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
JOBS ?= 2
OTHERS ?= 2
FAST_JOBS ?= 3
DOCKER ?= docker
TARGET ?= audit orchestrator train-cpu train-gpu
VERSION := $(shell sed -n '0,/^version = "\(.*\)"/s//\1/p' pyproject.toml)
PROSE := README.md CHANGELOG.md docs infra reward pipeline orchestration bench requirements .ci Makefile Dockerfile pyproject.toml
# Files side by side. Tests of seconds wait now and then, and need little memory.
PYTEST := $(BIN)/pytest --dist loadfile
# Trainings take about 8 GiB each and leave cores idle now and then, so the others run beside them and are shown after them.
define trainings_and_others
	@others=$$(mktemp); trap 'kill $$! 2>/dev/null; rm -f $$others' EXIT; trap 'exit 130' INT TERM; \
	$(PYTEST) -n $(OTHERS) -m "($(1)) and not training" >$$others 2>&1 & \
	$(PYTEST) -n $(JOBS) --no-loadscope-reorder -m "($(1)) and training"; trained=$$?; \
	wait $$!; other=$$?; cat $$others; exit $$((trained + other))
endef
# uv does not read pip's settings: pass on where this machine finds wheels (PyTorch's CPU build, a mirror).
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export UV_EXTRA_INDEX_URL ?= $(PIP_EXTRA_INDEX_URL)
export UV_INDEX_STRATEGY ?= unsafe-best-match
export UV_SYSTEM_CERTS ?= true

.PHONY: help demo real test test-fast test-core test-real test-slow test-stack chaos check lint docs bench ablations lock image pin-images clean
help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/ready: pyproject.toml requirements/cpu.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip install --python $(BIN)/python --quiet --compile-bytecode -c requirements/cpu.txt -e '.[train-cpu,dev]'
	@touch $@

demo: $(VENV)/ready ## train the tiny policy with MARCH on this machine's CPUs and show what it learned
	$(BIN)/march demo

real: $(VENV)/ready ## the same with a real model of 135 million parameters on real text; up to 90 minutes
	$(BIN)/march demo --recipe smollm2 --run-dir runs/real

test: test-fast test-core ## tests of seconds, then a training that is killed and resumed, vLLM, MLflow, an evaluation

test-fast: $(VENV)/ready ## tests of seconds
	$(PYTEST) -n $(FAST_JOBS) -m "not slow and not long and not gpu and not chaos"

test-core: $(VENV)/ready ## the core of what runs for real
	$(call trainings_and_others,core and not long)

test-real: $(VENV)/ready ## all else that runs for real, engines, trainings and kills, in their short forms
	$(call trainings_and_others,slow and not core and not long and not gpu and not chaos)

test-slow: $(VENV)/ready ## the real ones of both, and their long forms; above an hour
	$(call trainings_and_others,(slow or long) and not gpu and not chaos)

test-stack: $(VENV)/ready ## the one-machine stack of infra/compose as processes, each killed in turn; half an hour
	$(BIN)/pytest tests/test_stack*.py tests/test_infra_compose.py

chaos: $(VENV)/ready ## the reward server under faults for half an hour; CHAOS_MINUTES and CHAOS_SEED set its storm
	$(BIN)/pytest -m chaos

check: lint ## lint, and the tests of words and of the files that deploy, which `make test` runs too
	$(BIN)/pytest -q -m "not slow and not long" tests/test_words.py tests/test_infra_*.py

lint: $(VENV)/ready ## style, format, types, spelling, and known vulnerabilities of the pins
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell $(PROSE)
	$(BIN)/python requirements/advisories.py

# Not part of the gate: it would install about fifteen packages more.
docs: $(VENV)/ready ## build the documentation's site into build/site; a dead link fails
	$(BIN)/uv pip install --python $(BIN)/python --quiet -c requirements/cpu.txt -e '.[docs]'
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/ready ## benchmarks; one JSON each under bench/results/
	$(BIN)/python -m bench

ablations: $(VENV)/ready ## the ablations on the tiny world: every cell that is missing, hours; HOURS bounds one call
	$(BIN)/python -m bench.ablations $(if $(HOURS),--max-hours $(HOURS))

lock: $(VENV)/ready ## resolve the pinned versions again
	$(BIN)/uv pip compile -q --python-version 3.11 --no-header --no-annotate --no-emit-package torch --no-emit-package setuptools --extra train-cpu --extra dev pyproject.toml -o requirements/cpu.txt
	UV_FIND_LINKS= $(BIN)/uv pip compile -q --python-version 3.11 --no-header --no-annotate --no-emit-package setuptools --extra train-gpu --extra dev pyproject.toml -o requirements/gpu.txt

image: ## the container images; TARGET=audit for one of them, DOCKER=podman for another builder
	@for target in $(TARGET); do $(DOCKER) build --target $$target --tag march-$$target:$(VERSION) \
	    --build-arg MARCH_VERSION=$(VERSION) --build-arg MARCH_COMMIT="$$(git describe --always --dirty --abbrev=40 --exclude '*')" \
	    $(BUILD_ARGS) . || exit; done

pin-images: ## ask the registry for the digests of the Dockerfile's base images, and write those that changed
	infra/images/pin.sh Dockerfile

clean: ## remove the environment and caches, not the runs
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build *.egg-info
