#!/usr/bin/env bash
# Gets each module by the tags of a release, in a copy of the repository, as a user will: with go get, into a
# new module, with the oldest Go and this one, and builds the first program of its documentation. The copy stands
# in for GitHub; other modules come from where they always do, or from the cache of this machine.
set -euo pipefail
version=${1:?usage: goget.sh VERSION}
root=$(git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

git clone -q --no-local "$root" "$work/kubegrace"
for prefix in '' lifecycle/virtualkubelet/ lifecycle/criruntime/; do
	git -C "$work/kubegrace" tag "$prefix$version"
done

export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$work/kubegrace.insteadOf GIT_CONFIG_VALUE_0=https://github.com/kubegrace/kubegrace
GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
toolchains=("$(cd "$root" && GOTOOLCHAIN=$OLDEST_GO go env GOROOT)" "$(cd "$root" && go env GOROOT)")
export GOPROXY GOPRIVATE=github.com/kubegrace GONOSUMDB=* GOMODCACHE=$work/cache GOTOOLCHAIN=local GOWORK=off
for toolchain in "${toolchains[@]}"; do
	for name in graceperiod lifecycle/virtualkubelet lifecycle/criruntime; do
		module=github.com/kubegrace/kubegrace
		[[ $name != lifecycle/* ]] || module+=/$name
		rm -rf "$work/first" && mkdir "$work/first" && cd "$work/first"
		awk '!/^\/\//{exit} /^\/\/\tpackage main$/{on=1} on&&!/^\/\/(\t|$)/{exit} on{sub(/^\/\/\t?/,"");print}' "$root/$name/doc.go" > main.go
		for arguments in "mod init example.com/first" "get $module@$version" "mod tidy" "build -o first ."; do
			# shellcheck disable=SC2086 # each word is an argument
			"$toolchain/bin/go" $arguments > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
		done
		echo "$("$toolchain/bin/go" version | cut -d ' ' -f 3): go get $module@$version, and the first program of $name builds"
	done
done
