package apistatustest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPass(t *testing.T) {
	for name, test := range map[string]struct {
		fault        Fault
		gone, closed time.Duration // when the client and the server end; 0: never
		takes        time.Duration
		carriedOut   bool
	}{
		"nothing":                {Fault{}, 0, 0, 0, true},
		"refused":                {Fault{Status: 500}, 0, 0, 0, true},
		"lost":                   {Fault{Lost: true}, 0, 0, 0, true},
		"dropped":                {Fault{Drop: true}, 0, 0, 0, false},
		"negative delay":         {Fault{Delay: -1}, 0, 0, 0, true},
		"delay":                  {Fault{Delay: time.Minute}, 0, 0, time.Minute, true},
		"delay, then dropped":    {Fault{Delay: time.Minute, Drop: true}, 0, 0, time.Minute, false},
		"delay, client ends":     {Fault{Delay: time.Minute}, time.Second, 0, time.Second, false},
		"delay, server ends":     {Fault{Delay: time.Minute}, 0, time.Second, time.Second, false},
		"hang, client ends":      {Fault{Hang: true}, time.Hour, 0, time.Hour, false},
		"hang, server ends":      {Fault{Hang: true}, 0, time.Hour, time.Hour, false},
		"late hang, client ends": {Fault{Hang: true, Delay: time.Second}, time.Hour, 0, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, over := t.Context(), make(chan struct{})
				if test.gone > 0 {
					bound, cancel := context.WithTimeout(ctx, test.gone)
					defer cancel()
					ctx = bound
				}
				if test.closed > 0 {
					time.AfterFunc(test.closed, func() { close(over) })
				}
				started := time.Now()
				require.Equal(t, test.carriedOut, test.fault.pass(ctx, over))
				require.Equal(t, test.takes, time.Since(started))
			})
		})
	}
}
