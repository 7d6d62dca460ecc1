package document

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Decode decodes a document into a T. Field names are case-sensitive, as in Kubernetes. An
// unknown field, a field that is given twice and a value of the wrong type are errors.
func Decode[T any](doc Document) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(doc.JSON, object, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", doc.Source, err)
	}
	return object, nil
}
