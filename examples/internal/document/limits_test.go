package document_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// billionLaughs returns ten lists, each of which has ten aliases of the list before it.
func billionLaughs() string {
	var text strings.Builder
	fmt.Fprint(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text.String()
}

func TestDocumentsThatAreTooLargeAreRefused(t *testing.T) {
	const aliases = "is too large: with its aliases the document has more than 3145728 bytes (3 MiB), which are the limit"
	long := "a: &a " + strings.Repeat("x", 100<<10) + "\n"
	for name, test := range map[string]struct{ text, want string }{
		"billion laughs":             {billionLaughs(), aliases},
		"one long text many times":   {long + "b: [" + strings.Repeat("*a, ", 100_000) + "]", aliases},
		"a few times too often":      {long + "b: [" + strings.Repeat("*a, ", 31) + "]", aliases},
		"merged":                     {"a: &a {b: " + strings.Repeat("x", 1<<20) + "}\nc: [" + strings.Repeat("{<<: *a}, ", 50) + "]", aliases},
		"a list in itself":           {"a: &a [*a]", aliases},
		"a mapping in itself":        {"a: &a {b: *a}", aliases},
		"lists in each other":        {"a: " + strings.Repeat("[", 1<<20), "not valid YAML: yaml: exceeded max depth of 10000"},
		"mappings in each other":     {"a: " + strings.Repeat("{a: ", 500_000), "not valid YAML: yaml: exceeded max depth of 10000"},
		"JSON lists in each other":   {`{"a": ` + strings.Repeat("[", 1<<20), "not valid JSON, line 1: more than 10000 lists and mappings in each other"},
		"large YAML":                 {"a: " + strings.Repeat("x", document.MaxDocumentBytes), "is too large: the document has 3145732 bytes, and 3145728 (3 MiB) are the limit"},
		"large YAML of small values": {"a: [" + strings.Repeat("a,", 3<<20) + "]", "is too large: the document has 6291462 bytes, and 3145728 (3 MiB) are the limit"},
		"too many documents":         {strings.Repeat("---\na: 1\n", document.MaxDocuments+1), "has too many documents: 10000 are the limit"},
		"too many JSON values":       {strings.Repeat("{}\n", document.MaxDocuments+1), "has too many documents: 10000 are the limit"},
		"large JSON":                 {`{"a": "` + strings.Repeat("x", document.MaxDocumentBytes) + `"}`, "is too large: the document has 3145737 bytes, and 3145728 (3 MiB) are the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes := allocated(func() { _, err = document.Parse("f", []byte(test.text)) })
			require.EqualError(t, err, "f: "+test.want)
			require.Less(t, bytes, uint64(200<<20))
		})
	}
	_, err := document.Parse("f", []byte("a: 1\n---\n"+billionLaughs()))
	require.EqualError(t, err, "f (document 2): "+aliases)
}

// allocated returns how many bytes a function allocates, including those that the garbage
// collector frees meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestALargeFileIsNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(file, []byte("kind: Pod\nmetadata: {name: a}\n"), 0o600))
	require.NoError(t, os.Truncate(file, 100_000_000))
	var err error
	bytes := allocated(func() { _, err = document.Read(file) })
	require.EqualError(t, err, file+": is too large: it has 100000000 bytes or more, and 10485760 (10 MiB) are the limit")
	require.Less(t, bytes, uint64(1<<20))
}

func TestAliases(t *testing.T) {
	pods, err := decodeAll("metadata: {name: a, labels: &labels {a: b}, annotations: *labels}\nspec: {containers: [&c {name: c, image: 'a && *'}, *c, {<<: *c, command: [a]}]}")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, pods[0].Annotations)
	require.Equal(t, []v1.Container{{Name: "c", Image: "a && *"}, {Name: "c", Image: "a && *"}, {Name: "c", Image: "a && *", Command: []string{"a"}}}, pods[0].Spec.Containers)
}

func TestErrorsShowTheBeginningOfALongValue(t *testing.T) {
	for name, text := range map[string]string{
		"text":        "spec: {priority: " + strings.Repeat("é", 1000) + "}",
		"unknown":     "imag: " + strings.Repeat("x", 1000),
		"list":        "spec: {imag: [" + strings.Repeat("x, ", 1000) + "]}",
		"no document": strings.Repeat("x ", 1000),
	} {
		_, err := decodeAll(text)
		require.ErrorContains(t, err, "…", name)
		require.NotContains(t, err.Error(), `\x`, "a character is not cut in two")
		require.Less(t, len(err.Error()), 500, name)
	}
}
