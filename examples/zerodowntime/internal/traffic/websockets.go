package traffic

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

// reconnectDelay is how long a client waits after a connection that broke or failed before it
// connects again. After a close frame it connects again at once.
const reconnectDelay = 100 * time.Millisecond

// Websockets keeps one websocket to url open for each of the clients. Each client sends a
// message in every interval and waits for the echo. Websockets returns when until is closed
// and each client has the answer to its last message, or when ctx ends.
func Websockets(ctx context.Context, until <-chan struct{}, url string, clients int, interval time.Duration, to *Recorder) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	dial := &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}
	client := &websocketClient{url: url, interval: interval, dial: dial, to: to, until: until}
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			// The clients begin spread over the interval, so that their messages are, too.
			if client.wait(ctx, interval*time.Duration(i)/time.Duration(clients)) {
				client.run(ctx)
			}
		})
	}
	running.Wait()
}

// websocketClient has the settings of the clients. It has no state, so all of them share it.
type websocketClient struct {
	url      string
	interval time.Duration
	dial     *websocket.DialOptions
	to       *Recorder
	until    <-chan struct{}
}

// run runs one client, which connects again whenever its connection ends.
func (c *websocketClient) run(ctx context.Context) {
	for {
		start := time.Now()
		conn, response, err := websocket.Dial(ctx, c.url, c.dial)
		var outcome Outcome
		pod := ""
		if response != nil {
			pod = response.Header.Get(proxy.PodHeader)
		}
		switch {
		case err == nil:
			outcome = c.exchange(ctx, conn, pod)
			_ = conn.CloseNow() // an error says that conn is closed already
		case response != nil && response.Header.Get(proxy.FailureHeader) == proxy.Refused:
			outcome = Refused
		default:
			outcome = Cut
		}
		if outcome == "" || ctx.Err() != nil {
			return
		}
		c.to.Add(Event{Outcome: outcome, At: time.Now(), Took: time.Since(start), Pod: pod})
		if outcome != Moved && !c.wait(ctx, reconnectDelay) {
			return
		}
	}
}

// exchange sends messages and reads their echoes until the connection ends, and returns the
// outcome of the connection; "" if the client has closed it at the end of its run.
func (c *websocketClient) exchange(ctx context.Context, conn *websocket.Conn, pod string) Outcome {
	for {
		start := time.Now()
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
		c.to.Add(Event{Outcome: Answered, At: time.Now(), Took: time.Since(start), Pod: pod})
		if !c.wait(ctx, c.interval) {
			_ = conn.Close(websocket.StatusNormalClosure, "") // an error has no effect on what was measured
			return ""
		}
	}
}

// wait waits for a time, and returns false if the client must end.
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
