package document

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Document is one object of a file.
type Document struct {
	// Source names the document in errors: the file, and the number of the document (from
	// 1) where the file has several.
	Source string
	// JSON is the object; a YAML document has been converted.
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

// ReadFile returns the content of a regular file, or of the regular file that a link leads
// to. A pipe and a device are errors, because reading them might never end. Errors name the
// file.
func ReadFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: failed to read: %w", file, errors.Unwrap(err)) // without a second name of the file
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a folder, wanted is a file", file)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: failed to read: %w", file, errors.Unwrap(err))
	}
	return text, nil
}

// Parse splits a YAML or JSON text into its documents. Empty documents are left out.
func Parse(source string, text []byte) ([]Document, error) {
	objects, err := split(text)
	name := func(i int) string { return fmt.Sprintf("%s (document %d)", source, i+1) }
	if len(objects) == 0 || len(objects) == 1 && err == nil {
		name = func(int) string { return source }
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(len(objects)), err)
	}
	docs := make([]Document, 0, len(objects))
	for i, object := range objects {
		if string(object) != "null" {
			docs = append(docs, Document{Source: name(i), JSON: object})
		}
	}
	return docs, nil
}

// split returns each document of a text as JSON. With an error it returns those before the wrong one.
func split(text []byte) (objects [][]byte, err error) {
	parts := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		part, err := parts.Read()
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return objects, fmt.Errorf("not valid YAML: %w", err)
		case utilyaml.IsJSONBuffer(part):
			objects, err = appendJSON(objects, part)
		default:
			objects, err = appendYAML(objects, part)
		}
		if err != nil {
			return objects, err
		}
	}
}

// appendYAML appends a YAML document. A field that is given twice is an error, except beside a merge,
// which it may override.
func appendYAML(objects [][]byte, text []byte) ([][]byte, error) {
	toJSON := yaml.YAMLToJSONStrict
	if bytes.Contains(text, []byte("<<:")) {
		toJSON = yaml.YAMLToJSON
	}
	object, err := toJSON(text)
	if err != nil {
		return objects, fmt.Errorf("not valid YAML: %w", err)
	}
	return append(objects, object), nil
}

// appendJSON appends the JSON values that follow each other in a text.
func appendJSON(objects [][]byte, text []byte) ([][]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		object, err := decoder.ReadValue()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return objects, fmt.Errorf("not valid JSON: ends too early, as if it was cut off: %w", err)
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return objects, fmt.Errorf("not valid JSON: %w", err)
		}
		objects = append(objects, bytes.Clone(object))
	}
}
