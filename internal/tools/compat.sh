#!/usr/bin/env bash
# Tests kubegrace with minors of the Kubernetes libraries, each in a copy of the repository, and prints
# a table of them.
#
#   OLDEST_GO=go1.24.13 TEST_GO=go1.25.14 internal/tools/compat.sh newest v0.35
#
# The arguments are minors such as v0.35, whole versions such as v0.38.0-alpha.0, floor, newest, oldest, or alpha,
# which is the newest pre-release after the newest minor; without arguments all are tested. OLDEST_GO is what the floor is built with, TEST_GO the
# oldest that the tests need. TESTFLAGS has more flags for go test. The copy consists of the files that git
# tracks or would add. It is always in the same folder, because the cache of the go command goes by paths.
set -euo pipefail

oldest=32           # the first minor with which internal/fork/v1.32 builds and passes; KubeEdge uses it
floor=33            # the minor that go.mod requires; from here on everything is tested
newest=37           # to be raised when Kubernetes has a new minor
newKubelets=35      # from here on the virtual-kubelet of examples is tested, before it the one that go.mod requires
newestKubelet=v1.14.1 # the virtual-kubelet for the newest minor and its successor
lastOfTestGo=35     # the last minor that builds with TEST_GO

ours=github.com/kubegrace/kubegrace
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/.cache/compat
mkdir -p "$root/.cache"
exec 9> "$root/.cache/compat.lock"
flock 9
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
export GOWORK=off

say() { echo "$*" >&2; }

# Prints the modules in the go.mod of this folder that are released with Kubernetes: those of k8s.io
# that have the same minor as k8s.io/api. k8s.io/klog, for example, has versions of its own.
kubernetes_modules() {
	awk '$1 == "k8s.io/api" { split($2, of, "."); minor = of[1] "." of[2] "." }
		$1 ~ /^k8s\.io\// { version[$1] = $2 }
		END { for (m in version) if (index(version[m], minor) == 1) print m }' go.mod
}

# Builds and tests the module in this folder, whose go.mod has been changed to a version of Kubernetes. It
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
	go build ./... && tested_packages | xargs go test -vet=off ${TESTFLAGS:-} | sed '/^ok  \t/d; /^?   \t/d' >&2
}

# Prints the packages of this module that a version of Kubernetes can break: those whose tests are built with it, and
# those that look at the module with the go command. What the pages say is about the repository's go.mod, not about this one.
tested_packages() {
	go list -test -f '{{.ImportPath}} {{join .Deps " "}} ' ./... | grep '^[^ ]*\.test ' |
		grep -E "/internal/(deptest|docprogram)\.test | ($(kubernetes_modules | paste -s -d '|'))[ /]" |
		sed 's/\.test .*//' | grep -v /internal/readme
}

# Tests a minor in a new copy.
test_minor() {
	local minor=$1 version=$2 copy=$work/v0.$1 module modules name kubelet
	mkdir "$copy"
	(cd "$root" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' name; do
		[[ -e $name ]] && printf '%s\0' "$name" || true
	done | tar --create --null --files-from=-) | tar --extract --directory="$copy"
	cd "$copy"
	if ((minor < floor)); then
		modules=$(kubernetes_modules; cd internal/fork/v1.32 && kubernetes_modules)
		link_fork "$minor" "$version" "$copy" "$modules"
		cd "$copy/internal/fork/v1.32"
		for module in $modules; do go mod edit -replace="$module=$module@$version"; done
		test_module "$version"
		return
	fi
	if ((minor == floor)); then # as the oldest Go finds it, without the tests that need a newer one
		say "$version: building with $OLDEST_GO ..."
		for name in . lifecycle/criruntime lifecycle/virtualkubelet; do (cd "$name" && GOTOOLCHAIN=$OLDEST_GO go build ./...); done
	fi
	for name in . internal/apiservertest lifecycle/criruntime lifecycle/virtualkubelet; do
		say "$version: testing module $name ..."
		cd "$copy/$name"
		for module in $(kubernetes_modules); do go mod edit -require="$module@$version"; done
		if [[ $name == lifecycle/virtualkubelet ]] && ((minor >= newKubelets)); then
			kubelet=$newestKubelet
			((minor >= newest)) || kubelet=$(go list -C "$root/examples" -m -f '{{.Version}}' github.com/virtual-kubelet/virtual-kubelet)
			go mod edit -require="github.com/virtual-kubelet/virtual-kubelet@$kubelet"
		fi
		test_module "$version"
	done
}

