# make ci is what a change must pass (.ci/run calls it). make test and make lint are the two that are wanted often.

# The root and the tools stand alone. go.work joins the other modules to the root.
export GOWORK := off
JOINED := GOWORK=$(CURDIR)/go.work

LINT = $(shell cd tools && GOWORK=off go tool -n golangci-lint)

# Modules that users import beside the root.
LIBRARIES := redislimit redisqueue
API := $(CURDIR) $(addprefix $(CURDIR)/,$(LIBRARIES))

# Importing the SDK pulls in none of what these need. Some of their tests need a redis-server, Chromium, jq or promtool; where
# one is not installed they are skipped, unless REQUIRE_REDIS=1 (or CHROMIUM, JQ, PROMTOOL).
MODULES := $(LIBRARIES) cmd/webdelivery examples/integrations

# What a user imports, except package feed, which the tests of the root do not use.
PACKAGES = $(shell go list ./... | grep -v -e /internal/ -e /feed -e /examples)

# Statement coverage of these packages by the tests of the root and the suite must not fall below this, in percent.
COVERAGE := 94

FUZZTIME := 3s

BENCH := .

# The packages that the SDK stands on, each with tests at its own door; those of batch are at that of PurgeQueue.
INTERNAL := $(patsubst %,./internal/%,address batch lists pace paging redact resume rowjson transport wire)

# What depends on the width of an int.
WIDTHS := ./filters ./internal/rowjson ./internal/wire

GREMLINS := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

# Where a program with the SDK may run beside linux/amd64: another system, or an int of 32 bits. The other processors of
# these systems have the same files.
PLATFORMS := linux/386 darwin/arm64 windows/amd64

.PHONY: ci test test-packages test-modules test-coverage test-portable test-386 lint tidy vuln platforms api api-check api-breaking \
	fuzz fmt bench mutation release release-check

ci: lint tidy vuln platforms api-check test test-386 fuzz

# Every test runs with the race detector, but of the cases that a test generates only some (-short), as each takes ten times
# as long with it. Those with many run again without it, all cases, and tell what they cover. The tests of the other modules
# mostly wait, so they run beside those of the root. Fewer garbage collections save a seventh of the time. make lint vets.
test: export GOGC := 300
test: export GOFLAGS += -vet=off
test:
	@tools/missing.sh
	@$(MAKE) --no-print-directory -j2 -Otarget test-packages test-modules test-coverage

test-packages:
	go test -race -short -timeout 20m ./...

test-coverage:
	go test -timeout 20m ./internal/conformance ./internal/rowjson
	go test -timeout 20m -coverpkg=$(shell echo $(PACKAGES) $(INTERNAL) | tr ' ' ,) -coverprofile=cover.out . ./internal/suite
	@go tool cover -func=cover.out | awk -v least=$(COVERAGE) '/^total:/ { print "coverage: " $$3 ", at least " least "%"; \
		if ($$3 + 0 < least) exit 1 }'

test-modules:
	$(JOINED) go test -race ./redislimit ./redisqueue ./cmd/webdelivery/... ./examples/integrations/...
	cd tools && go test ./...
	cd tools/workflows && go test ./...

# What of the tests runs on every system: without the race detector, and without programs that may be missing.
test-portable:
	go test ./...
	$(JOINED) go test ./redislimit ./redisqueue ./cmd/webdelivery/... ./examples/integrations/...

lint:
	$(LINT) run ./...
	for m in tools tools/otlp tools/workflows; do (cd $$m && $(LINT) run ./...) || exit 1; done
	for m in $(MODULES); do (cd $$m && $(JOINED) $(LINT) run ./...) || exit 1; done

# go.mod and go.sum of every module say what its code says, and go install would build the command.
tidy:
	tools/release.sh
	for m in tools tools/otlp tools/workflows; do (cd $$m && go mod tidy -diff) || exit 1; done

# Known vulnerabilities in what is called, in every module that a user may import.
vuln:
	$(JOINED) tools/vuln.sh . $(MODULES)

# What depends on the width of an int, where it has 32 bits.
test-386:
	GOARCH=386 go vet $(WIDTHS)
	@if GOARCH=386 go test -run '^$$' ./filters >/dev/null 2>&1; then GOARCH=386 go test $(WIDTHS); else \
		echo "386: NOT RUN, because this kernel starts no 32-bit program"; fi

# What users build compiles on every platform that differs.
platforms:
	for p in $(PLATFORMS); do for m in . $(MODULES); do \
		echo "$$p $$m"; (cd $$m && $(JOINED) GOOS=$${p%/*} GOARCH=$${p#*/} go build ./...) || exit 1; done; done

# The public surface as a text, one line for each name. A change of it is seen, and meant.
api:
	cd tools && go run ./api $(API) > $(CURDIR)/api/current.txt

# The text says what is true.
api-check:
	@cd tools && go run ./api $(API) | diff -u $(CURDIR)/api/current.txt - || { \
		echo "The public surface is not what api/current.txt says: if the change is meant, run make api and commit the file."; exit 1; }

# Makes the release of the tag that is checked out, as .github/workflows/release.yml does.
release:
	cp /etc/ssl/certs/ca-certificates.crt tools/release/
	PATH="$$(dirname "$$(cd tools/release && go tool -n cyclonedx-gomod)"):$$PATH" $(JOINED) \
		"$$(cd tools/release && go tool -n goreleaser)" release --clean

# Tries a release of the last commit twice, without images and signatures, and compares the hashes. Needs some 20 minutes
# with empty caches.
release-check:
	tools/release/check.sh

# What of the surface of the last release is gone or changed.
api-breaking:
	tools/breaking.sh

# Every fuzz target of the root module for FUZZTIME each.
fuzz:
	tools/fuzz.sh $(FUZZTIME)

fmt:
	for m in . $(MODULES) tools tools/otlp tools/workflows; do (cd $$m && $(LINT) fmt ./...) || exit 1; done

# What the SDK costs beside net/http and encoding/json; takes some minutes. Times are shown, not judged. BENCH=Rows measures
# a part.
bench:
	cd tools/bench && go test -run '^$$' -bench '$(BENCH)' -count 6 . | tee bench.txt
	@cd tools/bench && go tool benchstat -table .name -col /by bench.txt

# Which changes of the code no test notices. MUTATION_FLAGS="--diff main" looks at what a branch changes: minutes instead of
# hours.
mutation:
	go run $(GREMLINS) unleash --exclude-files '^(examples|cmd|redislimit|redisqueue|tools|webdeliverytest|internal/(testserver|conformance|fixture|suite|hostile))/' $(MUTATION_FLAGS) .
