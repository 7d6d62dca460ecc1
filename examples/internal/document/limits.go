package document

import (
	"bytes"
	"errors"
	"fmt"

	yaml "go.yaml.in/yaml/v3"
)

const (
	// MaxDocumentBytes is the size of the largest document that is read, with its aliases
	// expanded. It is the size of the largest request that an API server accepts
	// (k8s.io/apiserver, MaxRequestBodyBytes).
	MaxDocumentBytes = 3 << 20

	// MaxDocuments is the largest number of documents that are read from one text. It bounds
	// the time that a text of many tiny documents takes.
	MaxDocuments = 10_000
)

// errTooDeep replaces the error of encoding/json for values that are nested too deep.
var errTooDeep = errors.New("more than 10000 lists and mappings in each other")

// checkCount returns an error if one document more than those that were read is too many.
func checkCount(read int) error {
	if read >= MaxDocuments {
		return fmt.Errorf("has too many documents: %d are the limit", MaxDocuments)
	}
	return nil
}

// checkSize returns an error if a document of size bytes is too large.
func checkSize(size int) error {
	if size > MaxDocumentBytes {
		return fmt.Errorf("is too large: the document has %d bytes, and %d (3 MiB) are the limit", size, MaxDocumentBytes)
	}
	return nil
}

// checkAliases returns an error if a YAML document is too large with its aliases expanded.
// Each alias stands for a value that may contain aliases itself, so a few lines can expand
// to any size.
func checkAliases(text []byte) error {
	if !bytes.ContainsRune(text, '*') || !bytes.ContainsRune(text, '&') {
		return nil // a text without aliases is not parsed a second time
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("not valid YAML: %w", err)
	}
	if (expandedSizes{}).of(&root) > MaxDocumentBytes {
		return fmt.Errorf("is too large: with its aliases the document has more than %d bytes (3 MiB), which are the limit", MaxDocumentBytes)
	}
	return nil
}

// expandedSizes holds the sizes of YAML values in bytes, with their aliases expanded. Sums are capped at
// MaxDocumentBytes+1, which means too large.
type expandedSizes map[*yaml.Node]int

// of returns the expanded size of a value. A value that contains itself is too large.
func (sizes expandedSizes) of(value *yaml.Node) int {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if size, ok := sizes[value]; ok {
		return size
	}
	sizes[value] = MaxDocumentBytes + 1 // an alias to the value from inside of it finds this size
	size := len(value.Value) + 1        // one byte for the separator
	for _, child := range value.Content {
		size = min(size+sizes.of(child), MaxDocumentBytes+1)
	}
	sizes[value] = size
	return size
}
