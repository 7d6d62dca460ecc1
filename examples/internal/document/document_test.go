package document_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// The source of the first document is the file, and that of each other document has its number. Empty
// documents are left out, but they count: in "empty between" the second document with content is number 3.
func TestParseSplitsIntoDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		sources []string
	}{
		"one":             {text: "a: 1\n", sources: []string{"f"}},
		"two":             {text: "a: 1\n---\na: 2\n", sources: []string{"f", "f (document 2)"}},
		"separator first": {text: "---\na: 1\n", sources: []string{"f"}},
		"comment only":    {text: "# nothing\n", sources: []string{}},
		"empty between":   {text: "a: 1\n---\n# nothing\n---\na: 3\n", sources: []string{"f", "f (document 3)"}},
		"JSON":            {text: "\n\t{\"a\": 1}\n", sources: []string{"f"}},
		"two JSON":        {text: "{\"a\": 1}\n{\"a\": 2}", sources: []string{"f", "f (document 2)"}},
		"nothing":         {text: "", sources: []string{}},
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

// Read returns the documents of a file.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(file, []byte("kind: Pod"), 0o600))
	docs, err := document.Read(file)
	require.NoError(t, err)
	require.Equal(t, []document.Document{{Source: file, JSON: []byte(`{"kind":"Pod"}`)}}, docs)
}

// A missing file is an error that names it, and so are a folder and a device, whose reading might never end.
func TestReadReadsOnlyFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "pod.yaml")
	_, err := document.Read(missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)
	for _, path := range []string{t.TempDir(), os.DevNull} {
		_, err = document.Read(path)
		require.EqualError(t, err, path+": is not a regular file")
	}
}
