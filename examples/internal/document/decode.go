package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Decode decodes a document into a T. Field names are case-sensitive, as in Kubernetes. An
// unknown field, a field that is given twice and a value of the wrong type are errors.
func Decode[T any](doc Document) (*T, error) {
	object := new(T)
	strict, err := kjson.UnmarshalStrict(doc.JSON, object)
	if err != nil {
		return nil, Explain[T](doc, err)
	}
	for i, err := range strict {
		strict[i] = fmt.Errorf("%s: %w", doc.Source, err)
	}
	if len(strict) > 0 {
		return nil, errors.Join(strict...)
	}
	return object, nil
}

// Explain adds the document, the field and the value to the error of a document that cannot be decoded
// into a T. The decoder's own error lacks them where the type of the field has a decoder of its own (a
// duration, a quantity).
func Explain[T any](doc Document, err error) error {
	var root any
	if kjson.UnmarshalCaseSensitivePreserveInts(doc.JSON, &root) != nil {
		return fmt.Errorf("%s: %w", doc.Source, err)
	}
	found := locate(nil, root, func(value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		return kjson.UnmarshalCaseSensitivePreserveInts(text, new(T))
	})
	if found == nil {
		found = err
	}
	return fmt.Errorf("%s: %w", doc.Source, found)
}

// locate returns an error about the first value within value that cannot be decoded. decode decodes a
// document that has at this path the value that it is given, and nothing else.
func locate(at *field.Path, value any, decode func(value any) error) error {
	fields, isMapping := value.(map[string]any)
	items, isList := value.([]any)
	alone := value
	switch {
	case isMapping:
		alone = map[string]any{}
	case isList:
		alone = []any{}
	}
	if err := decode(alone); err != nil {
		return invalid(at, value, err)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if err := locate(at.Child(key), fields[key], func(value any) error { return decode(map[string]any{key: value}) }); err != nil {
			return err
		}
	}
	for i, item := range items {
		if err := locate(at.Index(i), item, func(value any) error { return decode([]any{value}) }); err != nil {
			return err
		}
	}
	return nil
}

// invalid says what is wrong with a value, of which it shows the beginning.
func invalid(at *field.Path, value any, err error) error {
	text, isString := value.(string)
	if encoded, err := json.Marshal(value); err == nil && !isString {
		text = string(encoded)
	}
	if short := fmt.Sprintf("%.200s", text); short != text {
		value = short + "…"
	}
	reason := err.Error()
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		reason = "must be " + typeName(mistyped.Type)
	}
	if at == nil {
		return fmt.Errorf("%s, not %v", reason, value)
	}
	return field.Invalid(at, value, reason)
}

// typeName names a type in the words of YAML.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	default:
		return "a mapping of fields"
	}
}
