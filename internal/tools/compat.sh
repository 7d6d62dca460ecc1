#!/usr/bin/env bash
# Tests kubegrace with minors of the Kubernetes libraries, each in a copy of the repository, and prints
# a table of them.
#
#   OLDEST_GO=go1.25.14 internal/tools/compat.sh newest v0.35
#
# The arguments are minors such as v0.35, floor, newest or oldest; without arguments all are tested. The
# variable TESTFLAGS has more flags for go test. The copy consists of the files that git tracks or would add.
set -euo pipefail

oldest=32           # the first minor with which internal/fork/v1.32 builds and passes; KubeEdge uses it
floor=34            # the minor that go.mod requires; from here on everything is tested
virtualkubelet=35   # the minor that virtual-kubelet v1.12.0 requires
newest=37           # to be raised when Kubernetes has a new minor
lastOfOldestGo=35   # the last minor that builds with the Go version of our go.mod

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOWORK=off

say() { echo "$*" >&2; }

# Prints the modules in the go.mod of this folder that are released with Kubernetes: those of k8s.io
# that have the same minor as k8s.io/api. k8s.io/klog, for example, has versions of its own.
kubernetes_modules() {
	awk '$1 == "k8s.io/api" { split($2, of, "."); minor = of[1] "." of[2] "." }
		$1 ~ /^k8s\.io\// { version[$1] = $2 }
		END { for (m in version) if (index(version[m], minor) == 1) print m }' go.mod
}

# Vets and tests the module in this folder, whose go.mod has been changed to a version of Kubernetes. It
# fails if the packages are built with another version, which another module may require.
test_module() {
	local version=$1 built
	go mod tidy 2> "$work/tidy" || { cat "$work/tidy" >&2; return 1; }
	built=$(go list -deps -test -f '{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}' ./... |
		grep -E '^k8s\.io/[^ ]+ v0\.[1-9]' | sort -u) || { say "nothing is built with Kubernetes"; return 1; }
	if grep -qv " $version\$" <<< "$built"; then
		say "$version is not what is built with:"; say "$built"
		return 1
	fi
	# What the pages say is about the repository's go.mod, not about this one.
	go vet ./... && go list ./... | grep -v /internal/readme | xargs go test ${TESTFLAGS:-} | sed '/^ok  \t/d; /^?   \t/d' >&2
}

# Tests a minor in a new copy.
test_minor() {
	local minor=$1 version=$2 copy=$work/v0.$1 module modules name
	mkdir "$copy"
	(cd "$root" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' name; do
		[[ -e $name ]] && printf '%s\0' "$name" || true
	done | tar --create --null --files-from=-) | tar --extract --directory="$copy"
	if ((minor < floor)); then # as a fork of the kubelet does it, which replaces these libraries by its own
		cd "$copy/internal/fork/v1.32"
		modules=$(kubernetes_modules; cd "$copy" && kubernetes_modules)
		for module in $modules; do go mod edit -replace="$module=$module@$version"; done
		test_module "$version"
		return
	fi
	for name in . internal/apiservertest lifecycle/virtualkubelet; do
		((minor >= virtualkubelet)) || [[ $name != lifecycle/virtualkubelet ]] || continue
		say "$version: testing module $name ..."
		cd "$copy/$name"
		for module in $(kubernetes_modules); do go mod edit -require="$module@$version"; done
		test_module "$version"
	done
}

minors=()
for name in "${@:-all}"; do
	case $name in
	all) for ((minor = newest; minor >= oldest; minor--)); do minors+=("$minor"); done ;;
	oldest | floor | newest) minors+=("${!name}") ;;
	v0.*) minors+=("${name#v0.}") ;;
	*) say "compat: $name is none of oldest, floor, newest and v0.$oldest to v0.$newest"; exit 2 ;;
	esac
done
cd "$root"
if go list -m "k8s.io/api@v0.$((newest + 1))" > "$work/next" 2>&1 && ! grep -q - "$work/next"; then # not only an alpha
	say "$(cat "$work/next") is out, and is not tested: see $0."
fi

table="| Kubernetes | Go | what | result | time |
| --- | --- | --- | --- | --- |"
failed=0 tests="all tests"
[[ ${TESTFLAGS:-} != *-short* ]] || tests="quick tests"
for minor in "${minors[@]}"; do
	what="vet, $tests" result=ok began=$SECONDS
	((minor >= virtualkubelet)) || what="vet, $tests but virtualkubelet's"
	((minor >= floor)) || what="tests of internal/fork/v1.32"
	export GOTOOLCHAIN=local
	((minor > lastOfOldestGo)) || export GOTOOLCHAIN=$OLDEST_GO
	version=$(go list -m -f '{{.Version}}' "k8s.io/api@v0.$minor")
	# In a shell of its own, because "set -e" has no effect in a function whose result is asked for.
	set +e
	(set -e; test_minor "$minor" "$version")
	(($? == 0)) || result=FAILED failed=1
	set -e
	table+=$'\n'"| $version | $(go env GOVERSION) | $what | $result | $(((SECONDS - began) / 60))m$(((SECONDS - began) % 60))s |"
done
echo "$table" | column -t -s '|' -o '|'
exit "$failed"
