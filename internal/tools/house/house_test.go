package main

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workflow is a workflow without problems.
const workflow = `name: test
on: [push]
permissions:
  contents: read
concurrency: test
jobs:
  test:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd
      - run: make test ONLY=${{ github.ref_name }}
      - run: .ci/run test
`

// soundFiles returns the files of a repository without problems.
func soundFiles() map[string]string {
	return map[string]string{
		"Makefile":                        "SOAK ?= 5m\ntest: ## run\n\t@go test --only '$(ONLY)'\npictures:\n\t@draw .cache/pictures/b.html examples/pictures/a.png\n",
		"README.md":                       "# A title\n\nSee [below](#two-words), [the code](metrics), [a page](examples/README.md#a-title).\n\n## Two `words`!\n",
		"examples/README.md":              "# A title\n\n[up](../README.md) [out](https://example.com/nowhere)\n\n```\n[no](link)\n```\n",
		"metrics/README.md":               "![a](../examples/pictures/a.png)\n",
		"metrics/bench_test.go":           "package metrics\n\nfunc BenchmarkCollect(b *testing.B) {}\n",
		"examples/pictures/a.png":         "x",
		"metrics/options.go":              "package metrics\n\n// Options are.\ntype Options struct {\n\t// A and B are.\n\tA int\n\tB int\n\n\tc int\n}\n",
		"metrics/internal/x/options.go":   "package x\n\n// Options are.\ntype Options struct{ A int }\n",
		"go.mod":                          "module example.com/x\n",
		".github/workflows/test.yml":      workflow,
		".github/dependabot.yml":          "version: 2\nupdates:\n  - package-ecosystem: gomod\n    directories: [/]\n    schedule: {interval: weekly}\n",
		".github/ISSUE_TEMPLATE/bug.yml":  "name: Bug\ndescription: A fault\nbody:\n  - type: input\n    id: version\n    attributes: {label: Version}\n",
		".github/ISSUE_TEMPLATE/none.txt": "",
	}
}

// measurements returns a page with a table of one measurement.
func measurements(row string) string {
	return "# A title\n\n| benchmark | plain | kubegrace | ratio | `ONLY=` |\n|---|---|---|---|---|\n| all | " + row + " |\n"
}

