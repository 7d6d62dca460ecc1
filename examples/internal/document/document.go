package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Document is one object of a file.
type Document struct {
	// Source names the document in errors: the file and, from the second document on, the document's number.
	Source string
	// JSON is the object as JSON, also if the file has YAML.
	JSON []byte
}

// Read reads the documents of a YAML or JSON file, with [ReadFile] and [Parse].
func Read(file string) ([]Document, error) {
	text, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// ReadFolder reads the documents of the files of a folder, in the order of their names. The names must end in .yaml, .yml,
// .json, or .manifest, as kops names the manifests of static pods. The error names every file that cannot be read; the
// documents of the other files are returned too.
func ReadFolder(folder string) (docs []Document, err error) {
	entries, err := os.ReadDir(folder)
	errs := []error{err}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json", ".manifest"}, filepath.Ext(entry.Name())) {
			continue
		}
		more, err := Read(filepath.Join(folder, entry.Name()))
		docs, errs = append(docs, more...), append(errs, err)
	}
	return docs, errors.Join(errs...)
}

// ReadFile returns the content of a regular file, or of a symbolic link to one. Anything else is an
// error, because reading a pipe or a device might never end. Errors name the file.
func ReadFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: failed to read: %w", file, errors.Unwrap(err)) // unwrapped, because err names the file too
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: failed to read: %w", file, errors.Unwrap(err))
	}
	return text, nil
}

// Parse splits a YAML or JSON text into its documents. Empty documents are left out, but they count in the
// numbers of the documents after them. If YAML has a field twice, the last value counts, as for a kubelet.
func Parse(source string, text []byte) ([]Document, error) {
	docs := []Document{}
	lookAhead := max(len(text), 1) // the decoder may read the whole text to find out whether it is JSON
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), lookAhead)
	for number := 1; ; number++ {
		doc := Document{Source: source}
		if number > 1 {
			doc.Source = fmt.Sprintf("%s (document %d)", source, number)
		}
		err := decoder.Decode((*json.RawMessage)(&doc.JSON))
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: not valid YAML or JSON: %w", doc.Source, err)
		}
		isEmpty := len(doc.JSON) == 0 || string(doc.JSON) == "null"
		if !isEmpty {
			docs = append(docs, doc)
		}
	}
}
