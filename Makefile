# The commands for users and developers. They need only Go, except for the tests with real
# programs such as containerd: those say what is missing.

# The modules of make test, and those that need a real API server or are tools.
FIRST     := . lifecycle/virtualkubelet lifecycle/criruntime internal/fork examples
MODULES   := $(FIRST) internal/apiservertest internal/tools
CONTAINERD := internal/containerd/2.3 internal/containerd/2.4
# The oldest Go with which the library builds: the newest patch of the version in go.mod. The go
# command downloads it when it is first needed. Under it go test leaves out the tests that need TEST_GO,
# most of them for testing/synctest: their files have the build constraint go1.25.
OLDEST_GO := go1.24.13
TEST_GO   := go1.25.14
LIBRARY   := . lifecycle/virtualkubelet lifecycle/criruntime
TOOL      := go tool -modfile=$(CURDIR)/internal/tools/go.mod
GOTESTSUM := $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg
# The race detector needs a C compiler. Without one the tests run without the race detector.
RACE      := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
# Packages without goroutines, with which the race detector has nothing to do.
PURE      := kubegrace/(graceperiod|validation|shutdown/plan|shutdown/internal/(node|timetable)|lifecycle/(stopsignal|internal/hookhttp)|internal/(deptest|docprogram|features|fork|logindconf|nilcheck|podcondition|readme|staticpod|times|tools)|examples/(small|internal|kubegrace-node/internal/(kubeletconfig|output|podlist|view)))(/|$$)|examples/kubegrace-node$$
# The flags of make test. make lint vets all modules.
QUICK     := -short -vet=off -timeout 30m
# Many tests with real programs wait more than they compute, so that more of them run at once than there are cores.
WAITING   := -timeout 30m -p 4 -parallel 4
# For make bench: the time of one run of a benchmark, and the number of runs of each.
BENCHTIME ?= 200ms
COUNT     ?= 6
SCREENSHOT := chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --log-level=3
# The folder in which make containerd puts its containerds, by minor; empty if there are none.
export KUBEGRACE_CONTAINERD ?= $(wildcard $(CURDIR)/.cache/containerd)
# For make fuzz: the time for each target.
FUZZTIME  ?= 10s
# For make edits: how many; the seed is the date unless SEED names one.
EDITS     ?= 200

.PHONY: help demo pictures test check race apiserver containerd compat e2e machines ordeal dist soak bench lint release-check fuzz edits vulncheck

help: ## show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## drain a small node in this terminal: the main job, on the embedded runtime
	@echo "Building the example agent; the first time this takes a few minutes."
	@cd examples && go run ./kubegrace-node demo --config kubegrace-node/demo/kubelet.yaml --manifests kubegrace-node/demo/pods

# Each picture is in the folder "pictures" beside the page that shows it.
pictures: ## draw the pictures of the examples anew, from real runs (about a minute; needs chromium)
	@command -v chromium > /dev/null || { echo "make pictures needs chromium: apt-get install chromium" >&2; exit 1; }
	@rm -rf .cache/pictures && mkdir -p .cache/pictures
	@cd examples && go build -o ../.cache/pictures/ ./kubegrace-node ./zerodowntime
	@cd examples && ../.cache/pictures/zerodowntime --picture zerodowntime/pictures/lost-requests.svg
	@cd examples && ../.cache/pictures/kubegrace-node demo --config kubegrace-node/demo/kubelet.yaml --manifests kubegrace-node/demo/pods --shutdown-after 1s --state-dir $(CURDIR)/.cache/pictures/state
	@.cache/pictures/kubegrace-node report --state-dir .cache/pictures/state -o html > .cache/pictures/drain.html
	@cd examples && ../.cache/pictures/kubegrace-node plan --agent kubegrace --config kubegrace-node/demo/kubelet.yaml --limit 16s -o html kubegrace-node/demo/pods > ../.cache/pictures/plan.html || test $$? = 2
	@$(SCREENSHOT) --window-size=900,1090 --screenshot=examples/kubegrace-node/pictures/drain.png file://$(CURDIR)/.cache/pictures/drain.html
	@$(SCREENSHOT) --window-size=900,1390 --screenshot=examples/kubegrace-node/pictures/plan.png file://$(CURDIR)/.cache/pictures/plan.html

