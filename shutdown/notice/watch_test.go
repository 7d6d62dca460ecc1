//go:build go1.25

package notice_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// cloud is a provider and its metadata service, which a test controls.
type cloud struct {
	provider   notice.Provider
	service    http.Handler
	announceAt func(when time.Time) // makes the service announce a shutdown at when
	withdraw   func()               // makes it withdraw the shutdown
	values     int                  // how many values Watch reads, each with failures of its own
}

// clouds returns, for each provider, a function that makes a new cloud.
func clouds() map[string]func() cloud {
	return map[string]func() cloud{
		"EC2": func() cloud {
			service := &ec2{}
			return cloud{
				provider: notice.EC2(), service: service, values: 1,
				announceAt: func(when time.Time) { service.interrupt("stop", when) },
				withdraw:   func() { service.withdraw() },
			}
		},
		"GCE": func() cloud {
			service := newGCE()
			return cloud{
				provider: notice.GCE(), service: service, values: 2,
				announceAt: func(time.Time) { service.set("maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE") },
				withdraw:   func() { service.set("maintenance-event", "NONE") },
			}
		},
		"Azure": func() cloud {
			service := &azure{}
			return cloud{
				provider: notice.Azure(), service: service, values: 1,
				announceAt: func(when time.Time) { service.setEvents(event("A", "Reboot", when)) },
				withdraw:   func() { service.setEvents() },
			}
		},
	}
}

// faults returns handlers that give wrong answers or no answer.
func faults() map[string]http.HandlerFunc {
	write := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	return map[string]http.HandlerFunc{
		"error page": write(http.StatusInternalServerError, "<html>Internal Server Error</html>"),
		"too many":   write(http.StatusTooManyRequests, ""),
		"page":       write(http.StatusOK, "<html><body>Welcome to nginx!</body></html>"),
		"empty":      write(http.StatusOK, ""),
		"null":       write(http.StatusOK, "null"),
		"other JSON": write(http.StatusOK, `{"action": {}, "Events": "none"}`),
		"deep JSON":  write(http.StatusOK, strings.Repeat("[", 1<<19)),
		"no content": write(http.StatusNoContent, ""),
		"redirect elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
		},
		"redirect to itself": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"no answer":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"endless body":      endlessBody(0),
		"slow endless body": endlessBody(time.Second),
		"closed connection": raw(""),
		"no HTTP":           raw("SSH-2.0-OpenSSH_9.2p1\r\n"),
		"huge header":       raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<17) + "\r\n\r\n"),
		"body that is cut":  raw("HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 9\r\n\r\nTRUE"),
		"bad chunks":        raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nTRUE"),
	}
}

// endlessBody answers with a body that never ends. It waits for pause before each line.
func endlessBody(pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for line := bytes.Repeat([]byte(" "), 1<<10); r.Context().Err() == nil; {
			if pause > 0 {
				select {
				case <-time.After(pause):
				case <-r.Context().Done():
				}
			}
			if _, err := w.Write(line); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // the client has gone
		}
	}
}

// raw answers with text instead of an HTTP answer, and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = conn.Write([]byte(text)) // the client may have gone
		_ = conn.Close()
	}
}

// A service fails after it has announced a shutdown. The announcement stays, and OnError is called once per outage for each
// value that Watch reads from the service. When the service works again, Watch reads that the shutdown was withdrawn. (inBubble checks
// that Watch connects neither to a redirect's target nor to a proxy.)
func TestFailuresKeepTheAnnouncement(t *testing.T) {
	for provider, newCloud := range clouds() {
		for name, fault := range faults() {
			t.Run(provider+"/"+name, func(t *testing.T) {
				c := newCloud()
				inBubble(t, c.provider, c.service, func(t *testing.T, w *world, _ http.Handler) {
					c.announceAt(at(5 * time.Minute))
					w.watch()
					require.Len(t, w.newAnnouncements(), 1)

					w.failService(fault)
					advance(90 * time.Second) // GCE may hold back a request for 65 s before it fails
					require.Empty(t, w.newAnnouncements())
					require.Len(t, w.newErrors(), c.values)

					w.failService(nil) // it works again
					c.withdraw()
					advance(90 * time.Second)
					withdrawn := w.newAnnouncements()
					require.Len(t, withdrawn, 1)
					require.True(t, withdrawn[0].Cancelled)
					require.Empty(t, w.newErrors())

					w.failService(fault)
					advance(140 * time.Second) // 60 s for a request that GCE still holds back, and 65 s for the next one
					require.Len(t, w.newErrors(), c.values, "another outage")
					require.Error(t, w.end(), "the failure at the end")
				})
			})
		}
	}
}

// The service announces a shutdown in 5 minutes, with a time by its own clock, which is an hour ahead of this machine's (-1 h
// behind), or an hour behind. By this machine's clock the deadline must also be in 5 minutes. (GCE announces no times.)
func TestDeadlinesAreCorrectedByTheServicesClock(t *testing.T) {
	for _, behind := range []time.Duration{-time.Hour, time.Hour} {
		for _, name := range []string{"EC2", "Azure"} {
			c := clouds()[name]()
			dated := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(-behind).UTC().Format(http.TimeFormat))
				c.service.ServeHTTP(w, r)
			})
			inBubble(t, c.provider, dated, func(t *testing.T, w *world, _ http.HandlerFunc) {
				c.announceAt(at(5*time.Minute - behind))
				w.watch()
				events := w.newAnnouncements()
				require.Len(t, events, 1)
				require.WithinDuration(t, at(5*time.Minute), events[0].Deadline, time.Second)
				advance(time.Minute)
				require.Empty(t, w.newAnnouncements(), "once")
			})
		}
	}
}

