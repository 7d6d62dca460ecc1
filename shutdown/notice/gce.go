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
	// preemptionNotice is the time from the notice to the power off of a preempted machine.
	preemptionNotice = 30 * time.Second
	// waitForChange is how long the service may hold back its answer until the value changes.
	waitForChange = time.Minute

	flavorHeader, flavor = "Metadata-Flavor", "Google"
)

// GCE returns the metadata server of Google Compute Engine. The server holds an answer back until the value
// changes, so that a notice arrives at once. A preempted machine is powered off 30 s after the notice. A
// machine that cannot migrate is powered off for maintenance, at an unknown time. A live migration is no
// shutdown.
func GCE() Provider {
	return Provider{values: func(s *service) []*polledValue {
		preempted := &gce{service: s, name: "preempted", parse: parsePreempted}
		maintenance := &gce{service: s, name: "maintenance-event", parse: parseMaintenance}
		return []*polledValue{
			{origin: originGCEPreempted, interval: time.Second, read: preempted.read},
			{origin: originGCEMaintenance, interval: time.Second, read: maintenance.read},
		}
	}}
}

// gce reads one value of the metadata server repeatedly.
type gce struct {
	service        *service
	name           string
	parse          func(value string, firstRead time.Time) (notice, error) // returns the notice that the value means
	etag           string                                                  // of the last valid answer; "": none
	value          string                                                  // the last answer
	valueFirstRead time.Time                                               // when value was first read
}

// read implements polledValue.read. If a request has the ETag of the last answer, the service holds its answer back until
// the value changes, or for waitForChange. It answers a request without an ETag at once: read sends such a request the
// first time, and if atOnce is set.
func (g *gce) read(ctx context.Context, atOnce bool) (notice, error) {
	r := request{path: "/computeMetadata/v1/instance/" + g.name, header: map[string]string{flavorHeader: flavor}}
	if !atOnce && g.etag != "" {
		query := url.Values{"wait_for_change": {"true"}, "timeout_sec": {strconv.Itoa(int(waitForChange.Seconds()))}, "last_etag": {g.etag}}
		r.path += "?" + query.Encode()
		r.timeout = waitForChange + answerTimeout
	}
	a, err := g.service.send(ctx, r)
	switch {
	case err != nil:
		return notice{}, err
	case a.status != http.StatusOK:
		return notice{}, a.statusError()
	case a.header.Get(flavorHeader) != flavor:
		return notice{}, errors.New("the answer is not from Google's metadata server: it has no " + flavorHeader + ": " + flavor)
	}
	if value := strings.TrimSpace(string(a.body)); value != g.value {
		g.value, g.valueFirstRead = value, time.Now()
	}
	n, err := g.parse(g.value, g.valueFirstRead)
	if err != nil {
		return notice{}, err
	}
	g.etag = a.header.Get("ETag")
	return n, nil
}

// parsePreempted parses the value "preempted". The notice period counts from firstRead, when the value was first read,
// because the service does not say when the period began.
func parsePreempted(value string, firstRead time.Time) (notice, error) {
	switch value {
	case "FALSE":
		return notice{}, nil
	case "TRUE":
		return notice{key: value, event: source.Event{Kind: source.KindPoweroff, Deadline: firstRead.Add(preemptionNotice)}}, nil
	default:
		return notice{}, fmt.Errorf("%.40q is neither TRUE nor FALSE", value)
	}
}

// parseMaintenance parses the value "maintenance-event". A live migration is no notice, because the machine keeps
// running. The notice has no deadline, because the service gives no time.
func parseMaintenance(value string, _ time.Time) (notice, error) {
	switch value {
	case "NONE", "MIGRATE_ON_HOST_MAINTENANCE":
		return notice{}, nil
	case "TERMINATE_ON_HOST_MAINTENANCE":
		return notice{key: value, event: source.Event{Kind: source.KindPoweroff}}, nil
	default:
		return notice{}, fmt.Errorf("%.40q is not a known maintenance event", value)
	}
}
