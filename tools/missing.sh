#!/usr/bin/env bash
# Prints one line if this machine lacks programs without which tests are skipped: their names, how many tests each
# leaves out, and what installs them. With the argument packages, it prints the names of their Debian packages alone.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=() packages=()
while read -r program package call; do # a test that needs the program makes this call
	command -v "$program" >/dev/null && continue
	tests=$(git ls-files '*_test.go' | xargs awk -v call="$call" '
		/^func / { found += needs; needs = 0; test = /^func Test/ }
		test && index($0, call) { needs = 1 }
		END { print found + needs }')
	missing+=("$program ($tests)") packages+=("$package")
done <<'END'
redis-server redis-server inWorld(
chromium chromium LookPath("chromium")
jq jq := step(t,
promtool prometheus LookPath("promtool")
END

if [[ ${1-} == packages ]]; then
	echo "${packages[*]}"
elif ((${#missing[@]})); then
	printf -v names ', %s' "${missing[@]}"
	echo "NOT EVERY TEST RUNS: this machine lacks (for so many tests) ${names:2}; apt-get install ${packages[*]}"
fi
