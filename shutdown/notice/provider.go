package notice

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// The origins of the announcements ([source.Event.Origin]). Each is taken back for itself.
const (
	OriginEC2            = "EC2 instance-action"   // a spot instance is interrupted
	OriginGCEPreempted   = "GCE preempted"         // a spot or preemptible machine is preempted
	OriginGCEMaintenance = "GCE maintenance-event" // a machine that cannot migrate stops for maintenance
	OriginAzure          = "Azure Scheduled Events"
)

// Provider is the metadata service of a cloud. Make one with [EC2], [GCE] or [Azure], change its
// fields before the first use, and give copies to whom you like. The zero value is an error of
// [Watch].
type Provider struct {
	// Endpoint is the URL of the service, such as http://[fd00:ec2::254]. A path in it comes before
	// that of each request. "": http://169.254.169.254, which all three have.
	Endpoint string
	// OnError is told what fails, once for each outage: the service does not answer, or not in its
	// own form, or announce has failed. The outage of one of several questions ends when that
	// question is answered again. [Watch] calls it in its own goroutine. Nil: a warning goes to
	// [slog.Default].
	OnError func(error)
	// Dial connects to the service, as [net.Dialer.DialContext] does. Nil: that of a zero dialer.
	// It must end with its context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	items       func(*service) []*item
	acknowledge func(context.Context, *service) error // nil: the provider takes no acknowledgement
}

// validate returns an error for a provider that no function of this package has made.
func (p Provider) validate() error {
	if p.items == nil {
		return errors.New("notice: the Provider was not made with EC2, GCE or Azure")
	}
	return nil
}

// Acknowledge tells the provider that this machine is ready for what was announced, so that it need
// not wait until the end of the notice. Call it when the drain is done. Azure begins each event
// that is announced now and is of this machine alone; an event that other machines share is not
// acknowledged for them, and is an error, as is a service that does not take it. Nothing announced
// is no error. EC2 and GCE take no acknowledgement: the error wraps [errors.ErrUnsupported].
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
