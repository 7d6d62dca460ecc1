package backend

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// sockets are the open websockets of a backend.
type sockets struct {
	mu   sync.Mutex
	open map[*websocket.Conn]struct{}
}

func newSockets() *sockets { return &sockets{open: map[*websocket.Conn]struct{}{}} }

// serve echoes the messages of one websocket until it is closed.
func (s *sockets) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	s.mu.Lock()
	s.open[conn] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
		_ = conn.CloseNow() // it is closed already in all cases but a failed write
	}()
	echo(r.Context(), conn)
}

// echo sends each message back. It ends with the connection: there is nobody to tell an
// error to.
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

// closeAll says good-bye to each client, spread evenly over a time, and waits until they
// have answered; the library waits for 5 s at most.
func (s *sockets) closeAll(over time.Duration) {
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
			// A client that has broken off cannot be told.
			_ = conn.Close(websocket.StatusGoingAway, "this server ends; connect again")
		})
	}
	closing.Wait()
}
