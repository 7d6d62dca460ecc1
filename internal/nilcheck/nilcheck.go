// Package nilcheck finds options that hold a nil pointer in an interface. Such a value is not equal to nil,
// but fails when it is used.
package nilcheck

import (
	"fmt"
	"reflect"
)

// IsTypedNil reports whether value is a nil pointer, function, map, channel or slice. A plain nil, which has no type, is not
// one of these.
func IsTypedNil(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}

// Option returns an error if the value of the option with this name is a nil pointer, function or the like in
// an interface. A plain nil is no error: it means that the option is not set.
func Option(name string, value any) error {
	if !IsTypedNil(value) {
		return nil
	}
	return fmt.Errorf("%s is a nil %T: leave it out or set a value", name, value)
}
