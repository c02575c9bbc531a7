# The one entry for people. CMakeLists.txt builds; this provides what the machine lacks for it.

PREFIX = /usr/local
CMAKE_FLAGS =
SECONDS = 60
MINUTES = 10
DENY = advisories bans licenses sources
BUILD := build/release
VENV := .venv
BENCH_VENV := .venv-bench
OUT = out/bench
C_FILES := $(wildcard c-tests/*.[ch] c-tests/*/*.[ch] examples/*.[ch] examples/pools/*.[ch]* bench/*.[ch])

# The tools in .venv come first, and cargo is found even before the first login after its install.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH):$(HOME)/.cargo/bin

# For what the examples and their tests start.
export BUILD_DIR := $(CURDIR)/$(BUILD)
export PYTHON := $(CURDIR)/$(VENV)/bin/python

# cargo and ninja schedule their own jobs, and take no variables from this make.
unexport MAKEFLAGS
.NOTPARALLEL:

# Where there is no CMake 3.20 or newer, .venv has one.
cmake := $(shell echo 'cmake_minimum_required(VERSION 3.20)' | \
                 PATH="$(PATH)" cmake -P /dev/stdin 2>/dev/null || echo $(VENV)/made)
adapter := adapters/onnxruntime/Cargo.toml
rust := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
jobs := $(shell getconf _NPROCESSORS_ONLN)
prefix := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
need = @command -v $(1) >/dev/null || { echo "error: no $(1): install $(2)" >&2; exit 1; }

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s  %s\n", $$1, $$2}' Makefile

.PHONY: run
run: build onnxruntime $(VENV)/onnxruntime-made ## build everything and run it on real input
	@echo "==> run: the examples"
	@examples/run.sh
	@echo "==> run: a model in ONNX Runtime"
	@"$(PYTHON)" adapters/onnxruntime/run.py

.PHONY: test
test: lint test-rust build test-examples test-bench test-c test-variants test-adapter ## lint, and run all tests

.PHONY: bench
bench: onnxruntime $(BENCH_VENV)/made ## measure against other libraries, in a minute; FULL=1: in ten
	@echo "==> bench: results in $(OUT)"
	@"$(BENCH_VENV)/bin/python" bench/bench.py --inside --build $(BUILD) --output "$(OUT)" $(if $(FULL),--full)

.PHONY: tune
tune: toolchain ## measure what rules by CPU decide, on this one, and print both
	@echo "==> tune: on an idle machine, a few minutes"
	@cargo bench --locked --bench tune

# Under sudo, install what has been built before: root has no cargo of yours.
.PHONY: install
install: $(if $(SUDO_USER),,build) ## install below PREFIX, /usr/local if not given; honours DESTDIR
	@echo "==> install: $(DESTDIR)$(prefix)"
	@[ -e $(BUILD)/cmake_install.cmake ] || \
	    { echo "error: nothing is built yet: run 'make build' first, without sudo" >&2; exit 1; }
	@cmake --install $(BUILD) --prefix "$(prefix)"
	@rm -f $(BUILD)/install_manifest.txt # root's would be in the way of the next install

.PHONY: header
header: toolchain ## generate include/libsplit.h from the Rust sources
	@echo "==> header: include/libsplit.h"
	@LIBSPLIT_UPDATE_HEADER=1 cargo test --locked --test header

.PHONY: abi-baseline
abi-baseline: toolchain ## write abi/libsplit.abi, after an addition to the ABI
	@echo "==> abi-baseline: abi/libsplit.abi"
	@LIBSPLIT_UPDATE_ABI=1 cargo test --locked --test abi

.PHONY: soak
soak: build ## split at random from many threads for MINUTES, 10 if not given
	@echo "==> soak: $(MINUTES) minutes"
	@$(BUILD)/c-tests/soak $$(( $(MINUTES) * 60 ))

.PHONY: deny
deny: toolchain ## check dependencies with cargo-deny, built first where it is missing
	@echo "==> deny: $(DENY)"
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	@cargo deny --locked check $(DENY)

.PHONY: lint
lint: toolchain $(VENV)/made ## check the code with cargo fmt, cargo clippy and clang-format
	@echo "==> lint: cargo fmt, clang-format, cargo clippy"
	@cargo fmt --all --check && cargo fmt --manifest-path fuzz/Cargo.toml --check && \
	    clang-format --dry-run -Werror $(C_FILES) || \
	    { echo "error: the format is off: run 'make format'" >&2; exit 1; }
	@cargo clippy --locked --workspace --all-targets -- -D warnings
	@cargo fmt --manifest-path $(adapter) --check || \
	    { echo "error: the format is off: run 'make format'" >&2; exit 1; }
	@cargo clippy --manifest-path $(adapter) --locked --all-targets \
	    --target-dir target/onnxruntime -- -D warnings

.PHONY: format
format: toolchain $(VENV)/made ## reformat the code the way lint wants it
	@echo "==> format: cargo fmt, clang-format"
	@cargo fmt --all
	@cargo fmt --manifest-path $(adapter)
	@cargo fmt --manifest-path fuzz/Cargo.toml
	@clang-format -i $(C_FILES)

.PHONY: build
build: toolchain $(cmake) ## build the libraries, the test programs and the examples
	@echo "==> build: CMake and cargo in $(BUILD)"
	@if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi; \
	    cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	@cmake --build $(BUILD) --parallel $(jobs)

.PHONY: onnxruntime
onnxruntime: build ## build the adapter for ONNX Runtime; 'make install' then installs it too
	@echo "==> build: the adapter for ONNX Runtime"
	@cmake --build $(BUILD) --target libsplit-onnxruntime

.PHONY: test-rust
test-rust: toolchain
	@echo "==> test: cargo test"
	@cargo test --locked

.PHONY: test-neon
test-neon: ## test the loops for 64-bit Arm under qemu, on Debian
	@echo "==> test: NEON"
	@tools/neon.sh

.PHONY: test-examples
test-examples: build $(VENV)/made
	@echo "==> test: the examples"
	@"$(PYTHON)" examples/check.py

.PHONY: test-bench
test-bench: build $(VENV)/made
	@echo "==> test: the benchmark"
	@"$(PYTHON)" bench/check.py

.PHONY: test-c
test-c: build $(VENV)/clang-made
	@echo "==> test: ctest"
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(jobs)

.PHONY: test-adapter
test-adapter: test-onnxruntime test-python

.PHONY: test-onnxruntime
test-onnxruntime: onnxruntime $(VENV)/onnxruntime-made
	@echo "==> test: the adapter for ONNX Runtime"
	@"$(PYTHON)" -m pytest --quiet -p no:cacheprovider adapters/onnxruntime/tests

# pip's cargo finds everything built in that directory.
.PHONY: test-python
test-python: onnxruntime $(VENV)/onnxruntime-made
	@echo "==> test: the Python package for ONNX Runtime"
	@export CARGO_TARGET_DIR="$(CURDIR)/$(BUILD)/cargo-onnxruntime"; \
	    "$(PYTHON)" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps \
	    ./adapters/onnxruntime/python && \
	    cd adapters/onnxruntime/python && "$(PYTHON)" -m mypy && \
	    "$(PYTHON)" -m pytest --quiet -p no:cacheprovider tests

# Once more: with sanitizers, and without AVX2.
.PHONY: test-variants
test-variants: toolchain $(cmake)
	@for variant in address thread portable low; do \
	    echo "==> test: $$variant"; tools/variant.sh $$variant || exit 1; \
	done

.PHONY: memcheck
memcheck: build ## run the C tests under valgrind, which has to be installed
	$(call need,valgrind,it (Debian: valgrind))
	@echo "==> memcheck: valgrind"
	@tools/memcheck.sh $(BUILD)

.PHONY: fuzz
fuzz: toolchain ## fuzz the C functions, SECONDS for each target, 60 if not given
	@tools/fuzz.sh $(SECONDS)

.PHONY: clean
clean: ## remove what was built
	rm -rf build out target

.PHONY: distclean
distclean: clean ## remove what was built, and the tools in .venv
	rm -rf $(VENV) $(BENCH_VENV)

.PHONY: toolchain
toolchain:
	$(call need,cargo,Rust $(rust) or newer with rustup)
	$(call need,cc,a C and C++ compiler (Debian: build-essential))
	@version=$$(rustc --version | cut -d ' ' -f 2); \
	    printf '%s\n' $(rust) "$$version" | sort -VC || \
	    { echo "error: Rust $$version is too old: install $(rust) or newer with rustup" >&2; exit 1; }

$(VENV)/clang-made: $(VENV)/made
	@tools/clang.sh $(VENV)
	@touch $@

$(VENV)/onnxruntime-made: $(VENV)/made
	@tools/onnxruntime.sh $(VENV)
	@touch $@

$(VENV)/made: requirements-dev.txt
	$(call need,python3,Python 3.10 or newer)
	@tools/venv.sh $(VENV)
	@touch $@

$(BENCH_VENV)/made: requirements-bench.txt
	$(call need,python3,Python 3.11 or newer)
	@tools/venv.sh $(BENCH_VENV) $<
	@touch $@
