//go:build go1.25

package notice_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// ec2Interval is the time between two reads of EC2's service.
const ec2Interval = 5 * time.Second

// ec2 is EC2's metadata service, version 2.
type ec2 struct {
	mu      sync.Mutex
	tokens  map[string]time.Time // when each expires
	issued  int
	refused int    // requests without a valid token
	action  string // the item spot/instance-action; "": there is none
}

// ServeHTTP answers like EC2: it issues tokens, and tells the interruption to requests with a valid token.
func (e *ec2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "PUT /latest/api/token":
		seconds, err := strconv.Atoi(r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds"))
		if err != nil || seconds < 1 || seconds > 21600 || r.Header.Get("X-Forwarded-For") != "" {
			http.Error(w, "<html>400 - Bad Request</html>", http.StatusBadRequest)
			return
		}
		if e.tokens == nil {
			e.tokens = map[string]time.Time{}
		}
		e.issued++
		token := fmt.Sprintf("AQAEAL-token-%d==", e.issued)
		e.tokens[token] = time.Now().Add(time.Duration(seconds) * time.Second)
		fmt.Fprint(w, token)
	case "GET /latest/meta-data/spot/instance-action":
		expires, known := e.tokens[r.Header.Get("X-aws-ec2-metadata-token")]
		switch {
		case !known || !time.Now().Before(expires):
			e.refused++
			http.Error(w, "<html>401 - Unauthorized</html>", http.StatusUnauthorized)
		case e.action == "":
			http.Error(w, "<html>404 - Not Found</html>", http.StatusNotFound)
		default:
			fmt.Fprint(w, e.action)
		}
	default:
		http.Error(w, "<html>405</html>", http.StatusMethodNotAllowed)
	}
}

// interrupt makes the service announce an interruption at when.
func (e *ec2) interrupt(action string, when time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.action = fmt.Sprintf(`{"action": %q, "time": %q}`, action, when.Format(time.RFC3339))
}

// withdraw makes the service announce no interruption any more.
func (e *ec2) withdraw() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.action = ""
}

// dropTokens makes all tokens invalid.
func (e *ec2) dropTokens() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens = nil
}

// counts returns how many tokens were issued, and how many requests had no valid one.
func (e *ec2) counts() (issued, refused int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.issued, e.refused
}

// EC2's service is read every 5 s. An interruption is announced within that time, and only once. Its kind is that of the
// action. When the service does not tell of it any more, it is withdrawn. The next interruption is announced again.
func TestAnEC2InterruptionIsAnnouncedAndWithdrawn(t *testing.T) {
	for action, kind := range map[string]source.Kind{
		"terminate": source.KindPoweroff, "stop": source.KindPoweroff, "hibernate": source.KindPoweroff, "new": source.KindUnknown,
	} {
		inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
			w.watch()
			advance(time.Hour)
			require.Empty(t, w.newAnnouncements())

			when := at(2 * time.Minute)
			service.interrupt(action, when)
			advance(ec2Interval)
			require.Equal(t, []source.Event{{Kind: kind, Deadline: when, Origin: notice.OriginEC2}}, w.newAnnouncements())
			advance(time.Minute)
			require.Empty(t, w.newAnnouncements(), "it is announced once")

			service.withdraw()
			advance(ec2Interval)
			require.Equal(t, cancelled(notice.OriginEC2), w.newAnnouncements())

			service.interrupt(action, at(2*time.Minute))
			advance(ec2Interval)
			require.Len(t, w.newAnnouncements(), 1, "another interruption")
			require.Empty(t, w.newErrors())
			require.NoError(t, w.end())
		})
	}
}

// The time of an interruption changes from two minutes ahead to one. The interruption is announced again, with the new time.
// (A manager uses the earlier one.)
func TestAChangedEC2TimeIsAnnounced(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		service.interrupt("stop", at(2*time.Minute))
		w.watch()
		require.Len(t, w.newAnnouncements(), 1)
		sooner := at(time.Minute)
		service.interrupt("stop", sooner)
		advance(ec2Interval)
		require.Equal(t, []source.Event{{Kind: source.KindPoweroff, Deadline: sooner, Origin: notice.OriginEC2}}, w.newAnnouncements())
	})
}

// The service is read every 5 s. A token is valid for six hours and replaced 5 minutes earlier, so 7 hours need
// two tokens. No request has an expired one.
func TestTheEC2TokenIsRenewed(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		w.watch()
		require.Equal(t, 2, w.newRequests(), "one for a token, one for the interruption")
		advance(time.Minute)
		require.Equal(t, 12, w.newRequests(), "one every 5 s")
		advance(7 * time.Hour)
		issued, refused := service.counts()
		require.Equal(t, 2, issued, "tokens")
		require.Zero(t, refused, "requests without a valid token")
		require.Empty(t, w.newErrors())
	})
}

// The service forgets the first token. The next request, which has it, is refused. Watch gets a second token and repeats the
// request at once, and the interruption is announced. The refused request is no failure for OnError.
func TestAnUnknownEC2TokenIsReplaced(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		w.watch()
		service.dropTokens()
		service.interrupt("terminate", at(2*time.Minute))
		advance(ec2Interval)
		require.Len(t, w.newAnnouncements(), 1)
		issued, refused := service.counts()
		require.Equal(t, 2, issued, "tokens")
		require.Equal(t, 1, refused, "requests with the unknown token")
		require.Empty(t, w.newErrors())
	})
}

// The service gives no valid token for 30 s, which is reported once. When it works again, the interruption is announced.
// Then it forgets that token and gives no other one. This outage is reported too, but the interruption is not withdrawn.
func TestEC2WithoutATokenIsAFailure(t *testing.T) {
	for name, token := range map[string]http.HandlerFunc{
		"not found":         http.NotFound,
		"disabled":          func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusForbidden) },
		"empty":             func(http.ResponseWriter, *http.Request) {},
		"with a line break": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a\r\nHost: b") },
		"another service's": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "another service's") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
				service.interrupt("stop", at(2*time.Minute))
				withoutTokens := func(rw http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPut {
						token(rw, r)
						return
					}
					service.ServeHTTP(rw, r)
				}
				w.failService(withoutTokens)
				w.watch()
				advance(30 * time.Second)
				require.Len(t, w.newErrors(), 1)
				require.Empty(t, w.newAnnouncements())

				w.failService(nil) // the service works again
				advance(longestPause)
				require.Len(t, w.newAnnouncements(), 1)

				service.dropTokens()
				w.failService(withoutTokens)
				advance(30 * time.Second)
				require.Len(t, w.newErrors(), 1)
				require.Empty(t, w.newAnnouncements())
			})
		})
	}
}

// The time of a notice had passed when the notice was first read. The notice is neither announced nor withdrawn: the machine
// has survived it.
func TestAPassedNoticeIsNotAnnounced(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		service.interrupt("hibernate", at(-time.Minute))
		w.watch()
		advance(time.Minute)
		service.withdraw()
		advance(time.Minute)
		require.Empty(t, w.newAnnouncements())
		require.Empty(t, w.newErrors())
	})
}

// An answer of more than 1 MiB is a failure, even if it begins with a valid interruption.
func TestALongAnswerIsAFailure(t *testing.T) {
	inBubble(t, notice.EC2(), &ec2{}, func(t *testing.T, w *world, service *ec2) {
		service.interrupt("stop", at(time.Minute))
		service.action += strings.Repeat(" ", 1<<20)
		w.watch()
		require.Len(t, w.newErrors(), 1)
		require.Empty(t, w.newAnnouncements())
	})
}
