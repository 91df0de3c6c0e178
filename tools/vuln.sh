#!/usr/bin/env bash
# Looks for known vulnerabilities in the modules named. A database that cannot be reached is said, and is no failure;
# everything else is. GOVULNDB names another database, for example file:///path/to/a/copy.
set -euo pipefail
cd "$(dirname "$0")/.."
modfile=$PWD/tools/go.mod
flags=(${GOVULNDB:+-db="$GOVULNDB"})
report=$(mktemp)
trap 'rm -f "$report"' EXIT

for module in "$@"; do
	status=0
	(cd "$module" && timeout 120 go tool -modfile="$modfile" govulncheck "${flags[@]}" ./...) >"$report" 2>&1 || status=$?
	if ((status == 0)); then
		echo "govulncheck: $module: $(grep -m1 'No vulnerabilities' "$report" || echo "nothing that is called is affected")"
	elif ((status == 124)); then
		echo "govulncheck: NOT CHECKED: $module: no answer from the vulnerability database within two minutes"
	elif ((status == 1)) && grep -qE '^govulncheck: fetching vulnerabilities: .*(dial |lookup |timeout|refused|unreachable|proxyconnect|TLS handshake|EOF|reset by peer)' "$report"; then
		# 3 says that vulnerabilities were found; 1 is every other failure, of which only this one passes.
		echo "govulncheck: NOT CHECKED: $module: the vulnerability database cannot be reached:" \
			"$(sed -n 's/^govulncheck: fetching vulnerabilities: //p' "$report" | head -n 1)"
	else
		cat "$report"
		exit "$status"
	fi
done
