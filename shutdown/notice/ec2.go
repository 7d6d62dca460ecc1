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
	// tokenLifetime is the longest lifetime of a session token. The token is renewed tokenMargin
	// earlier.
	tokenLifetime, tokenMargin = 6 * time.Hour, 5 * time.Minute

	tokenHeader    = "X-aws-ec2-metadata-token"
	lifetimeHeader = "X-aws-ec2-metadata-token-ttl-seconds"
)

// EC2 returns Amazon EC2's instance metadata service, version 2. Every 5 s it reads whether this spot
// instance is interrupted, which powers it off two minutes later, or at once for hibernation.
// Rebalance recommendations are ignored. An agent in a container with its own network gets no session
// token unless the instance's hop limit is at least 2 (HttpPutResponseHopLimit).
func EC2() Provider {
	return Provider{values: func(s *service) []*polledValue {
		return []*polledValue{{origin: originEC2, interval: 5 * time.Second, read: (&ec2{service: s}).read}}
	}}
}

// ec2 reads the interruption with a session token.
type ec2 struct {
	service *service
	token   string
	renewAt time.Time // when the token must be replaced; zero: at the next read
}

// read implements polledValue.read. If the service does not know the token, read gets a new one and asks again: the
// instance may have hibernated, or the service restarted. After any other failure the next read uses a new
// token, in case the old one was the reason. EC2 always answers at once, so read does not need the parameter atOnce.
func (e *ec2) read(ctx context.Context, _ bool) (n notice, err error) {
	defer func() {
		if err != nil {
			e.renewAt = time.Time{}
		}
	}()
	if isTokenOld := time.Until(e.renewAt) <= 0; isTokenOld {
		if err := e.renew(ctx); err != nil {
			return notice{}, err
		}
	}
	a, err := e.readAction(ctx)
	if isTokenUnknown := err == nil && a.status == http.StatusUnauthorized; isTokenUnknown {
		if err := e.renew(ctx); err != nil {
			return notice{}, err
		}
		a, err = e.readAction(ctx)
	}
	switch {
	case err != nil:
		return notice{}, err
	case a.status == http.StatusNotFound: // no interruption
		return notice{}, nil
	case a.status != http.StatusOK:
		return notice{}, a.statusError()
	}
	return parseInstanceAction(a.body, a.clockAhead)
}

// readAction asks for the interruption of this instance. The answer has any status: 404 means that there is none.
func (e *ec2) readAction(ctx context.Context) (answer, error) {
	return e.service.send(ctx, request{path: "/latest/meta-data/spot/instance-action", header: map[string]string{tokenHeader: e.token}})
}

// renew gets a new session token.
func (e *ec2) renew(ctx context.Context) error {
	requestedAt := time.Now()
	a, err := e.service.send(ctx, request{
		method: http.MethodPut, path: "/latest/api/token",
		header: map[string]string{lifetimeHeader: strconv.Itoa(int(tokenLifetime.Seconds()))},
	})
	switch {
	case err != nil:
		return err
	case a.status != http.StatusOK:
		return a.statusError()
	}
	if e.token = strings.TrimSpace(string(a.body)); e.token == "" {
		return errors.New("the session token is empty")
	}
	e.renewAt = requestedAt.Add(tokenLifetime - tokenMargin)
	return nil
}

// parseInstanceAction parses the document spot/instance-action. clockAhead is how far this machine's clock is ahead of
// the service's; it is added to the time of the interruption. An unknown action is a shutdown of an unknown kind.
func parseInstanceAction(body []byte, clockAhead time.Duration) (notice, error) {
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
	event := source.Event{Deadline: interruption.Time.Add(clockAhead)}
	switch interruption.Action {
	case "terminate", "stop", "hibernate":
		event.Kind = source.KindPoweroff
	}
	return notice{key: interruption.Action + " " + interruption.Time.String(), event: event}, nil
}
