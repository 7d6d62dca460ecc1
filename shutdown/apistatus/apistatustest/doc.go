// Package apistatustest has an API server for the tests of those who report to one:
// it keeps nodes and pods in memory, speaks HTTP over a real socket, and fails as it
// is told to:
//
//	server, err := apistatustest.Start(
//		&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
//		&v1.Pod{
//			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
//			Spec:       v1.PodSpec{NodeName: "node-1"},
//		},
//	)
//	require.NoError(t, err)
//	t.Cleanup(func() { require.NoError(t, server.Close()) })
//
//	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL()})
//	require.NoError(t, err)
//
//	server.Script(func(r *http.Request) apistatustest.Fault {
//		if r.Method == http.MethodPatch {
//			return apistatustest.Fault{Status: http.StatusConflict}
//		}
//		return apistatustest.Fault{}
//	})
//	... // report a final status with client
//
//	pod, _ := server.Pod("default", "web") // what the cluster believes now
//	asked := server.Requests()             // and how it was told
//
// It serves nodes, pods, events and leases of coordination.k8s.io: GET, LIST with
// fieldSelector and labelSelector, POST, PUT, PATCH and DELETE, and /status of nodes
// and pods, with the rules of the real one for resourceVersion, UID, generation,
// preconditions, grace and finalizers, and with its errors: apierrors.IsConflict
// and its like hold at the client. A UID that is not the stored one is a Conflict for
// PUT and DELETE, where it is a precondition, but Invalid for PATCH, where it is a
// change of a field that must not change.
//
// # Concurrency properties
//
// Everything may be used by several goroutines. Requests are carried out one at a
// time, so that each sees all that was answered before; delays and hangs overlap.
// No mutex is held while anything waits. Close waits for all goroutines that the
// server has started. It waits for real sockets: keep it out of a bubble of
// testing/synctest.
//
// # Failure modes
//
// [Server.Script] is asked before each request what is to go wrong with it, see
// [Fault]: it can be late, refused with any error, hang, lose its connection before
// it is carried out or after that. [Server.Die] takes the whole server away and
// [Server.Revive] brings it back at the same address; another program may have
// taken the port in the meantime, which is Revive's error.
//
// What it is not: a watch is refused with 405, so that informers do not work; so is
// the DELETE of a collection. Bodies may be JSON or protobuf, which is what client-go
// sends unless its config says ContentType; answers are JSON. JSON patches and
// server-side apply are 415. Names are not generated, lists have no pages, fields are
// not validated, the PUT of a lease needs no resourceVersion, there is no eviction, and
// nobody is asked who he is.
//
// # Testing
//
// The tests of this package use it through client-go, as its users do.
package apistatustest
