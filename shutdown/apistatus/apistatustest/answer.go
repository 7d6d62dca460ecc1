package apistatustest

import (
	"bytes"
	"cmp"
	"net/http"
)

// answer holds a response back until it is clear that it is to be sent.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = cmp.Or(a.status, status) }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// send hands the response on.
func (a *answer) send(w http.ResponseWriter) {
	w.WriteHeader(a.status)
	_, _ = a.body.WriteTo(w) // a client that has gone needs no answer
}
