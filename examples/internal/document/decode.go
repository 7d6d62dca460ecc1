package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
	errs := make([]error, 0, len(strict))
	for _, err := range strict {
		errs = append(errs, fmt.Errorf("%s: %w", doc.Source, withValue(doc.JSON, err)))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return object, nil
}

// withValue adds the value to the complaint about an unknown or repeated field.
func withValue(text []byte, err error) error {
	var at kjson.FieldError
	ok := errors.As(err, &at)
	if !ok {
		return err
	}
	for path, value := range nodes(text) {
		if path.toField().String() == at.FieldPath() {
			return field.Invalid(path.toField(), value, "unknown field, or given twice")
		}
	}
	return err
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
			return field.Invalid(path.toField(), value, wanted(err))
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
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "must be a whole number"
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
