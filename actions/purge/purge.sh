#!/usr/bin/env bash
# The step of action.yml. Its inputs come by the environment, so that none of them is read as code.
set -euo pipefail
exec 2>&1 # the runner reads two streams in no order, and stop-commands must come first

wrong() {
	echo "purge: $1"
	exit 2
}

case ${URIS:+u}${FILE:+f}${SINCE:+s} in
u | f | s) ;;
"") wrong "nothing to purge: set uris, file, or since and base-url" ;;
*) wrong "set one of uris, file and since" ;;
esac
[[ -z $SINCE || -n $BASE_URL ]] || wrong "since needs base-url, the URL of the files"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [[ -n $SINCE ]]; then
	[[ -d $DIRECTORY ]] || wrong "there is no folder $DIRECTORY"
	commit=$(git -C "$DIRECTORY" rev-parse --verify --quiet --end-of-options "$SINCE^{commit}") ||
		wrong "the commit $SINCE is not here: fetch it, with fetch-depth: 0; after a first or a forced push, set uris or file"
	# Without renames: the old name of a file must go from the caches too. The program skips lines that begin with #, and spaces
	# around a line, unless they are quoted.
	git -C "$DIRECTORY" diff --name-only --no-renames --relative "$commit" HEAD -- | sed -E 's/^([# ].*|.* )$/"\1"/' >"$scratch/uris"
	FILE=$scratch/uris
elif [[ -n $URIS ]]; then
	FILE=$scratch/uris
	printf '%s\n' "$URIS" >"$FILE"
fi
if [[ -n $SINCE && ! -s $FILE ]]; then
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
	gh attestation verify "$scratch/$archive" --repo $repository --source-ref "refs/tags/v$VERSION" \
		--signer-workflow $repository/.github/workflows/release.yml
	tar -xzf "$scratch/$archive" -C "$scratch" webdelivery
	PROGRAM=$scratch/webdelivery
fi
unset GH_TOKEN

read -ra flags <<<"${FLAGS//$'\n'/ }"
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')
echo "::stop-commands::$token" # a line of the service is text, whatever is in it
# The bash of macOS takes an empty array for an unset one, hence the +.
"$PROGRAM" purge ${flags[@]+"${flags[@]}"} -o json ${BASE_URL:+--base "$BASE_URL"} -f "$FILE" >"$scratch/result" &
program=$!
trap 'waiting=y; kill -TERM "$program" || :' INT TERM # a job that is canceled; the program says how to wait again
waiting=y
while [[ -n $waiting ]]; do # a signal ends wait before the program has ended
	waiting='' code=0
	wait "$program" || code=$?
done
echo "::$token::"
if [[ -s $scratch/result ]]; then
	{
		echo "transactions=$(jq -c '[.transactions[].id]' "$scratch/result")"
		echo "failed=$(jq -c '.failed[:200]' "$scratch/result")" # an output has at most 1 MB, and a variable 128 KiB
	} >>"$GITHUB_OUTPUT"
fi
exit "$code"
