# The verbs of the project. `make` alone lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -u -o pipefail -c
GO       ?= go
FUZZTIME ?= 10m
ROUNDS   ?= 200
DURATION ?= 30m
STORES   ?= 1
PDS      ?= 1
UNIT      = $(shell $(GO) list ./... | grep -v '/e2e')

# What `make test` compiles is compiled once: without the server's profile, since staticcheck asks for packages without it. Other verbs compile
# the server as everybody does.
vet unit e2e: export GOFLAGS := $(GOFLAGS) -pgo=off

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' Makefile

test: vet unit e2e  ## all that must hold: vet, every Go test with its fuzz seeds, real clients and a short crash run

vet:  ## go vet, staticcheck, and that gofmt has nothing to say
	@export GOGC=400 && $(GO) vet ./... && $(GO) tool staticcheck ./... && test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"

# Three packages at a time: the first of them, with all that members of a set do, mostly waits.
unit:  ## the Go tests
	@$(GO) test -vet=off -p 3 -parallel 6 -timeout 15m $(UNIT)

race:  ## the Go tests under the race detector, with what iterators handed out spoilt when they move on
	@$(GO) test -race -tags invariants -timeout 60m $(UNIT)

e2e:  ## the real binary: mongosh, Node, Python, Java and Go clients, and kill -9
	@e2e/install.sh && $(GO) build -o bin/e2e/ebb ./cmd/ebb && $(GO) test -vet=off -p 3 -count=1 -timeout 15m -v ./e2e/... | grep -Ev '^ *=== ' 

e2e-console:  ## the console in a browser: what `make e2e` leaves out, a million documents among it
	@e2e/install.sh && $(GO) test -count=1 -timeout 15m -v ./e2e -run 'TestConsole' -args -console | grep -Ev '^ *=== '

console:  ## the console's bundle, internal/console/assets, out of its sources
	@cd console && npm ci --ignore-scripts --loglevel=error --no-progress && npm run --silent check && npm run --silent build

fuzz:  ## each fuzz target for FUZZTIME
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' internal | sed 's|/[^/]*:func | |' | while read -r dir name; do \
	  echo "$$dir $$name" && $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$dir || exit 1; done

crash:  ## kill -9 under mixed load, ROUNDS times
	@$(GO) test -count=1 -timeout 4h -v ./e2e/crash -args -rounds $(ROUNDS)

upgrade:  ## directories that builds of the commits FROM=commit,commit wrote, opened by today's, and back
	@$(GO) test -count=1 -timeout 1h -v ./e2e/upgrade -args -from $(FROM)

isolation:  ## transactions beside one another for DURATION, three times: with errors, with kill -9, and document by document
	@$(GO) test -count=1 -timeout 8h -v ./e2e/isolation -args -duration $(DURATION)

tikv-up:  ## a TiKV cluster in the foreground to try Ebb on, STORES stores and PDS placement drivers; builds PD and the store once
	@$(GO) build -trimpath -o bin/tikv-up ./e2e/tikv/up && exec bin/tikv-up -stores $(STORES) -pds $(PDS)

tikv:  ## the engine over TiKV, and servers on it, against a real cluster
	@$(GO) build -trimpath -o bin/tikv-up ./e2e/tikv/up
	@bin/tikv-up -stores $(STORES) $(GO) test -count=1 -timeout 40m ./internal/kv/tikvkv && bin/tikv-up $(GO) test -count=1 -timeout 20m ./e2e -run 'Clients$$' && \
	$(GO) test -count=1 -timeout 20m ./internal/command ./internal/storage ./internal/storage/sweeper -args -tikv && $(GO) test -count=1 -timeout 40m -v ./e2e/tikv -args -tikv -stores $(STORES)

tikv-chaos:  ## three servers over three stores and three placement drivers, disturbed for DURATION (needs root for partitions)
	@$(GO) test -count=1 -timeout 8h -v ./e2e/tikv -run TestChaos -args -tikv -chaos $(DURATION)

chaos:  ## a replica set in network namespaces, disturbed for DURATION (needs root)
	@$(GO) test -count=1 -timeout 8h -v ./e2e/chaos -run TestChaos -args -chaos $(DURATION)

bench:  ## Go benchmarks of every package
	@$(GO) test -run '^$$' -bench . -benchmem $(UNIT)

profile:  ## cmd/ebb/default.pgo, by which Go compiles the server: what it spends its time on under bench; eight minutes
	@$(GO) build -pgo=off -tags cpuprofile -o bin/ebb-profiled ./cmd/ebb && $(GO) build -pgo=off -o bin/bench ./bench && rm -rf bin/profiles && mkdir bin/profiles
	@EBB_CPU_PROFILE=$(CURDIR)/bin/profiles bin/bench -ebb bin/ebb-profiled -results '' -runs 1 -for 10s -expiry-docs 200000 -steady-for 40s -lead 60s \
	  -workloads 'bulk,bulk-ttl,insert,find,range,covered,sort,aggregate,group,ycsb-a,ycsb-e,transaction,expiry-half,expiry-second,sliding,set,indexes-2'
	@$(GO) tool pprof -proto bin/profiles/*.pprof > cmd/ebb/default.pgo

run:  ## a server on 127.0.0.1:27017 with its data in ./data
	@$(GO) run ./cmd/ebb serve

build:  ## bin/ebb, static
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/ebb ./cmd/ebb

packages:  ## dist-packages: binaries for six platforms, man pages, completions, .deb and .rpm
	@deploy/packages/build.sh

packages-try:  ## the .deb, installed, started (under systemd, too), upgraded and removed, apart from this machine; as root, on Linux
	@deploy/packages/tries.sh

site:  ## site/: the documentation as web pages
	@python3 -m venv .site && .site/bin/pip install --quiet --disable-pip-version-check -r deploy/site/requirements.txt && .site/bin/mkdocs build --quiet

fmt:  ## gofmt everything
	@gofmt -w $$(git ls-files '*.go')

clean:  ## remove what was built and installed here
	@rm -rf bin dist dist-packages site .site examples/node_modules e2e/node/node_modules e2e/python/.venv e2e/java/target console/node_modules e2e/console/node_modules

.PHONY: help test vet unit race e2e e2e-console console fuzz crash upgrade isolation chaos tikv-up tikv tikv-chaos bench profile run build packages packages-try site fmt clean
