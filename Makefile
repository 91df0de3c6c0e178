# make test is all that a change must pass; make lint what a reviewer should not have to say.

LINT := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Modules of their own, so that importing the SDK pulls in none of what they need. Their tests start a redis-server; where
# it is not installed they are skipped, unless REQUIRE_REDIS=1.
MODULES := redislimit examples/distributed-purge

# How long make soak works.
DURATION ?= 60s

.PHONY: all test lint fmt bench cover soak

all: lint test

test:
	go test -race ./...
	cd testdata/consumer && go vet ./... && go build -o /dev/null ./...
	for m in $(MODULES); do (cd $$m && go vet ./... && go test -race ./...) || exit 1; done

lint:
	$(LINT) run ./...
	go mod tidy -diff
	for m in $(MODULES); do (cd $$m && $(LINT) run -c $(CURDIR)/.golangci.yml ./... && go mod tidy -diff) || exit 1; done

fmt:
	$(LINT) fmt ./...
	for m in $(MODULES); do (cd $$m && $(LINT) fmt -c $(CURDIR)/.golangci.yml ./...) || exit 1; done

bench:
	go test -run '^$$' -bench . -benchmem ./...

cover:
	go test -coverpkg=./... -coverprofile=cover.out ./...
	go tool cover -func=cover.out | tail -n 1

soak:
	go test -race -count=1 -timeout=0 -v -run TestOverTCP ./internal/soak -soak.duration=$(DURATION)
