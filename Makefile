# The commands that people run. CMakeLists.txt builds everything; this file provides the tools that the
# machine lacks.

PREFIX = /usr/local
CMAKE_FLAGS =
SECONDS = 60
BUILD := build/release
VENV := .venv
DOCS_VENV := .venv-docs
C_FILES := $(wildcard c-tests/*.[ch] c-tests/*/*.[ch]* examples/*.[ch] examples/*/*.[ch]* bench/*.[ch] \
    bench/neon/*.c packaging/conan/test_package/*.c adapters/openvino/src/*.[ch]pp) include/libsplit.hpp include/libsplit_dlpack.h

# The tools in .venv come first. cargo is found even before the first login after its installation.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH):$(HOME)/.cargo/bin

# For programs that the examples and their tests start.
export BUILD_DIR := $(CURDIR)/$(BUILD)
export PYTHON := $(CURDIR)/$(VENV)/bin/python

# cargo and ninja schedule their own jobs, and must not see this make's variables.
unexport MAKEFLAGS
.NOTPARALLEL:

# The build needs CMake 3.20 and the tests need 3.22. If the machine's is older, one is installed in .venv.
cmake := $(shell echo 'cmake_minimum_required(VERSION 3.22)' | \
                 PATH="$(PATH)" cmake -P /dev/stdin 2>/dev/null || echo $(VENV)/cmake-made)
adapter := adapters/onnxruntime/Cargo.toml
python := python/Cargo.toml
tool := cli/Cargo.toml
manifests := Cargo.toml fuzz/Cargo.toml $(adapter) $(python) $(tool)
rust := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
jobs := $(shell getconf _NPROCESSORS_ONLN)
prefix := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
need = @command -v $(1) >/dev/null || { echo "error: no $(1): install $(2)" >&2; exit 1; }
built = @cmake --build $(BUILD) --parallel $(jobs) --target

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-19s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: configure $(VENV)/onnxruntime-made $(VENV)/checkpoint-made ## build libsplit and run it on real input: 4 minutes
	@echo "==> run: build the library, an example, the tool and the provider for ONNX Runtime"
	$(built) libsplit-build planes libsplit-cli libsplit-onnxruntime
	@echo "==> run: the examples"
	@examples/run.sh
	@echo "==> run: a model in ONNX Runtime"
	@"$(PYTHON)" adapters/onnxruntime/run.py

# The tests of something that cannot be built fail in the list at the end.
all := all libsplit-cli libsplit-onnxruntime
keep_going = $$([ -e $(BUILD)/build.ninja ] && echo -k 0 || echo -k)
run_tests = $(built) $(all) -- $(keep_going) || echo "error: some targets could not be built" >&2; \
    "$(PYTHON)" tools/test.py $(BUILD)

# The unit tests come first: they are quick, and name the loop.
.PHONY: check
check: configure ## run the tests of the engine, after a change in src/copy/: 1 minute
	$(built) engine
	@cargo test --quiet --locked --features ndarray,rayon --lib copy::
	@ctest --test-dir $(BUILD) --label-regex '^engine$$' --parallel $(jobs) --output-on-failure

.PHONY: test
test: test-says cxx $(VENV)/made configure ## run the tests that cover every promise: 10 minutes
	$(run_tests) --label-exclude slow

.PHONY: test-says
test-says:
	@echo "==> test: takes about 10 minutes on two idle cores. It downloads crates, and 500 MB of Python packages"
	@echo "    to $(VENV), and continues after failures. 'make test-all' runs the other tests too."

.PHONY: test-all
test-all: test-all-says cxx configure $(VENV)/lint-made ## run all tests, as CI does: 40 minutes
	$(run_tests)

.PHONY: test-all-says
test-all-says:
	@echo "==> test-all: takes about 40 minutes on two idle cores. It downloads what 'make test' does, and also JAX,"
	@echo "    PyArrow, Warp, OpenVINO, ziglang, Sphinx and Rust's libraries for other CPUs. As root on Debian, it installs"
	@echo "    compilers for those CPUs."

# Under sudo, this only installs what has already been built, because root may not have cargo.
.PHONY: install install-cli install-onnxruntime
install: $(if $(SUDO_USER),,library) ## install the library in PREFIX (default: /usr/local), within DESTDIR if that is set: 1 minute
	$(call install,)

install-cli: $(if $(SUDO_USER),,cli) ## install the command-line tool in PREFIX
	$(call install,--component tool)

install-onnxruntime: $(if $(SUDO_USER),,onnxruntime) ## install the provider for ONNX Runtime in PREFIX
	$(call install,--component onnxruntime)

.PHONY: uninstall
uninstall: ## remove from PREFIX what this version has installed there; honours DESTDIR
	@echo "==> uninstall: $(DESTDIR)$(prefix)"
	@DESTDIR="$(DESTDIR)" tools/uninstall.sh $(BUILD) "$(prefix)"

# Under sudo, the manifest would belong to root and block the next installation.
define install
	@echo "==> install: $(DESTDIR)$(prefix)"
	@[ -e $(BUILD)/cmake_install.cmake ] || \
	    { echo "error: nothing is built yet: run 'make library' first, without sudo" >&2; exit 1; }
	@cmake --install $(BUILD) --prefix "$(prefix)" $(1)
	@rm -f $(BUILD)/install_manifest*.txt
endef

.PHONY: build
build: configure ## build everything: the library, the tool, the provider, the examples, the C tests
	$(built) $(all)

.PHONY: library
library: configure ## build the library alone
	$(built) libsplit-build

.PHONY: cli
cli: configure ## build the command-line tool
	$(built) libsplit-cli

.PHONY: onnxruntime
onnxruntime: configure ## build the provider for ONNX Runtime
	$(built) libsplit-build libsplit-onnxruntime

.PHONY: configure
configure: toolchain $(cmake)
	@mkdir -p $(BUILD) && if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi; \
	    cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_TEST_REPOSITORY=ON $(CMAKE_FLAGS) \
	    >$(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }

.PHONY: windows
windows: toolchain $(cmake) ## build the library for Windows and run the C tests under Wine
	@tools/windows.sh

.PHONY: macos
macos: toolchain $(VENV)/made ## build the library for macOS and link the C tests
	@tools/macos.sh $(VENV)

.PHONY: python
python: toolchain $(VENV)/python-made ## build the wheel of the Python package, in out/python
	@echo "==> build: the wheel of the Python package"
	@tools/wheel.sh $(VENV) out/python --zig --compatibility manylinux_2_17

# Sphinx reads only docs/; docs/generated/ is made from the library and its headers.
.PHONY: docs
docs: library $(VENV)/made $(DOCS_VENV)/made ## build the guide and the API reference in build/docs/site
	@echo "==> docs: $(CURDIR)/build/docs/site/index.html"
	@cd docs && "$(PYTHON)" -m generate
	@"$(DOCS_VENV)/bin/sphinx-build" --quiet --fresh-env --fail-on-warning --jobs auto docs build/docs/site
	@cargo doc --quiet --locked --no-deps --lib --target-dir build/docs/target
	@rm -rf build/docs/site/rust && cp -r build/docs/target/doc build/docs/site/rust

.PHONY: header
header: toolchain ## generate include/libsplit.h from the Rust sources
	@echo "==> header: include/libsplit.h"
	@LIBSPLIT_UPDATE_HEADER=1 cargo test --locked --test header

.PHONY: fuzz
fuzz: toolchain ## fuzz the C functions and file headers, each for SECONDS (default: 60)
	@tools/fuzz.sh $(SECONDS)

.PHONY: lint
lint: toolchain $(VENV)/lint-made ## check the code with cargo fmt, cargo clippy and clang-format
	@echo "==> lint: cargo fmt, clang-format, cargo clippy"
	@(for each in $(manifests); do cargo fmt --all --manifest-path $$each --check || exit; done) && \
	    clang-format --dry-run -Werror $(C_FILES) || \
	    { echo "error: some files are not formatted: run 'make format'" >&2; exit 1; }
	@cargo clippy --locked --workspace --all-targets --features ndarray,rayon,tune -- -D warnings
	@cargo clippy --locked --manifest-path $(adapter) --all-targets \
	    --target-dir target/onnxruntime -- -D warnings
	@cargo clippy --locked --manifest-path $(python) --target-dir target/python -- -D warnings
	@cargo clippy --locked --manifest-path $(tool) --workspace --all-targets \
	    --target-dir target/cli -- -D warnings

.PHONY: format
format: toolchain $(VENV)/lint-made ## format the code as lint requires
	@echo "==> format: cargo fmt, clang-format"
	@for each in $(manifests); do cargo fmt --all --manifest-path $$each; done
	@clang-format -i $(C_FILES)

.PHONY: clean
clean: ## remove what was built
	rm -rf build out target

.PHONY: distclean
distclean: clean ## remove what was built, and the tools in .venv
	rm -rf .venv .venv-*

.PHONY: toolchain
toolchain:
	$(call need,cargo,Rust $(rust) or newer with rustup)
	$(call need,cc,a C compiler (Debian: gcc and libc6-dev))
	@version=$$(rustc --version | cut -d ' ' -f 2); \
	    printf '%s\n' $(rust) "$$version" | sort -VC || \
	    { echo "error: Rust $$version is too old: install $(rust) or newer with rustup" >&2; exit 1; }

# Examples and tests in C++ are left out of a build without it.
.PHONY: cxx
cxx:
	$(call need,c++,a C++ compiler (Debian: g++))

# Needed by only some targets: ONNX Runtime, and the tools for the Python package.
$(VENV)/%-made: $(VENV)/made
	@tools/$*.sh $(VENV)
	@touch $@

$(VENV)/lint-made: $(VENV)/made
	@tools/pip.sh $(VENV) clang-format
	@touch $@

# oneTBB, for thread pools and for the C++ header's tests.
$(VENV)/tbb-made: $(VENV)/made
	@tools/pip.sh $(VENV) tbb-devel
	@touch $@

# A checkpoint of 1.2 MB, Silero VAD, under the MIT licence. Only that file of the package is used.
$(VENV)/checkpoint-made: $(VENV)/made
	@tools/pip.sh $(VENV) --no-deps silero-vad
	@touch $@

# What tests, examples and documents need, and pkg-config if the machine lacks it.
$(VENV)/made: $(VENV)/new $(cmake)
	@tools/pip.sh $(VENV) numpy pillow safetensors tqdm $(shell command -v pkg-config >/dev/null || echo pkgconf)
	@touch $@

# All that the build needs.
$(VENV)/cmake-made: $(VENV)/new
	@tools/pip.sh $(VENV) cmake ninja
	@touch $@

$(VENV)/new: tools/requirements-dev.txt
	$(call need,python3,Python 3.10 or newer)
	@tools/venv.sh $(VENV)
	@touch $@

$(DOCS_VENV)/made: tools/requirements-docs.txt
	$(call need,python3,Python 3.11 or newer)
	@tools/venv.sh $(DOCS_VENV) $<
	@touch $@

include tools/measure.mk tools/package.mk
