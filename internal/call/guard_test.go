//go:build go1.25

package call_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
)

// Guard calls its function end once, whether f returns, panics or ends its goroutine (runtime.Goexit). The error for a panic
// or an ended goroutine begins with the name of the call, which is here the name of the case.
func TestGuardCallsEndOnce(t *testing.T) {
	for name, test := range map[string]struct {
		f             func() error
		err           string // that end gets; "": none
		endsGoroutine bool   // f ends the goroutine in which Guard has called it, so that Guard does not return
	}{
		"returns": {f: func() error { return nil }},
		"fails":   {f: func() error { return errTest }, err: "refused"},
		"panics":  {f: func() error { panic("a value") }, err: "panics panicked: a value"},
		"exits":   {f: func() error { runtime.Goexit(); return nil }, err: "exits ended its goroutine", endsGoroutine: true},
	} {
		t.Run(name, func(t *testing.T) {
			var results []error // that end gets
			guardReturned, done := false, make(chan struct{})
			go func() {
				defer close(done)
				call.Guard(t.Context(), name, test.f, func(err error) { results = append(results, err) })
				guardReturned = true
			}()
			<-done
			require.Len(t, results, 1)
			require.Equal(t, !test.endsGoroutine, guardReturned)
			if test.err == "" {
				require.NoError(t, results[0])
				return
			}
			require.EqualError(t, results[0], test.err)
		})
	}
}

// A PanicError has the name of the call and the value of the panic.
func TestPanicError(t *testing.T) {
	var got error
	call.Guard(t.Context(), "Options.Hold", func() error { panic(errTest) }, func(err error) { got = err })
	var panicked *call.PanicError
	require.ErrorAs(t, got, &panicked)
	require.Equal(t, "Options.Hold", panicked.Call)
	require.Equal(t, errTest, panicked.Value)
}
