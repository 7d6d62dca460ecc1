package document

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Document is one object of a file, as JSON.
type Document struct {
	// Source is where it comes from, for people: the file, and the number of the
	// document (from 1) where the file has several.
	Source string
	JSON   []byte
}

// Read reads the documents of a YAML or JSON file, as [ReadFile] reads it, each of at most
// [MaxDocument] bytes. Empty ones are left out.
func Read(file string) ([]Document, error) {
	text, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// Parse splits a YAML or JSON text into its documents. Empty ones are left out.
func Parse(source string, text []byte) ([]Document, error) {
	split := splitYAML
	if utilyaml.IsJSONBuffer(text) {
		split = splitJSON
	}
	parts, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", numbered(source, len(parts), len(parts) > 0), err)
	}
	docs := make([]Document, 0, len(parts))
	for i, part := range parts {
		if !bytes.Equal(bytes.TrimSpace(part), []byte("null")) {
			docs = append(docs, Document{Source: numbered(source, i, len(parts) > 1), JSON: part})
		}
	}
	return docs, nil
}

// numbered is the source of the i-th document.
func numbered(source string, i int, several bool) string {
	if !several {
		return source
	}
	return fmt.Sprintf("%s (document %d)", source, i+1)
}

// splitYAML gives each document as JSON; with an error, those before it.
func splitYAML(text []byte) ([][]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var parts [][]byte
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return parts, fmt.Errorf("failed to split into documents: %w", err)
		}
		if err := checkCount(len(parts)); err != nil {
			return nil, err
		}
		part, err = toJSON(part)
		if err != nil {
			return parts, err
		}
		parts = append(parts, part)
	}
}

// toJSON makes JSON of one document of YAML.
func toJSON(text []byte) ([]byte, error) {
	if err := checkSize(len(text)); err != nil {
		return nil, err
	}
	if err := checkAliases(text); err != nil {
		return nil, err
	}
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	return text, nil
}

// splitJSON gives each of the JSON values that follow each other in a text.
func splitJSON(text []byte) ([][]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var parts [][]byte
	for {
		var part json.RawMessage
		err := decoder.Decode(&part)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil && strings.Contains(err.Error(), "exceeded max depth") { // encoding/json has no error of its own for it
			err = errDeep
		}
		if err != nil {
			return parts, fmt.Errorf("not valid JSON, line %d: %w", line(text, decoder, err), err)
		}
		if err := checkCount(len(parts)); err != nil {
			return nil, err
		}
		if err := checkSize(len(part)); err != nil {
			return parts, err
		}
		parts = append(parts, part)
	}
}

// line is where in a text the decoder stumbled, from 1.
func line(text []byte, decoder *json.Decoder, err error) int {
	offset := decoder.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		offset = int64(len(text))
	}
	return 1 + bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n"))
}
