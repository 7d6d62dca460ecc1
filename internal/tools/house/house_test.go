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
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
      - run: make test ONLY=${{ github.ref_name }}
      - run: .ci/run test
`

// attest is another job of workflow. It may attest files, because it runs no commands.
const attest = `  attest:
    permissions: {id-token: write, attestations: write}
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
`

// soundFiles returns the files of a repository without problems.
func soundFiles() map[string]string {
	return map[string]string{
		"Makefile":                      "SOAK ?= 5m\ntest: ## run\n\t@go test --only '$(ONLY)'\n",
		"README.md":                     "# A title\n\nSee [below](#two-words), [the code](metrics), [a page](examples/README.md#a-title).\n\n## Two `words`!\n",
		"examples/README.md":            "# A title\n\n[up](../README.md) [out](https://example.com/nowhere)\n\n```\n[no](link)\n```\n",
		"metrics/options.go":            "package metrics\n\n// Options are.\ntype Options struct {\n\t// A and B are.\n\tA int\n\tB int\n\n\tc int\n}\n",
		"metrics/internal/x/options.go": "package x\n\n// Options are.\ntype Options struct{ A int }\n",
		"go.mod":                        "module example.com/x\n",
		".github/workflows/test.yml":    workflow,
		".github/dependabot.yml":        "version: 2\nupdates:\n  - package-ecosystem: gomod\n    directories: [/]\n  - package-ecosystem: github-actions\n    directories: [/x]\n",
	}
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

// The program prints nothing for a repository without problems. TestProblems changes one file of this repository.
func TestSoundRepository(t *testing.T) {
	require.Empty(t, problems(t, nil))
}

// Each case changes one file of a repository without problems. The program must print exactly the problems that the
// change makes, or nothing if the change is allowed.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		want          string
	}{
		"a file in the top folder":   {file: "build.sh", content: "#!/bin/sh\n", want: "build.sh: does not belong into the top folder\n"},
		"a folder in the top folder": {file: "pkg/x/x.go", content: "package x\n", want: "pkg: does not belong into the top folder\n"},

		"a link to no file":         {file: "examples/README.md", content: "# A title\n[x](none.md)\n", want: "examples/README.md: the link none.md leads to no file\n"},
		"a link out":                {file: "examples/README.md", content: "# A title\n[x](../../x)\n", want: "examples/README.md: the link ../../x leads out of the repository\n"},
		"an absolute link":          {file: "examples/README.md", content: "# A title\n[x](/Makefile)\n", want: "examples/README.md: the link /Makefile leads out of the repository\n"},
		"a link to no heading":      {file: "examples/README.md", content: "# A title\n[x](#a-titel)\n", want: "examples/README.md: the link #a-titel leads to no heading\n"},
		"a folder's page":           {file: "README.md", content: "# A title\n[x](examples#a-title) [y](examples#b)\n", want: "README.md: the link examples#b leads to no heading\n"},
		"an anchor of no page":      {file: "README.md", content: "# A title\n[x](Makefile#L1)\n", want: "README.md: the link Makefile#L1 leads to no heading\n"},
		"what git ignores":          {file: "README.md", content: "# A title\n[x](.git/HEAD)\n", want: "README.md: the link .git/HEAD leads to no file\n"},
		"a second heading's anchor": {file: "examples/README.md", content: "# A title\n\n# A title\n\n[x](#a-title-1)\n", want: ""},

		"a command of a page": {file: "examples/README.md", content: "# A title\n\nDo `make\ntset` and `make test ONLY=x`.\n", want: "examples/README.md: make\ntset: the Makefile has no tset\n"},
		"a script of a page":  {file: "examples/README.md", content: "# A title\n\n    make test\n    make build # all\n", want: "examples/README.md: make build # all: the Makefile has no build\n"},

		"an option without a comment": {file: "metrics/options.go", content: "package metrics\n\n// Options are.\ntype Options struct {\n\t// A is.\n\tA int\n\n\tB int\n}\n", want: "metrics/options.go:8: Options.B has no comment\n"},
		"a field after a gap":         {file: "metrics/a.go", content: "package metrics\n\n// A is.\ntype A struct {\n\tB int\n\n\tC int\n}\n", want: "metrics/a.go:7: A.C has no comment\n"},
		"a method after a gap":        {file: "metrics/a.go", content: "package metrics\n\n// A is.\ntype A interface {\n\tB()\n\n\tC()\n}\n", want: "metrics/a.go:7: A.C has no comment\n"},
		"a constant of a group":       {file: "metrics/a.go", content: "package metrics\n\n// These are.\nconst (\n\t// A and B are.\n\tA = 1\n\tB = 2\n\n\tC = 3\n)\n", want: "metrics/a.go:9: C has no comment\n"},
		"comments beside":             {file: "metrics/a.go", content: "package metrics\n\n// A is.\ntype A struct{ B, C int }\n\n// These are.\nvar (\n\tD int // D is.\n)\n", want: ""},

		"a link of a comment":         {file: "metrics/a.go", content: "// Package metrics has [Options], [Options.Set], [*Options], [context.Context] and [lost].\npackage metrics\n\nimport _ \"context\"\n\n// Set is.\nfunc (o *Options) Set(lost int) {}\n", want: "metrics/a.go:1: the comment's [lost] leads nowhere\n"},
		"a link of a field":           {file: "metrics/a.go", content: "package metrics\n\ntype a struct {\n\t// b is [Options.Sett].\n\tb int\n}\n", want: "metrics/a.go:4: the comment's [Options.Sett] leads nowhere\n"},
		"a link in a list":            {file: "metrics/a.go", content: "package metrics\n\n// a is\n//\n//   - [Lost], and not\n//\n//\tlist[Any]\nconst a = 1\n", want: "metrics/a.go:3: the comment's [Lost] leads nowhere\n"},
		"a link to another package":   {file: "examples/a.go", content: "package examples\n\nimport \"github.com/kubegrace/kubegrace/metrics\"\n\n// a is [metrics.Options] or [metrics.Lost].\nvar a metrics.Options\n", want: "examples/a.go:5: the comment's [github.com/kubegrace/kubegrace/metrics.Lost] leads nowhere\n"},
		"a link to an unexported one": {file: "metrics/a.go", content: "package metrics\n\n// a is [b].\nconst a = b\n\nconst b = 1\n", want: ""},

		"a target of a workflow":   {file: ".github/workflows/test.yml", content: strings.Replace(workflow, "make test", "make tset", 1), want: ".github/workflows/test.yml: - run: make tset ONLY=${{ github.ref_name }}: the Makefile has no tset\n"},
		"a variable of a workflow": {file: ".github/workflows/test.yml", content: strings.Replace(workflow, "ONLY=", "LIMIT=", 1), want: ".github/workflows/test.yml: - run: make test LIMIT=${{ github.ref_name }}: the Makefile has no LIMIT\n"},
		"a target of the gate":     {file: ".ci/run", content: "if true; then\n\texec make \"$@\"\nfi\nmake lint\nmake test SOAK=x # in parts\n", want: ".ci/run: make lint: the Makefile has no lint\n"},
		"a value of a target":      {file: ".ci/run", content: "make test=x\n", want: ".ci/run: make test=x: the Makefile has no test\n"},

		"an action that is not pinned": {file: ".github/workflows/test.yml", content: strings.Replace(workflow, "de0fac2e4500dabe0009e67214ff5f5447ce83dd # ", "", 1), want: ".github/workflows/test.yml: actions/checkout@v6.0.2 must be pinned by the hash of a commit, with the version in a comment\n"},
		"more rights":                  {file: ".github/workflows/test.yml", content: strings.Replace(workflow, "contents: read", "contents: write", 1), want: ".github/workflows/test.yml: must say permissions: contents: read, and no more\n"},
		"rights of a job":              {file: ".github/workflows/test.yml", content: strings.Replace(workflow, "    timeout", "    permissions: write-all\n    timeout", 1), want: ".github/workflows/test.yml: job test: must have no permissions of its own, or run nothing and attest\n"},
		"the rights of an attestation": {file: ".github/workflows/test.yml", content: workflow + attest, want: ""},
		"commands beside attestations": {file: ".github/workflows/test.yml", content: workflow + attest + "      - run: make test\n", want: ".github/workflows/test.yml: job attest: must have no permissions of its own, or run nothing and attest\n"},
		"no end of a job":              {file: ".github/workflows/test.yml", content: strings.Replace(workflow, "    timeout-minutes: 5\n", "", 1), want: ".github/workflows/test.yml: job test: must say timeout-minutes\n"},
		"no workflow":                  {file: ".github/workflows/test.yml", content: "", want: "commands: there is nothing to check\nworkflows: there is nothing to check\n"},

		"a module without updates": {file: "examples/go.mod", content: "module example.com/y\n", want: ".github/dependabot.yml: /examples has a go.mod and is not named\n"},
		"updates of no module":     {file: ".github/dependabot.yml", content: "updates:\n  - package-ecosystem: gomod\n    directories: [/, /x]\n", want: ".github/dependabot.yml: /x has no go.mod\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, problems(t, map[string]string{test.file: test.content}))
		})
	}
}

// An argument that is no flag is an error, and so is a folder that does not exist. Otherwise the empty output would mean
// that all is well.
func TestArguments(t *testing.T) {
	require.EqualError(t, house(t.Context(), []string{"here"}, io.Discard, io.Discard), `unexpected argument "here"`)
	require.Error(t, house(t.Context(), []string{"--root", filepath.Join(t.TempDir(), "none")}, io.Discard, io.Discard))
}
