package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxStrictErrors is how many unknown or repeated fields of a document are named.
const maxStrictErrors = 10

// maxShownBytes is how much of a value an error shows.
const maxShownBytes = 200

// Decode decodes a document into a T. Field names are case-sensitive, as in Kubernetes. An
// unknown field, a field that is given twice and a value of the wrong type are errors.
func Decode[T any](doc Document) (*T, error) {
	object := new(T)
	strict, err := kjson.UnmarshalStrict(doc.JSON, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doc.Source, locate[T](doc.JSON, err))
	}
	if len(strict) == 0 {
		return object, nil
	}
	errs := make([]error, 0, maxStrictErrors+1)
	for _, err := range withValues(doc.JSON, strict[:min(len(strict), maxStrictErrors)]) {
		errs = append(errs, fmt.Errorf("%s: %w", doc.Source, err))
	}
	if more := len(strict) - maxStrictErrors; more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more like these", doc.Source, more))
	}
	return nil, errors.Join(errs...)
}

// withValues returns the decoder's errors about unknown or repeated fields with the values
// of these fields added.
func withValues(text []byte, strict []error) []error {
	indices := map[string]int{} // of the errors, by the path of the field
	for i, err := range strict {
		var fieldErr kjson.FieldError
		if errors.As(err, &fieldErr) {
			indices[fieldErr.FieldPath()] = i
		}
	}
	errs := slices.Clone(strict)
	for path, value := range values(text) {
		if len(indices) == 0 {
			break
		}
		at := path.toField()
		if i, ok := indices[at.String()]; ok {
			errs[i] = field.Invalid(at, shortened(value), strictReason(strict[i]))
			delete(indices, at.String())
		}
	}
	return errs
}

// strictReason returns what is wrong with a field that the strict decoder refuses.
func strictReason(err error) string {
	if strings.HasPrefix(err.Error(), "duplicate") {
		return "is given twice"
	}
	return "unknown field"
}

// locate returns an error that names the field that cannot be decoded. The decoder's own error lacks the
// name if the type of the field has a decoder of its own (a duration, a quantity). So locate decodes each
// leaf value alone, in a document that contains nothing else.
func locate[T any](text []byte, err error) error {
	for path, value := range values(text) {
		if !isLeaf(value) {
			continue
		}
		alone, marshalErr := json.Marshal(documentWith(path, value))
		if marshalErr != nil {
			return errors.Join(err, marshalErr)
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(alone, new(T)); err != nil {
			if len(path) == 0 {
				return fmt.Errorf("must be a mapping of fields, not %v", shortened(value))
			}
			return field.Invalid(path.toField(), shortened(value), typeReason(err))
		}
	}
	return err
}

// typeReason says which type of value the decoder expected, in the words of YAML.
func typeReason(err error) string {
	var mistyped *json.UnmarshalTypeError
	ok := errors.As(err, &mistyped)
	if !ok {
		return err.Error()
	}
	switch mistyped.Type.Kind() {
	case reflect.Int32:
		return fmt.Sprintf("must be a whole number from %d to %d", math.MinInt32, math.MaxInt32)
	case reflect.Int, reflect.Int64:
		return "must be a whole number of 64 bits"
	case reflect.String:
		return "must be a string"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Slice:
		return "must be a list"
	default:
		return "must be a mapping of fields"
	}
}

// shortened returns a value as an error shows it: of a long value only the beginning.
func shortened(value any) any {
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil || len(encoded) <= maxShownBytes {
			return value
		}
		text = string(encoded)
	}
	if len(text) <= maxShownBytes {
		return value
	}
	end := maxShownBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
