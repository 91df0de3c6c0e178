#!/usr/bin/env bash
# Gives all modules of this repository one version, in which they require each other.
#
#	tools/release.sh v0.2.0   # writes go.mod, go.sum and go.work, and prints what is left to do; after it change nothing
#	tools/release.sh          # writes nothing: installs the command as its users would, and checks that go.mod is tidy
#
# The go.sum of a module has checksums of the modules before it. So the version is made in a repository of its own, in which
# each module gets a commit and a tag, and the go command takes that for the repository at GitHub.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
path=github.com/webdelivery/webdelivery-go
modules=(. redislimit redisqueue cmd/webdelivery examples/integrations) # each requires only earlier ones
version=${1:-v0.0.0-try}

if [[ -n ${1:-} ]] && ! grep -q "^const Version = \"${1#v}\"" ./*.go; then
	echo "release: set the constant Version and the section of CHANGELOG.md first" >&2
	exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/copy"
tar -c --exclude=./.git . | tar -x -C "$scratch/copy"
git -C "$scratch/copy" init -q
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$scratch/copy.insteadOf" GIT_CONFIG_VALUE_0="https://$path"
export GIT_AUTHOR_NAME=release GIT_AUTHOR_EMAIL=release@example.com GIT_COMMITTER_NAME=release GIT_COMMITTER_EMAIL=release@example.com
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOPROXY GOSUMDB=off GOPRIVATE=$path GOMODCACHE=$scratch/modules GOBIN=$scratch/bin GOFLAGS="-modcacherw -trimpath" GOWORK=off

sed -i "s,\(\s$path\S*\) v\S* =>,\1 $version =>," "$scratch/copy/go.work"
tags=()
for module in "${modules[@]}"; do
	cd "$scratch/copy/$module"
	for required in $(sed -n "s,^\s*\($path[^ ]*\) v.*,\1,p" go.mod); do
		go mod edit -require="$required@$version"
	done
	[[ -f go.sum ]] && sed -i "\,^$path,d" go.sum
	cp go.mod "$scratch/go.mod" && cp go.sum "$scratch/go.sum"
	go mod tidy
	if [[ -z ${1:-} ]] && for f in go.mod go.sum; do diff -U0 "$scratch/$f" "$f" || true; done | grep '^[-+]' | grep -vE "^(---|\+\+\+)|$path"; then
		echo "release: go.mod or go.sum of $module is not tidy" >&2
		exit 1
	fi
	tag=${module#.}/$version
	tags+=("${tag#/}")
	git add -A .
	git commit -qm "$version" --allow-empty
	git tag "${tag#/}"
done

cd "$root"
if [[ -z ${1:-} ]]; then
	go install "$path/cmd/webdelivery@$version"
	ls "$scratch/bin"
	exit
fi
for module in "${modules[@]}"; do
	cp "$scratch/copy/$module"/go.{mod,sum} "$module/"
done
cp "$scratch/copy/go.work" .
echo "Commit this, and then:"
printf 'git tag %s\n' "${tags[@]}"
echo "git push origin HEAD ${tags[*]:1}"
echo "git push origin ${tags[0]}" # alone, and last: GitHub starts no workflow for more than three tags at once
