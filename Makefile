# The one entry for people. CMakeLists.txt builds; this provides what the machine lacks for it.

PREFIX = /usr/local
CMAKE_FLAGS =
SECONDS = 60
MINUTES = 10
CPUS = aarch64 s390x
RULES =
SINCE = HEAD
CPU =
COUNT =
DENY = advisories bans licenses sources
BUILD := build/release
VENV := .venv
BENCH_VENV := .venv-bench
CONFORMANCE_VENV := .venv-conformance
DOCS_VENV := .venv-docs
OUT = out/bench
C_FILES := $(wildcard c-tests/*.[ch] c-tests/*/*.[ch]* examples/*.[ch] examples/*/*.[ch]* bench/*.[ch] \
    adapters/openvino/src/*.[ch]pp) include/libsplit.hpp include/libsplit_dlpack.h

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
python := python/Cargo.toml
tool := cli/Cargo.toml
manifests := Cargo.toml fuzz/Cargo.toml $(adapter) $(python) $(tool)
rust_features := ndarray,rayon
rust := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
jobs := $(shell getconf _NPROCESSORS_ONLN)
prefix := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
# A test that runs away fails at 12 GiB, instead of taking the machine with it. (Some reserve 8 GiB of
# addresses; sanitizers reserve far more.)
limit := ulimit -v $$((12 << 20)) &&
need = @command -v $(1) >/dev/null || { echo "error: no $(1): install $(2)" >&2; exit 1; }
install_wheel = @"$(1)" -m pip install --quiet --disable-pip-version-check --force-reinstall out/python/*.whl

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build cli onnxruntime $(VENV)/onnxruntime-made $(VENV)/checkpoint-made ## build everything and run it on real input
	@echo "==> run: the examples"
	@examples/run.sh
	@echo "==> run: a model in ONNX Runtime"
	@"$(PYTHON)" adapters/onnxruntime/run.py

.PHONY: test
test: lint test-rust build test-examples test-cli test-bench test-c test-variants test-adapter \
    test-conformance test-docs test-python-package ## lint, and run all tests

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

.PHONY: lint
lint: toolchain $(VENV)/made ## check the code with cargo fmt, cargo clippy and clang-format
	@echo "==> lint: cargo fmt, clang-format, cargo clippy"
	@(for each in $(manifests); do cargo fmt --all --manifest-path $$each --check || exit; done) && \
	    clang-format --dry-run -Werror $(C_FILES) || \
	    { echo "error: the format is off: run 'make format'" >&2; exit 1; }
	@cargo clippy --locked --workspace --all-targets -- -D warnings
	@cargo clippy --locked --features $(rust_features),tune --lib --test rust_api --bench tune -- -D warnings
	@cargo clippy --locked --manifest-path $(adapter) --all-targets \
	    --target-dir target/onnxruntime -- -D warnings
	@cargo clippy --locked --manifest-path $(python) --target-dir target/python -- -D warnings
	@cargo clippy --locked --manifest-path $(tool) --workspace --all-targets \
	    --target-dir target/cli -- -D warnings

.PHONY: format
format: toolchain $(VENV)/made ## reformat the code the way lint wants it
	@echo "==> format: cargo fmt, clang-format"
	@for each in $(manifests); do cargo fmt --all --manifest-path $$each; done
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

.PHONY: cli
cli: build ## build the command-line tool; 'make install' then installs it too
	@echo "==> build: the command-line tool"
	@cmake --build $(BUILD) --target libsplit-cli

.PHONY: test-rust
test-rust: toolchain
	@echo "==> test: cargo test"
	@cargo test --locked --no-run && $(limit) cargo test --locked
	@cargo test --quiet --locked --features tune --bench tune --no-run && \
	    QUICK=1 timeout 300 cargo test --quiet --locked --features tune --bench tune >/dev/null
	@cargo test --locked --features $(rust_features) --test rust_api
	@cargo test --locked --features $(rust_features) --doc

.PHONY: test-examples
test-examples: build $(VENV)/made
	@echo "==> test: the examples"
	@"$(PYTHON)" examples/check.py

.PHONY: test-cli
test-cli: cli $(VENV)/made
	@echo "==> test: the command-line tool"
	@cargo test --manifest-path $(tool) --locked --workspace --target-dir target/cli
	@"$(PYTHON)" -m unittest discover --start-directory cli/tests

.PHONY: test-bench
test-bench: build $(VENV)/made
	@echo "==> test: the benchmark"
	@"$(PYTHON)" bench/check.py

.PHONY: test-c
test-c: build $(VENV)/clang-made $(VENV)/cpp-made
	@echo "==> test: ctest"
	@$(limit) ctest --test-dir $(BUILD) --output-on-failure --parallel $(jobs)

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

.PHONY: test-conformance
test-conformance: onnxruntime python $(VENV)/onnxruntime-made
	@echo "==> test: the cases that peers are measured by too"
	$(call install_wheel,$(PYTHON))
	@"$(PYTHON)" -m pytest --quiet -p no:cacheprovider tests/conformance
	@"$(PYTHON)" tests/conformance/run.py

# Sphinx builds from docs/ alone; docs/generated/ is what the library and its header say.
.PHONY: docs
docs: build $(VENV)/made $(DOCS_VENV)/made ## build the guide and the API reference in build/docs/site
	@echo "==> docs: $(CURDIR)/build/docs/site/index.html"
	@cd docs && "$(PYTHON)" -m generate
	@"$(DOCS_VENV)/bin/sphinx-build" --quiet --fresh-env --fail-on-warning --jobs auto docs build/docs/site
	@cargo doc --quiet --locked --no-deps --lib --target-dir build/docs/target
	@rm -rf build/docs/site/rust && cp -r build/docs/target/doc build/docs/site/rust

.PHONY: test-docs
test-docs: docs cli onnxruntime openvino python $(VENV)/onnxruntime-made
	@echo "==> test: the guide's code and links"
	$(call install_wheel,$(PYTHON))
	@"$(PYTHON)" docs/check.py --site build/docs/site
	@"$(PYTHON)" docs/check.py

# The wheel, with all tests; and before it what 'pip install ./python' makes, quickly built and with
# checks for overflow, with those that need no wheel.
.PHONY: test-python-package
test-python-package: python
	@echo "==> test: the Python package"
	@export CARGO_TARGET_DIR="$(CURDIR)/target/python"; \
	    "$(PYTHON)" -m pip install --quiet --disable-pip-version-check --force-reinstall \
	    --config-settings build-args="--profile dev --locked" ./python && \
	    cd python && "$(PYTHON)" -m pytest --quiet -p no:cacheprovider tests \
	    --ignore tests/test_wheel.py
	@"$(PYTHON)" -m pip install --quiet --disable-pip-version-check --force-reinstall \
	    out/python/*.whl
	@cd python && "$(PYTHON)" -m mypy && "$(PYTHON)" -m pytest --quiet -p no:cacheprovider tests

# Once more: with sanitizers, with other loops, with low thresholds.
.PHONY: test-variants
test-variants: toolchain $(cmake)
	@for variant in address thread avx2 portable avx512 low; do \
	    echo "==> test: $$variant"; tools/variant.sh $$variant || exit 1; \
	done

.PHONY: memcheck
memcheck: build ## run the C tests under valgrind, which has to be installed
	$(call need,valgrind,it (Debian: valgrind))
	@echo "==> memcheck: valgrind"
	@tools/memcheck.sh $(BUILD)

.PHONY: fuzz
fuzz: toolchain ## fuzz the C functions and headers of files, SECONDS for each, 60 if not given
	@tools/fuzz.sh $(SECONDS)

.PHONY: clean
clean: ## remove what was built
	rm -rf build out target

.PHONY: distclean
distclean: clean ## remove what was built, and the tools in .venv
	rm -rf $(VENV) $(BENCH_VENV) $(CONFORMANCE_VENV) $(DOCS_VENV)

.PHONY: toolchain
toolchain:
	$(call need,cargo,Rust $(rust) or newer with rustup)
	$(call need,cc,a C and C++ compiler (Debian: build-essential))
	@version=$$(rustc --version | cut -d ' ' -f 2); \
	    printf '%s\n' $(rust) "$$version" | sort -VC || \
	    { echo "error: Rust $$version is too old: install $(rust) or newer with rustup" >&2; exit 1; }

# What only some tests need: clang, ONNX Runtime, what builds the Python package.
$(VENV)/%-made: $(VENV)/made
	@tools/$*.sh $(VENV)
	@touch $@

# For the C++ and DLPack headers: a library that speaks DLPack, a compiler with std::mdspan.
$(VENV)/cpp-made: $(VENV)/tbb-made
	@tools/pip.sh $(VENV) apache-tvm-ffi ziglang
	@touch $@

# For pools, and for them as well: oneTBB.
$(VENV)/tbb-made: $(VENV)/made
	@tools/pip.sh $(VENV) tbb-devel
	@touch $@

# A checkpoint of 1.2 MB, Silero VAD, under the MIT licence; only the file in it is wanted.
$(VENV)/checkpoint-made: $(VENV)/made
	@tools/pip.sh $(VENV) --no-deps silero-vad
	@touch $@

$(VENV)/made: tools/requirements-dev.txt
	$(call need,python3,Python 3.10 or newer)
	@tools/venv.sh $(VENV)
	@touch $@

$(DOCS_VENV)/made: tools/requirements-docs.txt
	$(call need,python3,Python 3.11 or newer)
	@tools/venv.sh $(DOCS_VENV) $<
	@touch $@

include tools/measure.mk tools/package.mk
