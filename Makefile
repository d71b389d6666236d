# Thin on purpose: what a target does is in scripts/. Variables that people set:
#   STATE=DIR LISTEN=ADDR:PORT   make up, make down: which Ringfence (default .ringfence)
#   JOBS=N                       how many compilers at once (default: by cores and memory)
#   PRESET=dev                   make test with another preset, such as the sanitizers'
#   TESTS=REGEX                  make test: only the unit tests and corpora whose names match
#   FUZZ_SECONDS=60 FUZZER=NAME  make fuzz: time for each fuzzer; only this one
#   FAULT_SEED=N FAULT_ROUNDS=30 make faults: the dice; how many rounds of kills at random times
#   FAULT_ONLY=NAME              make faults: only tests whose names hold this
#   SEED=N LIVES=N TRACE=1       make simulate: from which seed, how many leases; say everything
#   ALL=1                        make lint: clang-tidy on every file, not only on changed ones
#   BENCH=NAME                   make bench: only this one, as api or audit
.DEFAULT_GOAL := help
export STATE LISTEN JOBS PRESET TESTS FUZZ_SECONDS FUZZER ALL BENCH FAULT_SEED FAULT_ROUNDS FAULT_ONLY \
  SEED LIVES TRACE

.PHONY: help setup build up down test tour bench soak faults fmt lint fuzz peers simulate kernels gpu-test tsan \
  package package-test clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install from Debian's packages what is missing to build, run and test
	@scripts/setup.sh build run test

build: ## build the release: build/release/ringfence
	@scripts/setup.sh build
	@scripts/build.sh release

up: ## build, start a server and a node here, wait until healthy, leave them running
	@scripts/setup.sh build run
	@scripts/build.sh release
	@scripts/service.sh up

down: ## stop what `make up` started; its state stays
	@scripts/service.sh down

test: ## build and run all tests; the last line has the counts (CI=true: a skip fails)
	@scripts/setup.sh build run test
	@scripts/test.sh

faults: ## kill, fill, cut, garble and jump at every step of a lease; prints a table (about 30 minutes)
	@scripts/setup.sh build run test
	@scripts/faults.sh

tour: ## play the five-minute story by itself, in a state folder of its own
	@scripts/setup.sh build run
	@scripts/build.sh release
	@scripts/tour.sh

bench: ## measure what docs/specification.md promises; results go into bench/LEDGER.md
	@scripts/setup.sh build run bench
	@scripts/build.sh release all ringfence_bench
	@scripts/bench.sh

soak: ## half an hour of jobs and requests: memory and open files must stay flat
	@scripts/setup.sh build run bench
	@scripts/build.sh release all ringfence_bench
	@LEDGER=1 bench/soak.py

fmt: ## format the C++ sources in place
	@scripts/setup.sh format
	@scripts/lint.sh fmt

lint: ## check format, layers, scripts, and clang-tidy on what changed (ALL=1: on everything)
	@scripts/setup.sh build test format lint
	@scripts/lint.sh check

fuzz: ## run each fuzzer for FUZZ_SECONDS (default 60) with libFuzzer, ASan and UBSan
	@scripts/setup.sh build fuzz
	@scripts/fuzz.sh

peers: ## other implementations judge the audit log, decisions and matches (needs Go; cargo)
	@scripts/setup.sh build run test
	@scripts/peers.sh

simulate: ## run LIVES leases (default 20000) of simulated worlds from SEED (default: a new one)
	@scripts/setup.sh build test
	@scripts/simulate.sh

kernels: ## compile the scrub's kernels to PTX again (where there is an nvcc; no build needs it)
	@scripts/kernels.sh

gpu-test: ## try the stand-ins and the scrub against a real NVIDIA driver (on a GPU machine)
	@scripts/setup.sh build run test
	@scripts/build.sh test
	@tests/gpu/run.sh

tsan: ## unit tests under the thread sanitizer
	@scripts/setup.sh build run test
	@PRESET=tsan UNIT_ONLY=1 scripts/test.sh

package: ## make build/package/ringfence_VERSION_ARCH.deb
	@scripts/setup.sh build package
	@scripts/build.sh release
	@scripts/package.sh

package-test: ## install, use, upgrade and purge the package on a bare Debian booted in namespaces (root)
	@scripts/setup.sh build package package-test
	@scripts/build.sh release
	@RINGFENCE_BUILD_DIR=$(CURDIR)/build/release /usr/bin/python3 -B -m pytest -p no:cacheprovider -q tests/package

clean: ## remove everything that was built (not the state of `make up`)
	@rm -rf build
