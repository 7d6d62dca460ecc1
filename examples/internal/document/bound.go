package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// MaxDocument is the size in bytes of the largest document that is read, with its
// aliases written out: that of the largest request that an API server takes
// (k8s.io/apiserver, MaxRequestBodyBytes).
const MaxDocument = 3 << 20

// MaxDocuments is the largest number of documents that are read from one text. It bounds the
// time that a text of many tiny documents takes.
const MaxDocuments = 10_000

// checkCount refuses one document more than a text may have.
func checkCount(read int) error {
	if read >= MaxDocuments {
		return fmt.Errorf("has too many documents: %d are the limit", MaxDocuments)
	}
	return nil
}

// errDeep is of values in more values than package encoding/json goes into.
var errDeep = errors.New("more than 10000 lists and mappings in each other")

// checkSize refuses a document that is too large.
func checkSize(size int) error {
	if size > MaxDocument {
		return fmt.Errorf("is too large: the document has %d bytes, and %d (3 MiB) are the limit", size, MaxDocument)
	}
	return nil
}

// checkAliases refuses a document of YAML that its aliases make too large: each stands
// for a value that may have aliases in it, so that a few lines can stand for any size.
func checkAliases(text []byte) error {
	if !bytes.ContainsRune(text, '*') || !bytes.ContainsRune(text, '&') {
		return nil // there are none, and nothing needs to be parsed
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("not valid YAML: %w", err)
	}
	if (writtenOut{}).size(&root) > MaxDocument {
		return fmt.Errorf("is too large: with its aliases the document has more than %d bytes (3 MiB), which are the limit", MaxDocument)
	}
	return nil
}

// writtenOut has the sizes of values, in bytes and without aliases; a value that is being
// measured counts as too large, since it is in itself.
type writtenOut map[*yaml.Node]int

func (w writtenOut) size(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if size, ok := w[node]; ok {
		return size
	}
	w[node] = MaxDocument + 1
	size := len(node.Value) + 1 // a comma or the like
	for _, part := range node.Content {
		size = min(size+w.size(part), MaxDocument+1)
	}
	w[node] = size
	return size
}

// longestValue is how much of a value is shown, in bytes.
const longestValue = 200

// shown is a value as an error has it: only the beginning of a long one.
func shown(value any) any {
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil || len(encoded) <= longestValue {
			return value
		}
		text = string(encoded)
	}
	if len(text) <= longestValue {
		return value
	}
	end := longestValue
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
