package apiserverproxy

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Request is a received request.
type Request struct {
	// Verb is the API verb: get, list, watch, create, update, patch, delete or deletecollection. If the
	// path has no resource, it is the method in lower case.
	Verb string
	// Resource includes the subresource, as in "pods/status". It may be empty.
	Resource string
	// Namespace and Name are those of the object. They may be empty.
	Namespace, Name string

	Method, Path string     // the path without the query
	Query        url.Values // must not be modified
	ContentType  string     // the Content-Type header
	UserAgent    string     // the User-Agent header
	Body         []byte     // must not be modified
	Status       int        // the code of the response; 0: none yet
	At           time.Time
	Answered     time.Time // the time of the response; zero: none yet
}

// String returns verb, resource and object, as in "patch pods/status default/web".
func (r Request) String() string {
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	object := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") // a node has no namespace, and a list no name
	return strings.TrimSpace(r.Verb + " " + r.Resource + " " + strings.TrimSuffix(object, "/"))
}

// describe parses a request by the rules of the API server (request.RequestInfoFactory). body is the body of r, which
// the caller has read.
func describe(r *http.Request, body []byte) Request {
	described := Request{
		Verb: strings.ToLower(r.Method), Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
		ContentType: r.Header.Get("Content-Type"), UserAgent: r.UserAgent(), Body: body, At: time.Now(),
	}
	described.locate(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	if described.Resource != "" {
		described.Verb = described.verb()
	}
	return described
}

// locate sets Resource, Namespace and Name from the elements of a path that begins with api/VERSION or
// apis/GROUP/VERSION. namespaces/NAME, alone or followed by status or finalize, is a Namespace object;
// followed by anything else it is the namespace of another object.
func (r *Request) locate(parts []string) {
	prefixLength := map[string]int{"api": 2, "apis": 3}[parts[0]] // of the elements before the resource; 0: there is no resource
	if prefixLength == 0 || len(parts) <= prefixLength {
		return
	}
	parts = parts[prefixLength:]
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Resource += "/" + strings.Join(parts[2:], "/")
	}
}

// verb returns the API verb of a request whose Resource and Name are set.
func (r *Request) verb() string {
	isWatch, _ := strconv.ParseBool(r.Query.Get("watch")) // an invalid value counts as false
	hasName := r.Name != ""
	switch {
	case r.Method == http.MethodGet && isWatch:
		return "watch"
	case r.Method == http.MethodGet && !hasName:
		return "list"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodDelete && !hasName:
		return "deletecollection"
	default:
		return strings.ToLower(r.Method)
	}
}
