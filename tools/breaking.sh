#!/usr/bin/env bash
# Compares the public surface with that of the last release, and tells what is incompatible. Before 1.0 that is allowed,
# and must stand in the changelog; from then on it fails. A release candidate is no release: it promises nothing yet.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

if ! tag=$(git describe --tags --abbrev=0 --match 'v*' --exclude '*-*' 2>/dev/null); then
	echo "api-breaking: there is no release yet to compare with"
	exit 0
fi
old=$(mktemp)
trap 'rm -f "$old"' EXIT
git show "$tag:api/current.txt" >"$old"
broken=$(cd tools && go run ./api -broken "$old" "$root" "$root/redislimit" "$root/redisqueue")
if [[ -z $broken ]]; then
	echo "api-breaking: compatible with $tag"
	exit 0
fi
echo "api-breaking: incompatible with $tag:"
echo "$broken"
[[ $tag == v0.* ]]