// problems runs the program on soundFiles with the given changes, and returns the problems that it
// prints. An empty content removes a file.
func problems(t *testing.T, changes map[string]string) string {
	t.Helper()
	root, files := t.TempDir(), soundFiles()
	maps.Copy(files, changes)
	for name, content := range files {
		if content == "" {
			continue
		}
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", root, "init", "-q").Run())
	var out strings.Builder
	err := house(t.Context(), []string{"--root", root}, &out, io.Discard)
	if out.Len() == 0 {
		require.NoError(t, err)
	} else {
		require.ErrorContains(t, err, "problems")
	}
	return out.String()
}

func TestSoundRepository(t *testing.T) {
	require.Empty(t, problems(t, nil))
}

func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		want          string
	}{
		"a file in the top folder":     {"build.sh", "#!/bin/sh\n", "build.sh: does not belong into the top folder\n"},
		"a folder in the top folder":   {"pkg/x/x.go", "package x\n", "pkg: does not belong into the top folder\n"},
		"a file called after nothing":  {"metrics/string_util.go", "package metrics\n", "metrics/string_util.go: \"util\" says nothing of what is in it\n"},
		"a folder called after none":   {"metrics/Helpers/x.txt", "x", "metrics/Helpers: \"helpers\" says nothing of what is in it\n"},
		"a file of an ambiguous name":  {"metrics/rest_test.go", "package metrics\n", "metrics/rest_test.go: \"rest\" says nothing of what is in it\n"},
		"a file of two words":          {"metrics/rest_api.go", "package metrics\n", ""},
		"a name that only contains it": {"metrics/utilization.go", "package metrics\n", ""},

		"a link to no file":         {"examples/README.md", "# A title\n[x](none.md)\n", "examples/README.md: the link none.md leads to no file\n"},
		"a link out":                {"examples/README.md", "# A title\n[x](../../x)\n", "examples/README.md: the link ../../x leads out of the repository\n"},
		"an absolute link":          {"examples/README.md", "# A title\n[x](/Makefile)\n", "examples/README.md: the link /Makefile leads out of the repository\n"},
		"a link to no heading":      {"examples/README.md", "# A title\n[x](#a-titel)\n", "examples/README.md: the link #a-titel leads to no heading\n"},
		"an address of a file":      {"examples/README.md", "# A title\n[x](https://github.com/kubegrace/kubegrace/blob/main/x)\n", "examples/README.md: the link https://github.com/kubegrace/kubegrace/blob/main/x leads to a file of this repository, and is not relative\n"},
		"a folder's page":           {"README.md", "# A title\n[x](examples#a-title) [y](examples#b)\n", "README.md: the link examples#b leads to no heading\n"},
		"an anchor of no page":      {"README.md", "# A title\n[x](Makefile#L1)\n", "README.md: the link Makefile#L1 leads to no heading\n"},
		"what git ignores":          {"README.md", "# A title\n[x](.git/HEAD)\n", "README.md: the link .git/HEAD leads to no file\n"},
		"a picture that is missing": {"examples/README.md", "# A title\n![x](x.png)\n", "examples/README.md: the link x.png leads to no file\n"},
		"a picture in HTML":         {"examples/README.md", "# A title\n\n<img src=\"x.png\">\n", "examples/README.md: the link x.png leads to no file\n"},
		"a link within HTML":        {"examples/README.md", "# A title\n\nx <a href=\"x.png\">x</a>\n", "examples/README.md: the link x.png leads to no file\n"},
		"a second heading's anchor": {"examples/README.md", "# A title\n\n# A title\n\n[x](#a-title-1)\n", ""},
		"an anchor in HTML":         {"examples/README.md", "# A title\n\n<a id=\"y\"></a>\n\n[x](#y)\n", ""},

		"a command of a page": {"examples/README.md", "# A title\n\nDo `make\ntset` and `make test ONLY=x`.\n", "examples/README.md: make tset: the Makefile has no target tset\n"},
		"a script of a page":  {"examples/README.md", "# A title\n\n    make test\n    make build # all\n", "examples/README.md: make build # all: the Makefile has no target build\n"},

		"an option without a comment": {"metrics/options.go", "package metrics\n\n// Options are.\ntype Options struct {\n\t// A is.\n\tA int\n\n\tB int\n}\n", "metrics/options.go:8: Options.B has no comment\n"},
		"a field after a gap":         {"metrics/a.go", "package metrics\n\n// A is.\ntype A struct {\n\tB int\n\n\tC int\n}\n", "metrics/a.go:7: A.C has no comment\n"},
		"a method after a gap":        {"metrics/a.go", "package metrics\n\n// A is.\ntype A interface {\n\tB()\n\n\tC()\n}\n", "metrics/a.go:7: A.C has no comment\n"},
		"a constant of a group":       {"metrics/a.go", "package metrics\n\n// These are.\nconst (\n\t// A and B are.\n\tA = 1\n\tB = 2\n\n\tC = 3\n)\n", "metrics/a.go:9: C has no comment\n"},
		"a function off Linux":        {"metrics/a.go", "//go:build windows\n\npackage metrics\n\nfunc A() {}\n\nfunc b() {}\n\nfunc (c) D() {}\n\nfunc (*E) F() {}\n", "metrics/a.go:5: A has no comment\nmetrics/a.go:11: F has no comment\n"},
		"comments beside":             {"metrics/a.go", "package metrics\n\n// A is.\ntype A struct{ B, C int }\n\n// These are.\nvar (\n\tD int // D is.\n)\n", ""},

		"a comment of another name": {"internal/a/a.go", "package a\n\n// reopenConcluded does.\nfunc reopen() {}\n\n// reads does.\nfunc (b) read() {}\n\n// HTTP is what c does.\nfunc c() {}\n\n// A function.\nfunc d() {}\n\n// e, with a comma, does.\nfunc e() {}\n", "internal/a/a.go:4: the comment of reopen begins with reopenConcluded\ninternal/a/a.go:7: the comment of read begins with reads\n"},

		"a link of a comment":         {"metrics/a.go", "// Package metrics has [Options], [Options.Set], [*Options], [context.Context] and [lost].\npackage metrics\n\nimport _ \"context\"\n\n// Set is.\nfunc (o *Options) Set(lost int) {}\n", "metrics/a.go:1: the comment's [lost] leads nowhere\n"},
		"a link of a field":           {"metrics/a.go", "package metrics\n\ntype a struct {\n\t// b is [Options.Sett].\n\tb int\n}\n", "metrics/a.go:4: the comment's [Options.Sett] leads nowhere\n"},
		"a link in a list":            {"metrics/a.go", "package metrics\n\n// a is\n//\n//   - [Lost], and not\n//\n//\tlist[Any]\nconst a = 1\n", "metrics/a.go:3: the comment's [Lost] leads nowhere\n"},
		"a link to another package":   {"examples/a.go", "package examples\n\nimport \"github.com/kubegrace/kubegrace/metrics\"\n\n// a is [metrics.Options] or [metrics.Lost].\nvar a metrics.Options\n", "examples/a.go:5: the comment's [github.com/kubegrace/kubegrace/metrics.Lost] leads nowhere\n"},
		"a link to an unexported one": {"metrics/a.go", "package metrics\n\n// a is [b].\nconst a = b\n\nconst b = 1\n", ""},

		"a type that is an impl":    {"metrics/a.go", "package metrics\n\ntype fooImpl struct{}\n", "metrics/a.go:3: \"impl\" says nothing of what fooImpl is\n"},
		"a method that enters":      {"examples/a.go", "package examples\n\nfunc (a) enter() {}\n", "examples/a.go:3: \"enter\" says nothing of what enter is\n"},
		"a field that was said":     {"internal/a/a.go", "package a\n\ntype b struct {\n\tsaid, c int\n}\n", "internal/a/a.go:4: \"said\" says nothing of what said is\n"},
		"a method of an interface":  {"internal/a/a.go", "package a\n\ntype b interface{ Rest() }\n", "internal/a/a.go:3: \"rest\" says nothing of what Rest is\n"},
		"a variable of the package": {"internal/a/a.go", "package a\n\nvar stringUtils, restOfIt, implied int\n", "internal/a/a.go:3: \"utils\" says nothing of what stringUtils is\n"},
		"a local variable":          {"internal/a/a.go", "package a\n\nfunc b(own int) { said := own; _ = said }\n", ""},
		"a name of a test":          {"internal/a/a_test.go", "package a\n\nfunc settle() {}\n", ""},

		"a ratio":               {"examples/README.md", measurements("14.9 ms | 45.3 ms | ~ 3.14 | `metrics.Collect`"), "examples/README.md: | all | 14.9 ms | 45.3 ms | ~ 3.14 | `metrics.Collect` |: the ratio of these figures is 3.04\n"},
		"a ratio of two units":  {"examples/README.md", measurements("1 KiB | 512 B | 0.50 | `metrics.Collect`"), ""},
		"a rounded ratio":       {"examples/README.md", measurements("3.71 ms | 15.8 ms | ~ 4.24 | `metrics.Collect`"), ""},
		"an unknown benchmark":  {"examples/README.md", measurements("1 s | 2 s | 2.00 | `metrics.Colect`"), "examples/README.md: | all | 1 s | 2 s | 2.00 | `metrics.Colect` |: there is no such benchmark\n"},
		"an unknown unit":       {"examples/README.md", measurements("1 m | 2 s | 2.00 | `metrics.Collect`"), "examples/README.md: | all | 1 m | 2 s | 2.00 | `metrics.Collect` |: has no figures\n"},
		"a row without a ratio": {"examples/README.md", measurements("1 s | 2 s | `metrics.Collect`"), "examples/README.md: | all | 1 s | 2 s | `metrics.Collect` |: has 4 cells\n"},

		"a picture that is not drawn": {"examples/pictures/b.png", "x", "examples/pictures/b.png: make pictures does not draw it\nexamples/pictures/b.png: no page shows it\n"},
		"a picture that is not kept":  {"examples/pictures/a.png", "", "metrics/README.md: the link ../examples/pictures/a.png leads to no file\nMakefile: examples/pictures/a.png, which make pictures draws, is not kept\n"},
		"a picture nobody shows":      {"metrics/README.md", "# A title\n", "examples/pictures/a.png: no page shows it\n"},

		"a target that is missing":   {".github/workflows/test.yml", strings.Replace(workflow, "make test", "make tset", 1), ".github/workflows/test.yml:12: the Makefile has no target tset\n"},
		"a variable that is missing": {".github/workflows/test.yml", strings.Replace(workflow, "ONLY=", "LIMIT=", 1), ".github/workflows/test.yml:12: the Makefile has no variable LIMIT\n"},
		"a target of the gate":       {".github/workflows/test.yml", strings.Replace(workflow, ".ci/run test", ".ci/run test && .ci/run e2e", 1), ".github/workflows/test.yml:13: the Makefile has no target e2e\n"},
		"a target within the gate":   {".ci/run", "packages=(\n\tmake gcc # the Makefile\n)\nif true; then\n\texec make \"$@\"\nfi\nmake lint\nmake test ONLY=x # in parts\nmake test > out 2>&1 &\n", ".ci/run: the Makefile has no target lint\n"},
		"a variable with a default":  {".github/workflows/test.yml", strings.Replace(workflow, "ONLY=", "SOAK=", 1), ""},
		"targets one by one":         {".github/workflows/test.yml", strings.Replace(workflow, "make test", "(make test && make a); make b; make test", 1), ".github/workflows/test.yml:12: the Makefile has no target a\n.github/workflows/test.yml:12: the Makefile has no target b\n"},
		"lines that go on":           {".github/workflows/test.yml", strings.Replace(workflow, "run: make test", "run: |\n          make test \\\n            c\n          echo", 1), ".github/workflows/test.yml:12: the Makefile has no target c\n"},
		"an input of an action":      {".github/workflows/test.yml", strings.Replace(workflow, "83dd", "83dd # v6.0.2\n        with: {clean-up: true}", 1), ".github/workflows/test.yml:12:16: input \"clean-up\" is not defined in action \"actions/checkout@v6\""},
		"a tag of an action":         {".github/workflows/test.yml", strings.Replace(workflow, "de0fac2e4500dabe0009e67214ff5f5447ce83dd", "v6", 1), ".github/workflows/test.yml:11: actions/checkout@v6 must be pinned by the hash of a commit\n"},
		"more rights":                {".github/workflows/test.yml", strings.Replace(workflow, "contents: read", "contents: write", 1), ".github/workflows/test.yml: must say permissions: contents: read, and no more\n"},
		"rights of a job":            {".github/workflows/test.yml", strings.Replace(workflow, "    timeout", "    permissions: write-all\n    timeout", 1), ".github/workflows/test.yml: job test: must ask for no more than contents: read\n"},
		"no end of a job":            {".github/workflows/test.yml", strings.Replace(workflow, "    timeout-minutes: 5\n", "", 1), ".github/workflows/test.yml: job test: must say timeout-minutes\n"},
		"runs beside each other":     {".github/workflows/test.yml", strings.Replace(workflow, "concurrency: test\n", "", 1), ".github/workflows/test.yml: must say concurrency, so that a newer run ends or awaits an older one\n"},
		"what is no workflow":        {".github/workflows/test.yml", strings.Replace(workflow, "runs-on", "run-on", 1), ".github/workflows/test.yml:7:3: \"runs-on\" section is missing"},

		"a module without updates":   {"examples/go.mod", "module example.com/y\n", ".github/dependabot.yml: /examples has a go.mod and is not named\n"},
		"updates of no module":       {".github/dependabot.yml", "version: 2\nupdates:\n  - package-ecosystem: gomod\n    directories: [/, /x]\n    schedule: {interval: daily}\n", ".github/dependabot.yml: /x has no go.mod\n"},
		"an interval that is none":   {".github/dependabot.yml", "version: 1\nupdates:\n  - package-ecosystem: gomod\n    directory: /\n    schedule: {interval: often}\n", ".github/dependabot.yml: version must be 2\n.github/dependabot.yml: gomod: the interval \"often\" is none\n"},
		"a key that is unknown":      {".github/dependabot.yml", "version: 2\nupdate: []\n", ".github/dependabot.yml: yaml: unmarshal errors:\n  line 2: field update not found in type main.dependabot\n"},
		"a form that asks nothing":   {".github/ISSUE_TEMPLATE/bug.yml", "name: Bug\nbody: []\n", ".github/ISSUE_TEMPLATE/bug.yml: must have a name and a description\n.github/ISSUE_TEMPLATE/bug.yml: asks for nothing\n"},
		"a form's strange element":   {".github/ISSUE_TEMPLATE/bug.yml", "name: Bug\ndescription: A fault\nbody:\n  - type: input\n    id: a\n  - type: dropdown\n    id: a\n    attributes: {label: A}\n  - type: text\n    attributes: {label: A}\n", ".github/ISSUE_TEMPLATE/bug.yml: element 1 has no label\n.github/ISSUE_TEMPLATE/bug.yml: element 2 has no options\n.github/ISSUE_TEMPLATE/bug.yml: element 2 has the id a, as another has\n.github/ISSUE_TEMPLATE/bug.yml: element 3 is of the type \"text\"\n"},
		"a form of two documents":    {".github/ISSUE_TEMPLATE/bug.yml", "name: Bug\n---\nname: Bug\n", ".github/ISSUE_TEMPLATE/bug.yml: is more than one document\n"},
		"a configuration is no form": {".github/ISSUE_TEMPLATE/config.yml", "blank_issues_enabled: false\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, map[string]string{test.file: test.content})
			if strings.HasSuffix(test.want, "\n") || test.want == "" {
				require.Equal(t, test.want, got)
				return
			}
			require.Contains(t, got, test.want)
		})
	}
}

func TestArguments(t *testing.T) {
	require.EqualError(t, house(t.Context(), []string{"here"}, io.Discard, io.Discard), `unexpected argument "here"`)
	require.Error(t, house(t.Context(), []string{"--root", filepath.Join(t.TempDir(), "none")}, io.Discard, io.Discard))
}