# The tests say what they leave out in lines with "left to make check".
test: ## run the tests that need Go alone; they take a few minutes
	@rm -rf .cache/test && mkdir -p .cache/test
	@set -e; for module in $(FIRST); do (cd $$module && $(GOTESTSUM) --hide-summary skipped --jsonfile $(CURDIR)/.cache/test/$$(basename $$PWD).json -- $(QUICK) ./...); done
	@echo "Left to make check: the race detector; $(filter-out $(FIRST),$(MODULES)); $$(sed -n 's/.*left to make check: \([^"\]*\).*/\1/p' .cache/test/*.json | sort -u | paste -s -d ';' | sed 's/;/; /g')"

check: ## run everything else: linters, all tests with the race detector, soak, old and new Kubernetes, machines
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory containerd
	@$(MAKE) --no-print-directory race KUBEGRACE_CONTAINERD=$(CURDIR)/.cache/containerd
	@echo "make e2e uses the release that make race has made. Beside it run make soak, for five minutes, and make compat."; \
	  $(MAKE) --no-print-directory soak > .cache/soak.txt 2>&1 & soak=$$!; \
	  nice $(MAKE) --no-print-directory compat ONLY='newest oldest' TESTFLAGS=-short > .cache/compat.txt 2>&1 & compat=$$!; \
	  if test -z "$(E2E_MISSING)" || test "$$KUBEGRACE_NEED_ALL" = 1; then $(MAKE) --no-print-directory machines; \
	  else echo "Left out: make e2e, which needs $(E2E_MISSING)"; fi; rest=$$?; \
	  wait $$compat || rest=$$?; cat .cache/compat.txt; \
	  if wait $$soak; then tail -n 60 .cache/soak.txt; else rest=1; cat .cache/soak.txt; fi; exit $$rest

# Tests the packages of all modules that "grep $(1)" finds by PURE, with more flags of gotestsum and go test.
define test_packages
set -e; for module in $(MODULES); do (cd $$module; packages=$$(go list ./...); echo "$$packages" | grep $(1) '$(PURE)' | \
  xargs -r $(GOTESTSUM) --jsonfile $(CURDIR)/.cache/race/$$(basename $$PWD)$(1).json $(2)); done
endef

