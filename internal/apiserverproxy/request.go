package apiserverproxy

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Request is one request that has arrived.
type Request struct {
	// Verb is the API's: get, list, watch, create, update, patch, delete or
	// deletecollection. The method in lower case where the path is of no resource.
	Verb string
	// Resource has its subresource with it, as in "pods/status"; "": the path is of none.
	Resource string
	// Namespace and Name of the object; "": the path has none.
	Namespace, Name string

	Method, Path string     // the path without the query
	Query        url.Values // not to be changed
	ContentType  string     // the header of that name; "": none
	UserAgent    string     // likewise
	Body         []byte     // shared by all that ask for it: not to be changed
	Status       int        // the code of the answer; 0: not answered, or not yet
	At           time.Time
	Answered     time.Time // when the answer was handed on; zero: not answered
}

// String is as in "patch pods/status default/web".
func (r Request) String() string {
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	object := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	return strings.TrimSpace(r.Verb + " " + r.Resource + " " + strings.TrimSuffix(object, "/"))
}

// describe reads a request as the API server does (request.RequestInfoFactory).
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

// locate finds resource, namespace and name in the parts of a path, which begins with
// api/VERSION or apis/GROUP/VERSION. The path of a namespace itself looks like the
// beginning of those in it.
func (r *Request) locate(parts []string) {
	root := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if root == 0 || len(parts) <= root {
		return
	}
	parts = parts[root:]
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

func (r *Request) verb() string {
	watches, _ := strconv.ParseBool(r.Query.Get("watch")) // what does not parse is false
	one := r.Name != ""
	switch {
	case r.Method == http.MethodGet && watches:
		return "watch"
	case r.Method == http.MethodGet && !one:
		return "list"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodDelete && !one:
		return "deletecollection"
	default:
		return strings.ToLower(r.Method)
	}
}
