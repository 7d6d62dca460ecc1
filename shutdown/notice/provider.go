package notice

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// The origins of the events. Each is withdrawn separately.
const (
	originEC2            = "EC2 instance-action"   // a spot instance is interrupted
	originGCEPreempted   = "GCE preempted"         // a spot or preemptible machine is preempted
	originGCEMaintenance = "GCE maintenance-event" // a machine that cannot migrate stops for maintenance
	originAzure          = "Azure Scheduled Events"
)

// Provider is the metadata service of a cloud. Make one with [EC2], [GCE] or [Azure], and change its
// fields before the first use. It may be copied. The zero value is an error of [Watch].
type Provider struct {
	// Endpoint is the URL of the service, such as http://[fd00:ec2::254]. Its path is the prefix of the
	// path of each request. "": http://169.254.169.254, which all three use.
	Endpoint string
	// OnError is called once for each outage: the service does not answer, it answers in another format,
	// or announce fails. [Watch] calls it in its caller's goroutine. Nil: a warning to [slog.Default].
	OnError func(error)
	// Dial connects to the service, like [net.Dialer.DialContext]. It must end with its context. Nil:
	// the method of a zero dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	values      func(*service) []*polledValue
	acknowledge func(context.Context, *service) error // nil: the provider takes no acknowledgement
}

// validate returns an error for a provider that no function of this package has made.
func (p Provider) validate() error {
	if p.values == nil {
		return errors.New("notice: the Provider was not made with EC2, GCE or Azure")
	}
	return nil
}

// Acknowledge tells the provider that this machine is ready, so that it need not wait until the end of
// the notice. Call it after the drain. Azure then starts each current event that is only about this
// machine. An event of several machines is not acknowledged, and is an error. If there is no event, the
// error is nil. EC2 and GCE accept no acknowledgement: the error wraps [errors.ErrUnsupported].
func Acknowledge(ctx context.Context, p Provider) error {
	if err := p.validate(); err != nil {
		return err
	}
	if p.acknowledge == nil {
		return fmt.Errorf("notice: this provider takes no acknowledgement: %w", errors.ErrUnsupported)
	}
	s, err := newService(p)
	if err != nil {
		return err
	}
	defer s.client.CloseIdleConnections()
	return p.acknowledge(ctx, s)
}
