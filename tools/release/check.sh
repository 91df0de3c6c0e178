#!/usr/bin/env bash
# Tries what .github/workflows/release.yml does, without images and signatures: builds a snapshot of the last commit in two
# folders, and compares the hashes of all archives, packages and SBOMs.
set -euo pipefail
cd "$(dirname "$0")"

goreleaser=$(GOWORK=off go tool -n goreleaser)
PATH="$(dirname "$(GOWORK=off go tool -n cyclonedx-gomod)"):$PATH"
cd ../..
"$goreleaser" check --quiet
commit=$(git rev-parse HEAD)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for try in first second; do
	git clone -q . "$scratch/$try"
	cd "$scratch/$try"
	git checkout -q "$commit"
	echo "release-check: the $try snapshot"
	GOWORK=$PWD/go.work "$goreleaser" release --snapshot --skip=docker,sign >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
	cd - >/dev/null
done
diff "$scratch"/{first,second}/dist/checksums.txt
echo "release-check: $(wc -l <"$scratch/first/dist/checksums.txt") files are the same in both"
