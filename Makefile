# SPDX-License-Identifier: Apache-2.0
#
# The front door. Meson does the building; what is here is what a person types.

.DEFAULT_GOAL := help
SHELL := /bin/bash

BUILD  ?= build
PREFIX ?= /usr/local
DESTDIR ?=
DATA   ?= /var/lib/cella
LISTEN ?= 127.0.0.1:7070
ARGS   ?=

# Root is needed to install packages and to run the server; make itself may be run by anybody.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

## help: this list
.PHONY: help
help:
	@awk -F': ' '/^## /{sub(/^## /, ""); printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## build: the programs, in build/ (cella, bl, cella-agent, cella-egress, cella-warden)
.PHONY: build
build:
	@scripts/install-deps build
	@scripts/build $(BUILD)

## run: install what is needed, build, and run the server in the foreground (DATA=, LISTEN=, ARGS=)
.PHONY: run
run:
	@scripts/install-deps run
	@scripts/build $(BUILD)
	@scripts/make-user cella
	@exec $(SUDO) $(BUILD)/cella server --data "$(DATA)" --listen "$(LISTEN)" $(ARGS)

## test: everything; ends with the number of tests that passed and failed (ARGS="unit integration …")
.PHONY: test
test:
	@scripts/install-deps test
	@scripts/build $(BUILD)
	@scripts/build-sanitized build-clang
	@scripts/make-user cella
	@$(SUDO) tests/run --build $(BUILD) --asan build-clang $(ARGS)

## check: what a change can break, in about a minute: format, layers, its unit and integration tests (BASE=HEAD)
.PHONY: check
check:
	@scripts/install-deps test
	@scripts/build $(BUILD)
	@scripts/make-user cella
	@$(SUDO) tests/check --build $(BUILD) $(if $(BASE),--base $(BASE)) $(ARGS)

## bench: measure against the floor and against Docker; prints a Markdown table
.PHONY: bench
bench:
	@scripts/install-deps bench
	@scripts/build $(BUILD)
	@scripts/make-user cella
	@$(SUDO) bench/run --build $(BUILD) $(ARGS)

## load: a minute of mixed traffic against a server of its own; prints a table (ARGS="--seconds 10")
.PHONY: load
load:
	@scripts/install-deps test
	@scripts/build $(BUILD)
	@scripts/make-user cella
	@$(SUDO) tests/load --build $(BUILD) $(ARGS)

## soak: random lives of sandboxes, with kills in between, against a model (ARGS="--minutes 60")
.PHONY: soak
soak:
	@scripts/install-deps test
	@scripts/build $(BUILD)
	@scripts/make-user cella
	@$(SUDO) tests/soak --build $(BUILD) $(ARGS)

## lint: formatting, static analysis, layers, banned functions, warnings of two compilers
.PHONY: lint
lint:
	@scripts/install-deps lint
	@scripts/lint

## fuzz: run the fuzz targets under libFuzzer with ASan and UBSan (ARGS="--seconds 600 http dns")
.PHONY: fuzz
fuzz:
	@scripts/install-deps lint
	@tests/fuzz/run $(ARGS)

## install: programs, man page, completion and systemd unit (PREFIX=/usr/local, DESTDIR=)
.PHONY: install
install: build
	@scripts/install-files "$(BUILD)" "$(DESTDIR)" "$(PREFIX)"

## clean: remove what was built
.PHONY: clean
clean:
	rm -rf build build-clang build-fuzz
