#!/usr/bin/env bash
# Tells what of the public surface of the last release is gone or changed. Before 1.0 that is allowed, and must stand in the
# changelog; from then on it fails. A release candidate is no release: it promises nothing yet.
set -euo pipefail
cd "$(dirname "$0")/.."
apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e
path=github.com/webdelivery/webdelivery-go
root=$PWD

if ! tag=$(git describe --tags --abbrev=0 --match 'v*' --exclude '*-*' 2>/dev/null); then
	echo "api-breaking: there is no release yet to compare with"
	exit 0
fi
scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/old"; rm -rf "$scratch"' EXIT
git worktree add -q --detach "$scratch/old" "$tag"
GOWORK=off GOBIN=$scratch go install "$apidiff"
broken=""
for module in "" /redislimit /redisqueue; do
	(cd "$scratch/old$module" && GOWORK=$scratch/old/go.work "$scratch/apidiff" -m -w "$scratch/surface" "$path$module" 2> >(grep -v ^Ignoring >&2))
	broken+=$(cd "$root$module" && GOWORK=$root/go.work "$scratch/apidiff" -m -incompatible "$scratch/surface" "$path$module" 2> >(grep -v ^Ignoring >&2))
done
if [[ -z $broken ]]; then
	echo "api-breaking: compatible with $tag"
	exit 0
fi
echo "api-breaking: incompatible with $tag:"
echo "$broken"
[[ $tag == v0.* ]]
