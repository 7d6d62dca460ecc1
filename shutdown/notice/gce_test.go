//go:build go1.25

package notice_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// gce is Compute Engine's metadata server.
type gce struct {
	mu      sync.Mutex
	values  map[string]string
	changed chan struct{} // closed at the next change; nil: no request waits for one
	noETag  bool          // answers have no ETag
}

// newGCE returns a server that announces nothing.
func newGCE() *gce {
	return &gce{values: map[string]string{"preempted": "FALSE", "maintenance-event": "NONE"}}
}

// ServeHTTP answers with a value. Like Google's server, it holds back the answer to a wait_for_change request
// while the value has the ETag of the request, for at most timeout_sec.
func (g *gce) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Metadata-Flavor") != "Google" {
		http.Error(w, "<html>Missing Metadata-Flavor:Google header.</html>", http.StatusForbidden)
		return
	}
	w.Header().Set("Metadata-Flavor", "Google")
	name, found := strings.CutPrefix(r.URL.Path, "/computeMetadata/v1/instance/")
	value, changed := g.value(name)
	if !found || value == "" {
		http.Error(w, "<html>Not Found</html>", http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	if query.Get("wait_for_change") == "true" {
		seconds, err := time.ParseDuration(query.Get("timeout_sec") + "s")
		if err != nil {
			http.Error(w, "<html>Bad Request</html>", http.StatusBadRequest)
			return
		}
		timeout := time.After(seconds)
		for hasTimedOut := false; !hasTimedOut && query.Get("last_etag") == etag(value); {
			select {
			case <-changed: // this value or another one
				value, changed = g.value(name)
			case <-timeout:
				hasTimedOut = true
			case <-r.Context().Done():
				return
			}
		}
	}
	if !g.noETag {
		w.Header().Set("ETag", etag(value))
	}
	fmt.Fprint(w, value)
}

// etag returns the ETag of a value: equal values have equal ones.
func etag(value string) string { return fmt.Sprintf("%x", value) }

// value returns a value, and a channel that is closed when any value changes.
func (g *gce) value(name string) (value string, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.values[name], g.changed
}

// set changes a value and answers the requests that wait for its change.
func (g *gce) set(name, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values[name] = value
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// A preemption is announced at once, because the service answers a request that it has held back as soon as the value
// changes. The deadline is in 30 s. When the value is FALSE again, as after a suspension, the preemption is withdrawn.
func TestAGCEPreemptionIsAnnouncedAndWithdrawn(t *testing.T) {
	inBubble(t, notice.GCE(), newGCE(), func(t *testing.T, w *world, service *gce) {
		w.watch()
		w.newRequests()
		advance(10 * time.Minute)
		require.LessOrEqual(t, w.newRequests(), 2*11, "each of the 2 values is held back for a minute")
		require.Empty(t, w.newAnnouncements())

		advance(17 * time.Second) // while the answers are held back
		service.set("preempted", "TRUE")
		require.Equal(t, []source.Event{{Kind: source.KindPoweroff, Deadline: time.Now().Add(30 * time.Second), Origin: notice.OriginGCEPreempted}}, w.newAnnouncements())
		advance(time.Minute)
		require.Empty(t, w.newAnnouncements())

		service.set("preempted", "FALSE")
		require.Equal(t, cancelled(notice.OriginGCEPreempted), w.newAnnouncements())
		require.Empty(t, w.newErrors())
		require.NoError(t, w.end())
	})
}

// Maintenance that stops the machine is announced without a deadline, as soon as the service answers the request that it has held
// back. A live migration is not announced. The end of the maintenance withdraws its notice, but not that of a preemption.
func TestGCEMaintenanceIsAnnounced(t *testing.T) {
	inBubble(t, notice.GCE(), newGCE(), func(t *testing.T, w *world, service *gce) {
		w.watch()
		service.set("maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE")
		advance(2 * time.Second)
		require.Empty(t, w.newAnnouncements())

		service.set("maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE")
		require.Equal(t, []source.Event{{Kind: source.KindPoweroff, Origin: notice.OriginGCEMaintenance}}, w.newAnnouncements())

		advance(time.Second)
		service.set("preempted", "TRUE")
		require.Len(t, w.newAnnouncements(), 1, "the preemption")

		advance(2 * time.Second)
		service.set("maintenance-event", "NONE")
		require.Equal(t, cancelled(notice.OriginGCEMaintenance), w.newAnnouncements(), "the preemption is not withdrawn")
		require.Empty(t, w.newErrors())
	})
}

// A server without an ETag cannot hold back an answer, so each of the two values is read every second.
func TestGCEWithoutAnETagIsPolled(t *testing.T) {
	inBubble(t, notice.GCE(), newGCE(), func(t *testing.T, w *world, service *gce) {
		service.noETag = true
		w.watch()
		w.newRequests()
		advance(10 * time.Second)
		require.Equal(t, 2*10, w.newRequests())
		service.set("preempted", "TRUE")
		advance(time.Second)
		require.Len(t, w.newAnnouncements(), 1)
	})
}

// The manager refuses a preemption for 10 s. Watch announces it again, although the value has not changed. The deadline is
// still 30 s after the value was first read.
func TestAFailedGCEAnnouncementIsRepeated(t *testing.T) {
	inBubble(t, notice.GCE(), newGCE(), func(t *testing.T, w *world, service *gce) {
		w.failAnnounce(errNotRunning)
		w.watch()
		advance(2 * time.Second)
		service.set("preempted", "TRUE")
		deadline := time.Now().Add(30 * time.Second)
		advance(10 * time.Second)
		require.Len(t, w.newErrors(), 1)
		w.failAnnounce(nil)      // the manager accepts it again
		advance(5 * time.Second) // the refused attempts were after 0, 1, 3 and 7 s; the next is after 15 s
		require.Equal(t, []source.Event{{Kind: source.KindPoweroff, Deadline: deadline, Origin: notice.OriginGCEPreempted}}, w.newAnnouncements())
	})
}

// Another service answers at the address: without Google's header, or with a value that Google does not have. Watch
// announces nothing. It reports one failure for each of the two values that it reads, and returns the failures at its end.
func TestAnotherServiceIsNotGCE(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"no header": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "TRUE") },
		"unknown value": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Metadata-Flavor", "Google")
			fmt.Fprint(w, "PERHAPS")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, notice.GCE(), newGCE(), func(t *testing.T, w *world, _ *gce) {
				w.failService(fault)
				w.watch()
				advance(time.Minute)
				require.Empty(t, w.newAnnouncements())
				require.Len(t, w.newErrors(), 2, "one for each value")
				require.Error(t, w.end())
			})
		})
	}
}
