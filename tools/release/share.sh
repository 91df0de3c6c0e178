#!/usr/bin/env bash
# Writes what packages have beside the command: man pages and completions for shells, in tools/release/share.
set -euo pipefail
cd "$(dirname "$0")"
share=$PWD/share
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # the date on the man pages
export SOURCE_DATE_EPOCH
rm -rf "$share"
mkdir -p "$share/man/man1"
cd ../../cmd/webdelivery
go build -o "$share/webdelivery" .
"$share/webdelivery" man "$share/man/man1"
for shell in bash zsh fish; do
	"$share/webdelivery" completion $shell >"$share/webdelivery.$shell"
done
rm "$share/webdelivery"