// EC2's service answers 404 to each request for a token. Watch asks again after 1, 2, 4, 8 and then every 10 s.
func TestAFailingServiceIsRetriedWithBackOff(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, _ *ec2) {
		w.failService(http.NotFound)
		w.watch()
		for _, wait := range []int{1, 2, 4, 8, 10, 10, 10} {
			require.Equal(t, 1, w.newRequests())
			advance(time.Duration(wait)*time.Second - time.Millisecond)
			require.Zero(t, w.newRequests())
			advance(time.Millisecond)
		}
		advance(time.Hour)
		require.InDelta(t, 361, w.newRequests(), 1, "the one that is due now, and one every 10 s of an hour")
	})
}

// The manager refuses a notice for 20 s, and later the withdrawal of the notice. Watch repeats each of the two until the manager
// accepts it, at the latest after the longest pause of 10 s. OnError is called once for each.
func TestAFailedAnnouncementIsRepeated(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		service.interrupt("stop", at(10*time.Minute))
		w.failAnnounce(errNotRunning)
		w.watch()
		advance(20 * time.Second)
		require.Equal(t, []string{notice.OriginEC2 + ": announce: not running"}, w.newErrors())
		w.failAnnounce(nil) // the manager accepts it again
		advance(longestPause)
		require.Len(t, w.newAnnouncements(), 1)

		w.failAnnounce(errNotRunning)
		service.withdraw()
		advance(20 * time.Second)
		require.Len(t, w.newErrors(), 1)
		w.failAnnounce(nil) // the manager accepts it again
		advance(longestPause)
		require.Equal(t, cancelled(notice.OriginEC2), w.newAnnouncements())
		require.NoError(t, w.end())
	})
}

// The context of Watch ends while a request hangs. Watch returns at once and withdraws nothing, since the machine
// still goes down.
func TestTheEndOfTheContextWithdrawsNothing(t *testing.T) {
	for name, newCloud := range clouds() {
		t.Run(name, func(t *testing.T) {
			c := newCloud()
			inBubble(t, c.provider, c.service, func(t *testing.T, w *world, _ http.Handler) {
				c.announceAt(at(5 * time.Minute))
				w.watch()
				w.newAnnouncements()
				w.failService(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				advance(5 * time.Second) // during a request
				began := time.Now()
				require.NoError(t, w.end())
				require.Equal(t, began, time.Now())
				require.Empty(t, w.newAnnouncements())
				require.Empty(t, w.newErrors())
			})
		})
	}
}

// Nothing listens at the address of the service. OnError is called once. Watch continues until the test ends its context, and
// then returns the failure.
func TestARefusedConnectionIsReported(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	for _, p := range []notice.Provider{notice.EC2(), notice.GCE(), notice.Azure()} {
		ctx, cancel := context.WithCancel(t.Context())
		var told atomic.Int32
		p.Endpoint = "http://" + listener.Addr().String()
		p.OnError = func(error) {
			told.Add(1)
			cancel()
		}
		require.Error(t, notice.Watch(ctx, p, func(source.Event) error { return nil }))
		require.Equal(t, int32(1), told.Load())
	}
}

// Without OnError a failure is a warning of the default logger.
func TestFailuresAreLoggedWithoutOnError(t *testing.T) {
	var text strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	inBubble(t, notice.EC2(), http.NotFoundHandler(), func(t *testing.T, w *world, _ http.Handler) {
		w.provider.OnError = nil
		w.watch()
		require.Error(t, w.end())
	})
	require.Equal(t, 1, strings.Count(text.String(), "level=WARN"))
}

// A panic of announce reaches the caller of Watch and leaks no goroutine, which would make the bubble fail.
func TestAPanicOfAnnounceLeaksNothing(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		service.interrupt("stop", at(time.Minute))
		require.PanicsWithValue(t, "announce", func() {
			_ = notice.Watch(t.Context(), w.provider, func(source.Event) error { panic("announce") })
		})
		synctest.Wait()
	})
}

// A zero Provider, a nil announce and an Endpoint that is no URL of a host are errors at once.
func TestWatchValidatesItsArguments(t *testing.T) {
	announce := func(source.Event) error { return nil }
	require.ErrorContains(t, notice.Watch(t.Context(), notice.Provider{}, announce), "the Provider was not made with EC2, GCE or Azure")
	require.ErrorContains(t, notice.Watch(t.Context(), notice.EC2(), nil), "the function that announces is nil")
	for _, endpoint := range []string{"169.254.169.254", "ftp://a", "http://", "http://a?b", "http://a?", "http://a#b", "http://:80", "http://[", "file:///a"} {
		p := notice.GCE()
		p.Endpoint = endpoint
		require.ErrorContains(t, notice.Watch(t.Context(), p, announce), "Provider.Endpoint", endpoint)
	}
}