race: export KUBEGRACE_APISERVER := $(CURDIR)/.cache/apiserver
race: export KUBEGRACE_DIST := $(CURDIR)/.cache/dist
race: ARCHS := amd64
race: apiserver dist ## run all tests of all modules with the race detector; those that miss a Debian package are listed
	@$(if $(RACE),,echo "no C compiler: the tests run without the race detector")
	@rm -rf .cache/race && mkdir -p .cache/race
	@$(call test_packages,-vE,-- -vet=off $(RACE) $(WAITING))
	@echo "The packages without goroutines run as in make test, whose results the go command may have cached:"
	@$(call test_packages,-E,--hide-summary skipped -- $(QUICK))
	@echo "The tests that have left something out now run in full, without the race detector:"
	@sed -n 's|.*"Package":"github.com/kubegrace/kubegrace/\([^"]*\)","Test":"\([^"/]*\).*left to make check: .*|\1 \2|p' .cache/race/*.json | sort -u | \
	  awk '{ tests[$$1] = tests[$$1] "|" $$2 } END { for (folder in tests) print folder, substr(tests[folder], 2) }' | \
	  while read -r folder tests; do (cd $$folder && $(GOTESTSUM) -- -vet=off -timeout 30m -run "^($$tests)\$$" . < /dev/null) || exit; done

# Tests that need an API server build it too, but go test shows their notice only at the end.
apiserver:
	@echo "Building the API server of the tests; the first time this takes a few minutes." >&2
	@go build -C internal/apiserver -buildvcs=false -mod=readonly -o $(CURDIR)/.cache/apiserver .

containerd: ## build containerd 2.3 and 2.4, which the tests then use in addition to Debian's 1.6
	@set -e; for minor in 2.3 2.4; do \
	  echo "Building containerd $$minor; the first time this takes some minutes." >&2; \
	  CGO_ENABLED=0 go build -C internal/containerd/$$minor -mod=readonly -tags 'no_btrfs no_devmapper no_zfs' -o $(CURDIR)/.cache/containerd/$$minor/ $$(go -C internal/containerd/$$minor tool | grep /); \
	done

compat: export KUBEGRACE_APISERVER := $(CURDIR)/.cache/apiserver
compat: apiserver ## test with every minor of Kubernetes, in a copy; ONLY='newest v0.35' tests these
	@OLDEST_GO=$(OLDEST_GO) TEST_GO=$(TEST_GO) TESTFLAGS='$(TESTFLAGS)' internal/tools/compat.sh $(ONLY)

E2E_PROGRAMS := containerd ctr runc busybox debootstrap systemd-nspawn nsenter journalctl
E2E_PACKAGES := containerd runc busybox-static debootstrap systemd-container util-linux systemd

# What this machine lacks for make e2e; empty if it lacks nothing.
E2E_MISSING = $(strip $(shell test "$$(id -u)" = 0 || echo root; for program in $(E2E_PROGRAMS); do command -v $$program > /dev/null || echo $$program; done))

# A missing program is a failure, because a run that skips every test would look like a success.
e2e: ARCHS := amd64
e2e: dist machines ## power off whole machines under the agent, and ask it about them, with systemd 252 and 257 (root, Debian 12)

# What make e2e does with the release that make dist has made.
machines: export KUBEGRACE_NEED_ALL := 1
machines: export KUBEGRACE_CONTAINERD := $(CURDIR)/.cache/containerd
machines: export KUBEGRACE_DIST := $(CURDIR)/.cache/dist
machines:
	@test -z "$(E2E_MISSING)" || { echo "make e2e needs $(E2E_MISSING): as root, apt-get install $(E2E_PACKAGES)" >&2; exit 1; }
	@$(MAKE) --no-print-directory apiserver
	@$(MAKE) --no-print-directory containerd
	@echo "Making the machines' file systems, which are fetched from Debian the first time." >&2
	@cd examples && go test -tags e2e -vet=off -count=1 -timeout 30m -run '^TestEachReleaseBoots$$' ./internal/machine
	@cd examples && $(GOTESTSUM) --format standard-verbose -- -tags e2e -vet=off -count=1 $(WAITING) ./internal/machine ./kubegrace-node/e2e/...

# It goes on where it was interrupted: .cache/ordeal has the seeds that are done.
ordeal: export KUBEGRACE_NEED_ALL := 1
ordeal: export KUBEGRACE_CONTAINERD := $(CURDIR)/.cache/containerd
ordeal: export KUBEGRACE_APISERVER := $(CURDIR)/.cache/apiserver
ordeal: export KUBEGRACE_ORDEAL ?= 100
ordeal: apiserver containerd ## a million seeds of the simulators and a deeper walk; power off 100 machines each with systemd 252 and 257 while what they need is killed (root, Debian 12)
	@KUBEGRACE_SIM_SEEDS=1000000 KUBEGRACE_WALK_DEPTH=9 go test -count=1 -timeout 0 -run '^(TestSimul.*|TestAllInputSequences|TestKillIsTheKubelets|TestDrainMatchesTheKubeletsModel)$$' ./lifecycle ./shutdown ./shutdown/internal/node
	@test -z "$(E2E_MISSING)" || { echo "make ordeal needs $(E2E_MISSING): as root, apt-get install $(E2E_PACKAGES)" >&2; exit 1; }
	@cd examples && go test -tags e2e -count=1 -timeout 0 -v -run '^TestOrdeal$$' ./kubegrace-node/e2e

# Where make dist puts what is released, its name there, and the machines that it is for.
DIST         := $(CURDIR)/.cache/dist
DIST_VERSION ?= $(shell git describe --tags --always --dirty)
ARCHS        := amd64 arm64

# The files of one commit are the same wherever they are made. A package needs a number before its first tag.
dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: export VERSION = $(if $(filter v%,$(DIST_VERSION)),,0.0.0+)$(DIST_VERSION)
dist: ## make what is released of kubegrace-node, in .cache/dist: static programs, packages, man pages, completion, SBOMs, checksums
	@rm -rf $(DIST) && mkdir -p $(DIST)/share
	@cd examples && go run ./kubegrace-node/internal/manpages $(DIST)/share
	@cp LICENSE $(DIST)/share && cd examples/kubegrace-node && cp -r *.md kubegrace-node.service rbac.yaml deploy $(DIST)/share
	@cd examples && for shell in bash zsh fish; do go run ./kubegrace-node completion $$shell > $(DIST)/share/kubegrace-node.$$shell; done
	@set -e; for arch in $(ARCHS); do name=kubegrace-node_$(DIST_VERSION)_linux_$$arch; \
	  (cd examples && CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -buildvcs=true -ldflags '-s -w' -o $(DIST)/$$arch/kubegrace-node ./kubegrace-node); \
	  (cd examples && $(TOOL) cyclonedx-gomod bin -json -std -noserial -notimestamp -version $(DIST_VERSION) -output $(DIST)/$$name.cdx.json $(DIST)/$$arch/kubegrace-node); \
	  chmod -R u=rwX,go=rX $(DIST)/share $(DIST)/$$arch; \
	  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$$SOURCE_DATE_EPOCH -c -C $(DIST)/$$arch kubegrace-node -C $(DIST) share | gzip -n > $(DIST)/$$name.tar.gz; \
	  for packager in deb rpm; do (cd $(DIST) && ARCH=$$arch $(TOOL) nfpm package --config share/deploy/package/nfpm.yaml --packager $$packager); done; \
	done
	@cd $(DIST) && sha256sum *.tar.gz *.deb *.rpm *.cdx.json > SHA256SUMS && cat SHA256SUMS

soak: export KUBEGRACE_SOAK ?= 5m
soak: export KUBEGRACE_NEED_ALL := 1
soak: ## restart and break agents on a real bus for five minutes, and check that nothing leaks; KUBEGRACE_SOAK=1h
	@go test $(RACE) -vet=off -count=1 -timeout 0 -v -run '^TestSoak$$' ./shutdown/logind

bench: export KUBEGRACE_APISERVER := $(CURDIR)/.cache/apiserver
bench: apiserver ## compare time and memory with the plain way of doing the same; ONLY='SignalToRelease|Start' measures these
	@echo "The figures of each run go into .cache/bench.txt; this takes a while." >&2; rm -f .cache/bench.txt
	@set -e; for module in $(MODULES); do (cd $$module && go test -run '^$$' -bench '$(or $(ONLY),.)' -benchtime $(BENCHTIME) -count $(COUNT) -timeout 0 ./...) >> .cache/bench.txt || { cat .cache/bench.txt; exit 1; }; done
	@$(TOOL) benchstat -col /way .cache/bench.txt

lint: ## formatting, linters, tidy modules, the oldest Go, builds off Linux, import rules, comments, pages, workflows
	@test -z "$$(gofmt -l .)" || { gofmt -d . ; exit 1; }
	@set -e; for module in $(MODULES) internal/apiserver; do (cd $$module && go mod tidy -diff && go fix -diff ./... && $(TOOL) golangci-lint run --allow-parallel-runners ./...); done
	@set -e; for toolchain in $(OLDEST_GO) $(TEST_GO); do for module in $(LIBRARY); do (cd $$module && GOTOOLCHAIN=$$toolchain go vet ./...); done; done
	@set -e; for module in $(CONTAINERD); do (cd $$module && go mod tidy -diff); done
	@set -e; export GOTOOLCHAIN=$(OLDEST_GO); for os in darwin windows; do for module in . lifecycle/virtualkubelet lifecycle/criruntime; do (cd $$module && GOOS=$$os go vet ./...); done; done
	@$(GOTESTSUM) -- $(QUICK) ./internal/deptest ./internal/readme
	@$(TOOL) actionlint
	@cd internal/tools && go run ./house --root $(CURDIR)

release-check: ## say what is missing for the tags of VERSION=v0.1.0, get it with go get in a copy, and compare the API with the last release
	@internal/tools/release-check.sh $(VERSION)
	@OLDEST_GO=$(OLDEST_GO) internal/tools/goget.sh $(VERSION)
	@$(TOOL) gorelease -version=$(VERSION) $(if $(shell git tag --list 'v*'),,-base=none)

fuzz: ## run each fuzz target for FUZZTIME (10s)
	@set -e; for module in $(MODULES); do (cd $$module; packages=$$(go list ./...); for package in $$packages; do \
	  listed=$$(go test -list '^Fuzz' $$package); for target in $$(echo "$$listed" | grep '^Fuzz'); do \
	    echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; done; done); done

# Some edits make a test allocate without end, so that no process may have more than 32 GB of addresses.
edits: export KUBEGRACE_APISERVER := $(CURDIR)/.cache/apiserver
edits: apiserver ## break the library with EDITS (200) random edits, and list those that no test notices; SEED=20261128 draws the same again
	@set -e; for module in $(LIBRARY); do (cd $$module && $(GOTESTSUM) --hide-summary skipped -- -timeout 30m ./...); done
	@cd internal/tools && ulimit -v 33554432 && go run ./edits --root $(CURDIR) --n $(EDITS) $(if $(SEED),--seed $(SEED))

vulncheck: ## look for known vulnerabilities that our code can reach, in all modules and in the containerds of the tests
	@set -e; for module in $(MODULES) internal/apiserver; do echo "== $$module"; $(TOOL) govulncheck -C $$module -test -tags e2e ./...; done
	@set -e; for module in $(CONTAINERD); do echo "== $$module"; $(TOOL) govulncheck -C $$module -tags no_btrfs,no_devmapper,no_zfs tool; done
