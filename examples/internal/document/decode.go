package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes a document into a T. Field names are case-sensitive, as in Kubernetes. An
// unknown field, a field that is given twice and a value of the wrong type are errors.
func Decode[T any](doc Document) (*T, error) {
	object := new(T)
	if err := jsonv2.Unmarshal(doc.JSON, object, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", doc.Source, Explain(doc.JSON, err))
	}
	return object, nil
}

// Explain adds the field and the value to the error of a text that cannot be decoded. The text may be cut off.
func Explain(text []byte, err error) error {
	var wrong *jsonv2.SemanticError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	at := path(wrong.JSONPointer)
	if errors.Is(wrong.Err, jsonv2.ErrUnknownName) {
		return fmt.Errorf("unknown field %q", at)
	}
	reason := "must be " + typeName(wrong.GoType)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(wrong.Err, &mistyped):
		reason = "must be " + typeName(mistyped.Type)
	case wrong.Err != nil && !errors.Is(wrong.Err, strconv.ErrSyntax) && !errors.Is(wrong.Err, strconv.ErrRange):
		reason = wrong.Err.Error()
	}
	value := valueAt(text, wrong.ByteOffset)
	if at == "" {
		return fmt.Errorf("%s, not %s", reason, value)
	}
	return fmt.Errorf("%s: Invalid value: %s: %s", at, value, reason)
}

// valueAt returns the beginning of the value that follows an offset.
func valueAt(text []byte, offset int64) string {
	text = bytes.TrimLeft(text[min(int(offset), len(text)):], " \t\r\n:,")
	if value, err := jsontext.NewDecoder(bytes.NewReader(text)).ReadValue(); err == nil {
		text = value
	}
	if len(text) > maxValue {
		return string(bytes.ToValidUTF8(text[:maxValue], nil)) + "…"
	}
	return string(text)
}

// maxValue is how many bytes of a value an error shows.
const maxValue = 200

// path returns the path of a field, such as spec.containers[0].name.
func path(pointer jsontext.Pointer) string {
	var text strings.Builder
	for token := range pointer.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			text.WriteString("[" + token + "]")
			continue
		}
		text.WriteString("." + token)
	}
	return strings.TrimPrefix(text.String(), ".")
}

// typeName names a type in the words of YAML.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Pointer:
		return typeName(t.Elem())
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
