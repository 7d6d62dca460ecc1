package document

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Decode decodes a document into a new T. Field names are case-sensitive, as in Kubernetes. An unknown field
// is an error, and so are a field that JSON has twice and a value of the wrong type.
func Decode[T any](doc Document) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(doc.JSON, object, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", doc.Source, err)
	}
	return object, nil
}
