package document_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// The source of the first document is the file, and that of each other document has its number. Empty
// documents are left out, but they count: in "empty between" the second document with content is number 3.
func TestParseSplitsIntoDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		sources []string
	}{
		"one":             {"a: 1\n", []string{"f"}},
		"two":             {"a: 1\n---\na: 2\n", []string{"f", "f (document 2)"}},
		"separator first": {"---\na: 1\n", []string{"f"}},
		"comment only":    {"# nothing\n", []string{}},
		"empty between":   {"a: 1\n---\n# nothing\n---\na: 3\n", []string{"f", "f (document 3)"}},
		"JSON":            {"\n\t{\"a\": 1}\n", []string{"f"}},
		"two JSON":        {"{\"a\": 1}\n{\"a\": 2}", []string{"f", "f (document 2)"}},
		"nothing":         {"", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := document.Parse("f", []byte(test.text))
			require.NoError(t, err)
			sources := []string{}
			for _, doc := range docs {
				sources = append(sources, doc.Source)
			}
			require.Equal(t, test.sources, sources)
		})
	}
}

// An error says where the text is wrong: the source, the field and the value. YAML whose aliases would grow to
// 10^10 values, that contains itself or that is nested a million levels deep is an error too, and must not use
// up all memory.
func TestErrorsNameSourceFieldAndValue(t *testing.T) {
	var aliases strings.Builder // each list has ten aliases of the list before it
	aliases.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&aliases, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":           {"a: [", "f: not valid YAML or JSON: "},
		"second is no YAML": {"kind: Pod\n---\na: [", "f (document 2): not valid YAML or JSON: "},
		"second is no JSON": {"{}\n{}\n{]", "f (document 3): not valid YAML or JSON: "},
		"JSON cut off":      {"{\n\"kind\":\n", "f: not valid YAML or JSON: unexpected EOF"},
		"JSON given twice":  {`{"kind": "Pod", "kind": "Pod"}`, `f: jsontext: duplicate object member name "kind"`},
		"unknown field":     {"spec: {containers: [{imag: nginx}]}", `unknown object member name "imag" within "/spec/containers/0"`},
		"by case":           {"Kind: Pod", `unknown object member name "Kind"`},
		"number wanted":     {"spec: {terminationGracePeriodSeconds: soon}", `JSON string into Go int64 within "/spec/terminationGracePeriodSeconds"`},
		"too large":         {"spec: {priority: 3000000000}", `3000000000 into Go int32 within "/spec/priority": value out of range`},
		"own decoder":       {"spec: {containers: [{resources: {limits: {cpu: lots}}}]}", `within "/spec/containers/0/resources/limits/cpu": quantities must match`},
		"alias in itself":   {"a: &a [*a]", "f: not valid YAML or JSON: "},
		"aliases that grow": {aliases.String(), "f: not valid YAML or JSON: "},
		"deep YAML":         {"a: " + strings.Repeat("[", 1<<20), "f: not valid YAML or JSON: "},
		"a sentence":        {"not a pod", "JSON string into Go v1.Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeAll(test.text)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// decodeAll decodes each document of a text into a pod.
func decodeAll(text string) (pods []*v1.Pod, err error) {
	docs, err := document.Parse("f", []byte(text))
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		pod, err := document.Decode[v1.Pod](doc)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// Read returns the documents of a file. A missing file is an error that names it.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	_, err := document.Read(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, file)

	require.NoError(t, os.WriteFile(file, []byte("kind: Pod"), 0o600))
	docs, err := document.Read(file)
	require.NoError(t, err)
	require.Equal(t, []document.Document{{Source: file, JSON: []byte(`{"kind":"Pod"}`)}}, docs)
}

// A folder and a device are errors. Reading a device might never end.
func TestReadRefusesWhatIsNotARegularFile(t *testing.T) {
	folder := t.TempDir()
	_, err := document.Read(folder)
	require.EqualError(t, err, folder+": is a folder, wanted is a file")
	_, err = document.Read(os.DevNull)
	require.EqualError(t, err, os.DevNull+": is not a regular file")
}

// Decode gives the object that the YAML text means, with its aliases (*labels) and merges (<<) resolved. An
// "&" or "*" within a quoted text is no alias.
func TestDecode(t *testing.T) {
	pods, err := decodeAll("metadata: {name: a, labels: &labels {a: b}, annotations: *labels}\nspec: {containers: [&c {name: c, image: 'a && *'}, *c, {<<: *c, image: b}]}")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, pods[0].Annotations)
	require.Equal(t, []v1.Container{{Name: "c", Image: "a && *"}, {Name: "c", Image: "a && *"}, {Name: "c", Image: "b"}}, pods[0].Spec.Containers)
}

// Parsing and decoding never panic, whatever the text is.
func FuzzDecode(f *testing.F) {
	f.Add("spec: {containers: [{imag: nginx}]}")
	f.Add(`{"spec": {"priority": 1e99}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		decodeAll(text) //nolint:errcheck // any result will do, a panic will not
	})
}
