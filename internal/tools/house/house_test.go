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

// workflow is one with which nothing is wrong.
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

// sound gives the files of a repository with which nothing is wrong.
func sound() map[string]string {
	return map[string]string{
		"Makefile":                        "test: ## run\n\t@go test --only '$(ONLY)'\n",
		"README.md":                       "# A title\n\nSee [below](#two-words), [the code](metrics), [a page](examples/README.md#a-title).\n\n## Two `words`!\n",
		"examples/README.md":              "# A title\n\n[up](../README.md) [out](https://example.com/nowhere)\n\n```\n[no](link)\n```\n",
		"metrics/options.go":              "package metrics\n\n// Options are.\ntype Options struct {\n\t// A and B are.\n\tA int\n\tB int\n\n\tc int\n}\n",
		"metrics/internal/x/options.go":   "package x\n\n// Options are.\ntype Options struct{ A int }\n",
		"go.mod":                          "module example.com/x\n",
		".github/workflows/test.yml":      workflow,
		".github/dependabot.yml":          "version: 2\nupdates:\n  - package-ecosystem: gomod\n    directories: [/]\n    schedule: {interval: weekly}\n",
		".github/ISSUE_TEMPLATE/bug.yml":  "name: Bug\ndescription: A fault\nbody:\n  - type: input\n    id: version\n    attributes: {label: Version}\n",
		".github/ISSUE_TEMPLATE/none.txt": "",
	}
}

// problems runs the program on sound files with the given changes; an empty content removes
// a file.
func problems(t *testing.T, changes map[string]string) string {
	t.Helper()
	root, files := t.TempDir(), sound()
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
		"a name that only contains it": {"metrics/utilization.go", "package metrics\n", ""},

		"a link to no file":         {"examples/README.md", "# A title\n[x](none.md)\n", "examples/README.md: the link none.md leads to no file\n"},
		"a link out":                {"examples/README.md", "# A title\n[x](../../x)\n", "examples/README.md: the link ../../x leads out of the repository\n"},
		"an absolute link":          {"examples/README.md", "# A title\n[x](/Makefile)\n", "examples/README.md: the link /Makefile leads out of the repository\n"},
		"a link to no heading":      {"examples/README.md", "# A title\n[x](#a-titel)\n", "examples/README.md: the link #a-titel leads to no heading\n"},
		"a picture that is missing": {"examples/README.md", "# A title\n![x](x.png)\n", "examples/README.md: the link x.png leads to no file\n"},
		"a picture in HTML":         {"examples/README.md", "# A title\n\n<img src=\"x.png\">\n", "examples/README.md: the link x.png leads to no file\n"},
		"a link within HTML":        {"examples/README.md", "# A title\n\nx <a href=\"x.png\">x</a>\n", "examples/README.md: the link x.png leads to no file\n"},
		"a second heading's anchor": {"examples/README.md", "# A title\n\n# A title\n\n[x](#a-title-1)\n", ""},
		"an anchor in HTML":         {"examples/README.md", "# A title\n\n<a id=\"y\"></a>\n\n[x](#y)\n", ""},

		"a command of a page": {"examples/README.md", "# A title\n\nDo `make\ntset` and `make test ONLY=x`.\n", "examples/README.md: make tset: the Makefile has no target tset\n"},
		"a script of a page":  {"examples/README.md", "# A title\n\n    make test\n    make build # all\n", "examples/README.md: make build # all: the Makefile has no target build\n"},

		"an option without a comment": {"metrics/options.go", "package metrics\n\n// Options are.\ntype Options struct {\n\t// A is.\n\tA int\n\n\tB int\n}\n", "metrics/options.go:8: Options.B has no comment\n"},

		"a target that is missing":   {".github/workflows/test.yml", strings.Replace(workflow, "make test", "make tset", 1), ".github/workflows/test.yml:12: the Makefile has no target tset\n"},
		"a variable that is missing": {".github/workflows/test.yml", strings.Replace(workflow, "ONLY=", "LIMIT=", 1), ".github/workflows/test.yml:12: the Makefile has no variable LIMIT\n"},
		"a target of the gate":       {".github/workflows/test.yml", strings.Replace(workflow, ".ci/run test", ".ci/run test && .ci/run e2e", 1), ".github/workflows/test.yml:13: the Makefile has no target e2e\n"},
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
