package backend

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// websockets holds the open websockets of a backend.
type websockets struct {
	mu   sync.Mutex
	open map[*websocket.Conn]struct{}
}

func newWebsockets() *websockets { return &websockets{open: map[*websocket.Conn]struct{}{}} }

// serve echoes the messages of one websocket until it is closed.
func (s *websockets) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has sent the error to the client
	}
	s.mu.Lock()
	s.open[conn] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
		_ = conn.CloseNow() // an error says that conn is closed already
	}()
	echo(r.Context(), conn)
}

// echo sends each message back until the connection ends.
func echo(ctx context.Context, conn *websocket.Conn) {
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if err := conn.Write(ctx, kind, message); err != nil {
			return
		}
	}
}

// closeAll sends a close frame to each client, evenly spread over a time, and waits for their
// answers. The library waits for each at most 5 s.
func (s *websockets) closeAll(over time.Duration) {
	s.mu.Lock()
	conns := make([]*websocket.Conn, 0, len(s.open))
	for conn := range s.open {
		conns = append(conns, conn)
	}
	s.mu.Unlock()
	var closing sync.WaitGroup
	for i, conn := range conns {
		wait := over * time.Duration(i) / time.Duration(len(conns))
		closing.Go(func() {
			<-time.After(wait)
			_ = conn.Close(websocket.StatusGoingAway, "this server ends; connect again") // fails if the connection has broken
		})
	}
	closing.Wait()
}
