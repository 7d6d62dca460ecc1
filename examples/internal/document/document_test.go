package document_test

import (
	"os"
	"path/filepath"
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
		docs, err := document.Parse("f", []byte(test.text))
		require.NoError(t, err)
		sources := []string{}
		for _, doc := range docs {
			sources = append(sources, doc.Source)
		}
		require.Equal(t, test.sources, sources, name)
	}
}

// An error says where the text is wrong: the source, the field and the value.
func TestErrorsNameSourceFieldAndValue(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":           {"a: [", "f: not valid YAML or JSON: "},
		"second is no YAML": {"kind: Pod\n---\na: [", "f (document 2): not valid YAML or JSON: "},
		"second is no JSON": {"{}\n{}\n{]", "f (document 3): not valid YAML or JSON: "},
		"JSON given twice":  {`{"kind": "Pod", "kind": "Pod"}`, `f: jsontext: duplicate object member name "kind"`},
		"unknown field":     {"spec: {containers: [{imag: nginx}]}", `unknown object member name "imag" within "/spec/containers/0"`},
		"by case":           {"Kind: Pod", `unknown object member name "Kind"`},
		"number wanted":     {"spec: {terminationGracePeriodSeconds: soon}", `JSON string into Go int64 within "/spec/terminationGracePeriodSeconds"`},
	} {
		_, err := decodeAll(test.text)
		require.ErrorContains(t, err, test.want, name)
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

// Read returns the documents of a file. A missing file is an error that names it, and so are a folder and a device,
// whose reading might never end.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	_, err := document.Read(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, file)

	require.NoError(t, os.WriteFile(file, []byte("kind: Pod"), 0o600))
	docs, err := document.Read(file)
	require.NoError(t, err)
	require.Equal(t, []document.Document{{Source: file, JSON: []byte(`{"kind":"Pod"}`)}}, docs)

	folder := t.TempDir()
	_, err = document.Read(folder)
	require.EqualError(t, err, folder+": is a folder, wanted is a file")
	_, err = document.Read(os.DevNull)
	require.EqualError(t, err, os.DevNull+": is not a regular file")
}

// Parsing and decoding never panic, whatever the text is.
func FuzzDecode(f *testing.F) {
	f.Add("spec: {containers: [{imag: nginx}]}")
	f.Add(`{"spec": {"priority": 1e99}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		decodeAll(text) //nolint:errcheck // any result will do, a panic will not
	})
}
