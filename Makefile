# The one front door. `make` alone lists the words.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Compilers and tests run this many at a time.
JOBS ?= $(shell nproc)
# Seconds per target of `make fuzz`.
FUZZ_SECONDS ?= 20
# Modules for the sanitizers, for example: make asan MODULES='mcap message' (default: everything)
MODULES ?=
# Arguments for ctest, for example: make test CTEST_ARGS='-R mcap'
CTEST_ARGS ?=

empty :=
module_targets = $(if $(MODULES),--target $(addsuffix _test,$(MODULES)))
module_tests = $(if $(MODULES),-R '^($(subst $(empty) $(empty),|,$(strip $(MODULES))))_test$$')

.PHONY: help
help: ## list the words
	@echo "Ropewalk: make <word>"
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r word line; do \
	  printf '  %-9s %s\n' "$$word" "$$line"; done

.PHONY: setup
setup: ## install what is missing: Debian packages, .venv, the git hook
	@tools/setup

.PHONY: setup-check
setup-check:
	@tools/setup check

.PHONY: build
build: setup ## build the program: build/release/bin/ropewalk
	@tools/configure release
	@cmake --build --preset release --parallel $(JOBS)

.PHONY: demo
demo: build ## simulate, review, export in four formats, verify: a tour in a minute
	@tools/demo

.PHONY: test
test: setup ## build and run every test
	@.venv/bin/python -m unittest discover -q -s tools/tests
	@tools/configure dev
	@cmake --build --preset dev --parallel $(JOBS)
	@ctest --preset dev --parallel $(JOBS) $(CTEST_ARGS)

.PHONY: check
check: setup-check ## check format, layers, docs, test lists, paths, headers
	@tools/check

.PHONY: format
format: setup-check ## format the sources in place
	@tools/check --fix

.PHONY: tidy
tidy: setup-check ## clang-tidy on the files changed since TIDY_BASE (default: the commit before)
	@tools/configure dev
	@tools/tidy $(TIDY_BASE)

.PHONY: asan
asan: setup-check ## run the tests under the address and undefined-behaviour sanitizers
	@tools/configure asan
	@cmake --build --preset asan --parallel $(JOBS) $(module_targets)
	@ctest --preset asan --parallel $(JOBS) $(module_tests) $(CTEST_ARGS)

.PHONY: tsan
tsan: setup-check ## run the tests under the thread sanitizer
	@tools/configure tsan
	@cmake --build --preset tsan --parallel $(JOBS) $(module_targets)
	@ctest --preset tsan --parallel $(JOBS) $(module_tests) $(CTEST_ARGS)

.PHONY: fuzz
fuzz: setup-check ## fuzz every parser, FUZZ_SECONDS each
	@tools/configure fuzz
	@cmake --build --preset fuzz --parallel $(JOBS)
	@tools/fuzz $(FUZZ_SECONDS)

.PHONY: bench
bench: setup ## run the benchmarks
	@tools/configure bench
	@cmake --build --preset bench --parallel $(JOBS)
	@bench/run

.PHONY: interop
interop: setup ## prove what is written and read by foreign programs (installs PyTorch: several GB)
	@tools/configure dev
	@cmake --build --preset dev --parallel $(JOBS)
	@tests/interop/run

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build demo-out
