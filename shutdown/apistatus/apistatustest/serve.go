package apistatustest

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"time"
)

// serve notes a request, lets it suffer its fault and carries it out.
func (s *Server) serve(l *life, w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	number := s.journal.arrived(r, body, at)
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault := s.fault(r)
	if !fault.pass(r.Context(), l.over) {
		panic(http.ErrAbortHandler) // closes the connection, and logs nothing
	}
	r.Body = io.NopCloser(bytes.NewReader(body)) // the script may have read it
	answer := s.carryOut(r, fault)
	if fault.Lost {
		panic(http.ErrAbortHandler)
	}
	s.journal.answered(number, answer.status)
	answer.send(w)
}

// carryOut does what a request asks for, or refuses it.
func (s *Server) carryOut(r *http.Request, fault Fault) *answer {
	held := &answer{header: http.Header{}}
	if fault.Status != 0 {
		fail(held, fault.err(r))
	} else {
		s.routes.ServeHTTP(held, r)
	}
	return held
}

// answer holds a response back until it is clear that it is to be sent.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header, WriteHeader and Write are those of an [http.ResponseWriter].
func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = cmp.Or(a.status, status) }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// send hands the response on.
func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = a.body.WriteTo(w) // a client that has gone needs no answer
}
