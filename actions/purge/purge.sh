#!/usr/bin/env bash
# The step of action.yml. Its inputs come by the environment, so that none of them is read as code.
set -euo pipefail
exec 2>&1 # the runner reads two streams in no order, and stop-commands must come first

wrong() {
	echo "purge: $1"
	exit 2
}

# Without settings the program would purge at a fake service, and the job would pass.
[[ -n ${WEBDELIVERY_BASE_URL:-} ]] || wrong "set WEBDELIVERY_BASE_URL and the other WEBDELIVERY_... variables in env"
[[ -n $URIS && -n $SINCE ]] && wrong "set uris or since, not both"
[[ -n $URIS || -n $SINCE ]] || wrong "nothing to purge: set uris, or since and base-url"
[[ -z $SINCE || -n $BASE_URL ]] || wrong "since needs base-url, the URL of the files"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [[ -n $SINCE ]]; then
	commit=$(git rev-parse --verify --quiet --end-of-options "$SINCE^{commit}") ||
		wrong "the commit $SINCE is not here: let actions/checkout fetch it, with fetch-depth: 0"
	# Without renames: the old name of a file must go from the caches too.
	git -C "$DIRECTORY" diff --name-only --no-renames --relative "$commit" HEAD >"$scratch/uris"
else
	printf '%s\n' "$URIS" >"$scratch/uris"
fi
if [[ ! -s $scratch/uris ]]; then
	echo "purge: no file has changed since $SINCE"
	printf '%s=[]\n' transactions failed >>"$GITHUB_OUTPUT"
	exit
fi

if [[ -z $PROGRAM ]]; then
	repository=webdelivery/webdelivery-go
	case $(uname -m) in
	x86_64) architecture=amd64 ;;
	*) architecture=arm64 ;;
	esac
	archive=webdelivery_${VERSION}_$(uname -s | tr '[:upper:]' '[:lower:]')_$architecture.tar.gz
	gh release download "v$VERSION" --repo $repository --pattern "$archive" --dir "$scratch"
	gh attestation verify "$scratch/$archive" --repo $repository --signer-workflow $repository/.github/workflows/release.yml
	tar -xzf "$scratch/$archive" -C "$scratch" webdelivery-purge
	PROGRAM=$scratch/webdelivery-purge
fi
unset GH_TOKEN

read -ra flags <<<"$FLAGS"
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')
echo "::stop-commands::$token" # a line of the service is text, whatever is in it
code=0
# The bash of macOS takes an empty array for an unset one, hence the +.
"$PROGRAM" -json ${flags[@]+"${flags[@]}"} -base "$BASE_URL" -file "$scratch/uris" >"$scratch/result" || code=$?
echo "::$token::"
{
	echo "transactions=$(jq -cs 'map(.transactions[].id)' "$scratch/result")"
	echo "failed=$(jq -cs 'map(.failed[])[:1000]' "$scratch/result")" # an output has at most 1 MB
} >>"$GITHUB_OUTPUT"
exit "$code"
