#!/usr/bin/env bash
# Looks for known vulnerabilities in the modules named. A database that cannot be had, for whatever reason, is said and is
# no failure; everything else is. GOVULNDB names another database, for example file:///path/to/a/copy.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=(${GOVULNDB:+-db="$GOVULNDB"})
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
report=$scratch/report
unavailable='^govulncheck: fetching vulnerabilities:'
if [[ ${GOVULNDB:-} == http* ]]; then
	unavailable+='|^creating client: unrecognized vulndb format' # how no answer of another database than Go's own is told
fi

# Built first: the time limit below is one of the database, not of the compiler.
govulncheck=$(cd tools && GOWORK=off go tool -n govulncheck)

for module in "$@"; do
	status=0
	(cd "$module" && timeout 120 "$govulncheck" "${flags[@]}" ./...) >"$report" 2>&1 || status=$?
	if ((status == 0)); then
		echo "govulncheck: $module: $(grep -m1 'No vulnerabilities' "$report" || echo "nothing that is called is affected")"
	elif ((status == 124)); then
		echo "govulncheck: NOT CHECKED: $module: not done within two minutes"
	elif ((status == 1)) && grep -qE "$unavailable" "$report"; then
		# 3 says that vulnerabilities were found; 1 is every other failure, of which only this one passes.
		echo "govulncheck: NOT CHECKED: $module: the vulnerability database cannot be had:" \
			"$(grep -m 1 -E "$unavailable" "$report" | sed 's/^govulncheck: fetching vulnerabilities: *//')"
	else
		cat "$report"
		exit "$status"
	fi
done
