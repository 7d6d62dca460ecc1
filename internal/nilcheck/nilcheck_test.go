package nilcheck_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
)

// reader is a type whose pointer implements an interface.
type reader struct{ io.Reader }

// A nil pointer, function, map, channel or slice in an interface is a mistake. A plain nil is no mistake: it
// means that the option is not set.
func TestTypedNils(t *testing.T) {
	var pointer *reader
	var none io.Reader
	for _, value := range []any{pointer, io.Reader(pointer), (func())(nil), map[int]int(nil), (chan int)(nil), []int(nil)} {
		require.True(t, nilcheck.IsTypedNil(value), "%T", value)
	}
	for _, value := range []any{nil, none, reader{}, &reader{}, 0, func() {}, []int{}} {
		require.False(t, nilcheck.IsTypedNil(value), "%T", value)
	}
	require.EqualError(t, nilcheck.Option("Runtime", pointer), "Runtime is a nil *nilcheck_test.reader: leave it out or set a value")
	require.NoError(t, errors.Join(nilcheck.Option("Runtime", nil), nilcheck.Option("Runtime", &reader{})))
}
