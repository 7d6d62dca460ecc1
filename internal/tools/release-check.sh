#!/usr/bin/env bash
# Says what is missing before the tags of a version can be made, one line each, and exits with 1 if anything is.
set -euo pipefail
version=${1:?usage: make release-check VERSION=v0.1.0}
missing=0
need() { # need WHAT COMMAND: says WHAT unless COMMAND succeeds
	if ! "${@:2}" > /dev/null; then
		echo "missing: $1"
		missing=1
	fi
}
need "a clean work tree, as git status shows it" test -z "$(git status --porcelain)"
need "a section '## [${version#v}] - YEAR-MONTH-DAY' in .github/CHANGELOG.md" grep -qE "^## \[${version#v}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" .github/CHANGELOG.md
need "$version in README.md" grep -qF "$version" README.md
for module in lifecycle/virtualkubelet lifecycle/criruntime examples; do
	need "$version of kubegrace in $module/go.mod" grep -qE "github.com/kubegrace/kubegrace $version$" "$module/go.mod"
done
for tag in "$version" "lifecycle/virtualkubelet/$version" "lifecycle/criruntime/$version"; do
	need "a name for the tag: $tag is there already" test -z "$(git tag --list "$tag")"
done
exit $missing
