package apistatustest

import (
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// api carries out requests.
type api struct{ store *store }

// verb does to an object what a request asks for, and answers with the object.
type verb func(*http.Request) (code int, answer object, err error)

// routes are the paths that are served.
func (a *api) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "", 0, false))
	})
	for _, k := range kinds() {
		all := k.root() + k.resource
		if k.namespaced {
			mux.Handle(all, a.methods(k, nil))
			all = k.root() + "namespaces/{namespace}/" + k.resource
		}
		one := all + "/{name}"
		mux.Handle(all, a.methods(k, map[string]verb{http.MethodPost: a.create(k)}))
		mux.Handle(one, methods(k, map[string]verb{
			http.MethodGet: a.get(k), http.MethodPut: a.put(k, false),
			http.MethodPatch: a.patch(k, false), http.MethodDelete: a.remove(k),
		}))
		if k.status {
			mux.Handle(one+"/status", methods(k, map[string]verb{
				http.MethodGet: a.get(k), http.MethodPut: a.put(k, true), http.MethodPatch: a.patch(k, true),
			}))
		}
	}
	return mux
}

// methods serves a path of many objects, whose GET is a list.
func (a *api) methods(k kind, verbs map[string]verb) http.Handler {
	others := methods(k, verbs)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			others.ServeHTTP(w, r)
			return
		}
		list, err := a.list(k, r)
		if err != nil {
			fail(w, err)
			return
		}
		send(w, http.StatusOK, list)
	})
}

// methods serves a path of one object.
func methods(k kind, verbs map[string]verb) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		carryOut, ok := verbs[r.Method]
		if !ok {
			fail(w, apierrors.NewMethodNotSupported(k.groupResource(), r.Method))
			return
		}
		code, answer, err := carryOut(r)
		if err != nil {
			fail(w, err)
			return
		}
		send(w, code, encode(k, answer))
	})
}

// fail answers with the metav1.Status of an error.
func fail(w http.ResponseWriter, err error) {
	var known *apierrors.StatusError
	ok := errors.As(err, &known)
	if !ok {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	send(w, int(status.Code), &status)
}

// send answers with an object.
func send(w http.ResponseWriter, code int, answer runtime.Object) {
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_, _ = w.Write(body) // into memory
}
