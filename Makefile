# make test is all that a change must pass; make lint what a reviewer should not have to say.

LINT := go tool -modfile=tools/go.mod golangci-lint

.PHONY: all test lint fmt bench cover

all: lint test

test:
	go test -race ./...
	cd testdata/consumer && go vet ./... && go build -o /dev/null ./...

lint:
	$(LINT) run ./...
	go mod tidy -diff

fmt:
	$(LINT) fmt ./...

bench:
	go test -run '^$$' -bench . -benchmem ./...

cover:
	go test -coverpkg=./... -coverprofile=cover.out ./...
	go tool cover -func=cover.out | tail -n 1
