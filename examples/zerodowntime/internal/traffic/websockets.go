package traffic

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

// again is how long a client waits before it connects again after a connection that broke
// or failed. One that was closed with notice connects again at once.
const again = 100 * time.Millisecond

// Websockets keeps so many websockets to url open, sends a message over each in an
// interval and waits for its echo. It ends when until is closed, and at once when ctx ends.
func Websockets(ctx context.Context, until <-chan struct{}, url string, clients int, interval time.Duration, to *Recorder) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	dial := &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}
	client := &websocketClient{url: url, interval: interval, dial: dial, to: to, until: until}
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			// Spread over the interval, as users are.
			if client.wait(ctx, interval*time.Duration(i)/time.Duration(clients)) {
				client.run(ctx)
			}
		})
	}
	all.Wait()
}

// websocketClient is what all clients have in common.
type websocketClient struct {
	url      string
	interval time.Duration
	dial     *websocket.DialOptions
	to       *Recorder
	until    <-chan struct{}
}

// run is one client: it talks, and connects again as often as it has to.
func (c *websocketClient) run(ctx context.Context) {
	for {
		began := time.Now()
		conn, response, err := websocket.Dial(ctx, c.url, c.dial)
		var how Outcome
		pod := ""
		if response != nil {
			pod = response.Header.Get(proxy.PodHeader)
		}
		switch {
		case err == nil:
			how = c.talk(ctx, conn, pod)
			_ = conn.CloseNow() // it is closed already, or broken
		case response != nil && response.Header.Get(proxy.FailureHeader) == proxy.Refused:
			how = Refused
		default:
			how = Cut
		}
		if how == "" || ctx.Err() != nil {
			return
		}
		c.to.Add(Event{Outcome: how, At: time.Now(), Took: time.Since(began), Pod: pod})
		if how != Moved && !c.wait(ctx, again) {
			return
		}
	}
}

// talk sends messages until the connection ends, and says how that came about; "" means
// that the client itself was done.
func (c *websocketClient) talk(ctx context.Context, conn *websocket.Conn, pod string) Outcome {
	for {
		began := time.Now()
		err := conn.Write(ctx, websocket.MessageText, []byte("hello"))
		if err == nil {
			_, _, err = conn.Read(ctx)
		}
		if err != nil {
			if websocket.CloseStatus(err) == websocket.StatusGoingAway {
				return Moved
			}
			return Cut
		}
		c.to.Add(Event{Outcome: Answered, At: time.Now(), Took: time.Since(began), Pod: pod})
		if !c.wait(ctx, c.interval) {
			_ = conn.Close(websocket.StatusNormalClosure, "") // one that has broken now was not needed
			return ""
		}
	}
}

// wait waits, and tells whether the client goes on.
func (c *websocketClient) wait(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.until:
	case <-ctx.Done():
	}
	return false
}