# Builds and runs testdata/fork in a module as a fork of the kubelet is: with the requirements of Kubernetes
# itself, and replacements for its libraries. Those that neither the program nor kubegrace needs are left out.
link_fork() {
	local minor=$1 version=$2 copy=$3 modules=$4 module
	say "$version: linking a fork ..."
	cp -r "$root/internal/tools/testdata/fork" "$work/fork"
	cd "$work/fork"
	cp "$(cd "$copy" && go list -m -f '{{.GoMod}}' "k8s.io/kubernetes@v1.${version#v0.}")" go.mod
	chmod u+w go.mod
	for module in $(awk '$2 == "=>" && $3 ~ /staging/ { print $1 }' go.mod); do
		if grep -qx "$module" <<< "$modules"; then
			go mod edit -replace="$module=$module@$version"
		else
			go mod edit -droprequire="$module" -dropreplace="$module"
		fi
	done
	go mod edit -module=example.com/fork -require="$ours@v0.1.0" -replace="$ours=$copy"
	GOTOOLCHAIN=$OLDEST_GO go run -mod=mod .
}

minors=()
declare -A named=() # by minor, the versions that the arguments have in full
for name in "${@:-all}"; do
	case $name in
	all) minors+=($((newest + 1))); for ((minor = newest; minor >= oldest; minor--)); do minors+=("$minor"); done ;;
	alpha) minors+=($((newest + 1))) ;;
	oldest | floor | newest) minors+=("${!name}") ;;
	v0.*.*) name=${name#v0.}; minors+=("${name%%.*}"); named[${name%%.*}]=v0.$name ;;
	v0.*) minors+=("${name#v0.}") ;;
	*) say "compat: $name is none of oldest, floor, newest, alpha and v0.$oldest to v0.$newest"; exit 2 ;;
	esac
done
cd "$root"
# Prints the version of a minor that is tested: that of the arguments, or the newest, which for the minor after
# the newest one is a pre-release.
version_of() {
	if [[ -n ${named[$1]:-} ]]; then echo "${named[$1]}"; return; fi
	if (($1 <= newest)); then go list -m -f '{{.Version}}' "k8s.io/api@v0.$1"; return; fi
	go list -m -versions -f '{{range .Versions}}{{println .}}{{end}}' k8s.io/api | sed -n "/^v0\.$1\./p" | tail -n 1
}
next=$(version_of "$((newest + 1))")
if [[ -n $next && $next != *-* ]]; then
	say "$next is out, and is tested as a pre-release only: see $0."
fi

# Prints the Go version that a version of Kubernetes needs, or local if that is not newer than the local Go.
newer_go() {
	local needs
	needs=$(sed -n 's/^go //p' "$(go list -m -f '{{.GoMod}}' "k8s.io/api@$1")")
	if [[ $(printf '%s\n' "go$needs" "$(GOTOOLCHAIN=local go env GOVERSION)" | sort -V | tail -n 1) == "go$needs" ]]; then echo "go$needs"; else echo local; fi
}

table="| Kubernetes | Go | what | result | time |
| --- | --- | --- | --- | --- |"
failed=0 tests="all tests"
[[ ${TESTFLAGS:-} != *-short* ]] || tests="quick tests"
for minor in "${minors[@]}"; do
	what=$tests result=ok began=$SECONDS
	((minor != floor)) || what="built with $OLDEST_GO; $tests"
	((minor >= floor)) || what="a fork linked with $OLDEST_GO; tests of internal/fork/v1.32"
	version=$(version_of "$minor")
	[[ -n $version ]] || { say "v0.$minor has no pre-release: not tested"; continue; }
	export GOTOOLCHAIN=local
	((minor > lastOfTestGo)) || export GOTOOLCHAIN=$TEST_GO
	((minor <= newest)) || GOTOOLCHAIN=$(newer_go "$version")
	# In a shell of its own, because "set -e" has no effect in a function whose result is asked for.
	set +e
	(set -e; test_minor "$minor" "$version")
	(($? == 0)) || result=FAILED failed=1
	set -e
	table+=$'\n'"| $version | $(go env GOVERSION) | $what | $result | $(((SECONDS - began) / 60))m$(((SECONDS - began) % 60))s |"
done
echo "$table" | column -t -s '|' -o '|'
exit "$failed"
