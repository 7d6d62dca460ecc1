package notice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// preemptedIn is how long after the notice Compute Engine switches a preempted machine off.
	preemptedIn = 30 * time.Second
	// changeTimeout is how long the service holds a question back whose answer has not changed.
	changeTimeout = time.Minute

	flavorHeader, flavor = "Metadata-Flavor", "Google"
)

// GCE is the metadata server of Google Compute Engine. It holds its answers back until they change.
// A machine that is preempted has 30 s from its notice on. One that cannot migrate and stops for
// maintenance is told some time before, but not how long, so that event has no deadline. A live
// migration is no shutdown. Each is a power off to the node.
func GCE() Provider {
	return Provider{items: func(s *service) []*item {
		preempted := &gce{service: s, name: "preempted", parse: parsePreempted}
		maintenance := &gce{service: s, name: "maintenance-event", parse: parseMaintenance}
		return []*item{
			{origin: OriginGCEPreempted, interval: time.Second, read: preempted.read},
			{origin: OriginGCEMaintenance, interval: time.Second, read: maintenance.read},
		}
	}}
}

// gce reads one value of this machine.
type gce struct {
	service *service
	name    string
	parse   func(value string, since time.Time) (notice, error)
	etag    string    // of the last answer
	value   string    // the last answer
	since   time.Time // when value was first read
}

// read is the read of an item. Only a question that names the last answer may be held back.
func (g *gce) read(ctx context.Context, fresh bool) (notice, error) {
	r := request{path: "/computeMetadata/v1/instance/" + g.name, header: map[string]string{flavorHeader: flavor}}
	if !fresh && g.etag != "" {
		query := url.Values{"wait_for_change": {"true"}, "timeout_sec": {strconv.Itoa(int(changeTimeout.Seconds()))}, "last_etag": {g.etag}}
		r.path += "?" + query.Encode()
		r.within = changeTimeout + answerTimeout
	}
	a, err := g.service.ask(ctx, r)
	switch {
	case err != nil:
		return notice{}, err
	case a.status != http.StatusOK:
		return notice{}, a.unexpected()
	case a.header.Get(flavorHeader) != flavor:
		return notice{}, errors.New("the answer is not of Google's metadata server: it has no " + flavorHeader + ": " + flavor)
	}
	if value := strings.TrimSpace(string(a.body)); value != g.value {
		g.value, g.since = value, time.Now()
	}
	n, err := g.parse(g.value, g.since)
	if err != nil {
		return notice{}, err
	}
	g.etag = a.header.Get("ETag")
	return n, nil
}

// parsePreempted parses the value preempted, which was first read at since.
func parsePreempted(value string, since time.Time) (notice, error) {
	switch value {
	case "FALSE":
		return notice{}, nil
	case "TRUE":
		return notice{key: value, event: source.Event{Kind: source.KindPoweroff, Deadline: since.Add(preemptedIn)}}, nil
	default:
		return notice{}, fmt.Errorf("%.40q is neither TRUE nor FALSE", value)
	}
}

// parseMaintenance parses the value maintenance-event.
func parseMaintenance(value string, _ time.Time) (notice, error) {
	switch value {
	case "NONE", "MIGRATE_ON_HOST_MAINTENANCE":
		return notice{}, nil
	case "TERMINATE_ON_HOST_MAINTENANCE":
		return notice{key: value, event: source.Event{Kind: source.KindPoweroff}}, nil
	default:
		return notice{}, fmt.Errorf("%.40q is no maintenance event that is known", value)
	}
}
