package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// tokenLifetime is the longest that EC2 grants a session token. It is renewed tokenMargin earlier.
	tokenLifetime, tokenMargin = 6 * time.Hour, 5 * time.Minute

	tokenHeader    = "X-aws-ec2-metadata-token"
	lifetimeHeader = "X-aws-ec2-metadata-token-ttl-seconds"
)

// EC2 is the instance metadata service of Amazon EC2, version 2. It is asked every 5 s whether this
// spot instance is interrupted, which it says two minutes ahead; hibernation begins at once. Each
// is a power off to the node. A rebalance recommendation is none and is not asked for. An agent in a
// container with a network of its own gets no session token unless the instance's hop limit is 2 or
// more (HttpPutResponseHopLimit).
func EC2() Provider {
	return Provider{items: func(s *service) []*item {
		return []*item{{origin: OriginEC2, interval: 5 * time.Second, read: (&ec2{service: s}).read}}
	}}
}

// ec2 reads the interruption of a spot instance, with a session token.
type ec2 struct {
	service *service
	token   string
	renewAt time.Time
}

// read is the read of an item. A token that the service does not know is replaced at once: the
// instance may have been hibernated, or the service restarted. After any other failure the next read
// begins with another token, because this one may be the reason.
func (e *ec2) read(ctx context.Context, _ bool) (n notice, err error) {
	defer func() {
		if err != nil {
			e.renewAt = time.Time{}
		}
	}()
	if !time.Now().Before(e.renewAt) {
		if err := e.renew(ctx); err != nil {
			return notice{}, err
		}
	}
	a, err := e.ask(ctx)
	if err == nil && a.status == http.StatusUnauthorized {
		if err := e.renew(ctx); err != nil {
			return notice{}, err
		}
		a, err = e.ask(ctx)
	}
	switch {
	case err != nil:
		return notice{}, err
	case a.status == http.StatusNotFound:
		return notice{}, nil
	case a.status != http.StatusOK:
		return notice{}, a.unexpected()
	}
	return parseInstanceAction(a.body, a.clockAhead)
}

// ask asks for the interruption.
func (e *ec2) ask(ctx context.Context) (answer, error) {
	return e.service.ask(ctx, request{path: "/latest/meta-data/spot/instance-action", header: map[string]string{tokenHeader: e.token}})
}

// renew begins a session.
func (e *ec2) renew(ctx context.Context) error {
	asked := time.Now()
	a, err := e.service.ask(ctx, request{
		method: http.MethodPut, path: "/latest/api/token",
		header: map[string]string{lifetimeHeader: strconv.Itoa(int(tokenLifetime.Seconds()))},
	})
	switch {
	case err != nil:
		return err
	case a.status != http.StatusOK:
		return a.unexpected()
	}
	if e.token = strings.TrimSpace(string(a.body)); e.token == "" {
		return errors.New("the session token is empty")
	}
	e.renewAt = asked.Add(tokenLifetime - tokenMargin)
	return nil
}

// parseInstanceAction parses the item spot/instance-action. ahead is clockAhead of its answer.
func parseInstanceAction(body []byte, ahead time.Duration) (notice, error) {
	var interruption struct {
		Action string
		Time   time.Time
	}
	if err := json.Unmarshal(body, &interruption); err != nil {
		return notice{}, fmt.Errorf("read spot/instance-action: %w", err)
	}
	if interruption.Action == "" || interruption.Time.IsZero() {
		return notice{}, errors.New("spot/instance-action has no action or no time")
	}
	event := source.Event{Deadline: interruption.Time.Add(ahead)}
	switch interruption.Action {
	case "terminate", "stop", "hibernate":
		event.Kind = source.KindPoweroff
	}
	return notice{key: interruption.Action + " " + interruption.Time.String(), event: event}, nil
}
