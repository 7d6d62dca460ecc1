package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Decode makes a T of a document. Field names count by case, as in Kubernetes; an
// unknown field, a field that is given twice and a value of the wrong type are
// errors.
func Decode[T any](doc Document) (*T, error) {
	object := new(T)
	strict, err := kjson.UnmarshalStrict(doc.JSON, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doc.Source, locate[T](doc.JSON, err))
	}
	if len(strict) == 0 {
		return object, nil
	}
	errs := make([]error, 0, maxErrors+1)
	for _, err := range withValues(doc.JSON, strict[:min(len(strict), maxErrors)]) {
		errs = append(errs, fmt.Errorf("%s: %w", doc.Source, err))
	}
	if more := len(strict) - maxErrors; more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more like these", doc.Source, more))
	}
	return nil, errors.Join(errs...)
}

// maxErrors is how many unknown or repeated fields of a document are named.
const maxErrors = 10

// withValues adds the values to the complaints about unknown or repeated fields.
func withValues(text []byte, strict []error) []error {
	complaints := map[string]int{} // by the path of the field
	for i, err := range strict {
		var at kjson.FieldError
		if errors.As(err, &at) {
			complaints[at.FieldPath()] = i
		}
	}
	said := slices.Clone(strict)
	for path, value := range nodes(text) {
		if len(complaints) == 0 {
			break
		}
		at := path.toField()
		if i, ok := complaints[at.String()]; ok {
			said[i] = field.Invalid(at, shown(value), why(strict[i]))
			delete(complaints, at.String())
		}
	}
	return said
}

// why says what the decoder has against a field.
func why(err error) string {
	if strings.HasPrefix(err.Error(), "duplicate") {
		return "is given twice"
	}
	return "unknown field"
}

// locate finds the field that cannot be decoded. The decoder itself does not
// name a field whose type has a decoder of its own (a duration, a quantity), so
// each leaf is tried alone.
func locate[T any](text []byte, err error) error {
	for path, value := range nodes(text) {
		if !leaf(value) {
			continue
		}
		alone, marshalErr := json.Marshal(wrap(path, value))
		if marshalErr != nil {
			return errors.Join(err, marshalErr)
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(alone, new(T)); err != nil {
			if len(path) == 0 {
				return fmt.Errorf("wanted is an object, a mapping of fields, and not %v", shown(value))
			}
			return field.Invalid(path.toField(), shown(value), wanted(err))
		}
	}
	return err
}

// wanted says what the decoder expected, in the words of a file's author.
func wanted(err error) string {
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
