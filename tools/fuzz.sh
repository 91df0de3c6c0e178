#!/usr/bin/env bash
# Runs every fuzz target of every package of the root for the time given. An input that fails is written to the package's
# testdata/fuzz, where go test finds it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The go command now and then calls it a failure that its time is over while a worker is at work. No input is to blame:
# one that is would be named.
out_of_time() {
	grep -q '^    context deadline exceeded$' "$log" && ! grep -qE 'Failing input|panic|hung|terminated' "$log"
}

targets=()
go test -list '^Fuzz' ./... | while read -r first package _; do
	case $first in
	Fuzz*) targets+=("$first") ;;
	ok)
		for target in "${targets[@]}"; do
			go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 2 "$package" </dev/null >"$log" 2>&1 || out_of_time || {
				cat "$log"
				exit 1
			}
			echo "$package $target: $(grep '^fuzz: elapsed' "$log" | tail -n 1)"
		done
		targets=()
		;;
	esac
done
