package document

import (
	"bytes"
	"fmt"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Document is one object of a file.
type Document struct {
	// Source names the document in errors: the file, and the number of the document (from
	// 1) where the file has several.
	Source string
	// JSON is the object; a YAML document has been converted.
	JSON []byte
}

// Read reads the documents of a YAML or JSON file. It reads the file as [ReadFile] does and
// splits it as [Parse] does.
func Read(file string) ([]Document, error) {
	text, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// Parse splits a YAML or JSON text into its documents. Empty documents are left out. A
// document of more than [MaxDocumentBytes] bytes and a text of more than [MaxDocuments]
// documents are errors.
func Parse(source string, text []byte) ([]Document, error) {
	split := splitYAML
	if utilyaml.IsJSONBuffer(text) {
		split = splitJSON
	}
	parts, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", documentSource(source, len(parts), len(parts) > 0), err)
	}
	docs := make([]Document, 0, len(parts))
	for i, part := range parts {
		if !bytes.Equal(bytes.TrimSpace(part), []byte("null")) {
			docs = append(docs, Document{Source: documentSource(source, i, len(parts) > 1), JSON: part})
		}
	}
	return docs, nil
}

// documentSource returns the Source of the document with the index i. It has a number only
// if there are several documents.
func documentSource(source string, i int, several bool) string {
	if !several {
		return source
	}
	return fmt.Sprintf("%s (document %d)", source, i+1)
}
