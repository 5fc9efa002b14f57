# One command for each of: demo, test, lint, bench, gpu-test. Each makes its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= auto
BENCH_ARGS ?=
NATIVE := basedsl/native_call/call.c plugins/cute/basedsl_cute/arrays/describe.c plugins/cute/basedsl_cute/arrays/unpack.c

.PHONY: docs help demo test test-slow lint bench gpu-test gpu-bench gpu-sanitize native clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       compile and run the main examples, and say where they ran"
	@echo "make test       run the tests (GPU tests too, where there is a GPU)"
	@echo "make test-slow  run the long batches as well"
	@echo "make lint       formatting, lint, types, import contracts"
	@echo "make native     regenerate the LLVM IR files of the C files, after a change of these"
	@echo "make docs       the site of the documentation, in build/site"
	@echo "make bench      measure, as ratios against named peers"
	@echo "make gpu-test   only the tests that need a GPU; an error where there is none"
	@echo "make gpu-sanitize  memcheck and racecheck of compute-sanitizer on every kernel"
	@echo "make gpu-bench  kernels on a GPU against copies, PyTorch (installed if absent) and cuBLAS,"
	@echo "                and what of the goals is kept; BENCH_ARGS=--quick for a part of it"

$(READY): pyproject.toml plugins/toy/pyproject.toml plugins/cute/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -e plugins/toy -e 'plugins/cute[cuda]'
	@touch $(READY)

demo: $(READY)
	@$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

gpu-test: $(READY)
	$(BIN)/python -m pytest -q -m gpu --require-gpu

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

native: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[native]'
	$(BIN)/python -m basedsl.native_call.build $(NATIVE)

docs: $(READY)
	@$(BIN)/python -c "import material" 2>/dev/null || $(BIN)/python -m pip install --quiet -e '.[docs]'
	$(BIN)/python docs/pictures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/site/index.html"

bench: $(READY)
	@$(BIN)/python bench/run.py

gpu-bench: $(READY)
	@$(BIN)/python bench/gpu/run.py --check
	@$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet torch
	@$(BIN)/python bench/gpu/run.py $(BENCH_ARGS)

gpu-sanitize: $(READY)
	@$(BIN)/python bench/gpu/sanitize.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
