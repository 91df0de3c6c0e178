#!/usr/bin/env bash
# Compares the public surface with that of the last release, and tells what is incompatible. Before 1.0 that is allowed,
# and must stand in the changelog; from then on it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
module=github.com/webdelivery/webdelivery-go
modfile=$PWD/tools/go.mod

if ! tag=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null); then
	echo "api-breaking: there is no release yet to compare with"
	exit 0
fi
old=$(mktemp -d)
trap 'git worktree remove --force "$old/tree"; rm -rf "$old"' EXIT
git worktree add -q --detach "$old/tree" "$tag"
(cd "$old/tree" && go tool -modfile="$modfile" apidiff -m -w "$old/export" "$module")
broken=$(go tool -modfile="$modfile" apidiff -m -incompatible "$old/export" "$module")
if [[ -z $broken ]]; then
	echo "api-breaking: compatible with $tag"
	exit 0
fi
echo "api-breaking: incompatible with $tag:"
echo "$broken"
[[ $tag == v0.* ]]
