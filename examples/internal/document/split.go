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

// splitYAML returns each document of a YAML text as JSON. With an error it returns the
// documents before the wrong one, so that the caller knows its number.
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

// toJSON converts one YAML document to JSON.
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

// splitJSON returns each of the JSON values that follow each other in a text. With an error
// it returns the values before the wrong one, so that the caller knows its number.
func splitJSON(text []byte) ([][]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var parts [][]byte
	for {
		var part json.RawMessage
		err := decoder.Decode(&part)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil && strings.Contains(err.Error(), "exceeded max depth") { // encoding/json has no type for this error
			err = errTooDeep
		}
		if err != nil {
			return parts, fmt.Errorf("not valid JSON, line %d: %w", errorLine(text, decoder, err), err)
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

// errorLine returns the line of text, counted from 1, in which the decoder failed.
func errorLine(text []byte, decoder *json.Decoder, err error) int {
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
