package apistatustest_test

import (
	"context"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

// A writer that does not give up is watched against a server that refuses the first
// patch, and loses its answer to the second.
func Example() {
	server, err := apistatustest.Start(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server.Script(func(*http.Request) apistatustest.Fault {
		switch len(server.Requests()) {
		case 1:
			return apistatustest.Fault{Status: http.StatusConflict}
		case 2:
			return apistatustest.Fault{Lost: true}
		default:
			return apistatustest.Fault{}
		}
	})

	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL(), QPS: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		_, err := client.CoreV1().Pods("default").Patch(context.Background(), "web", types.StrategicMergePatchType,
			[]byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
		pod, _ := server.Pod("default", "web")
		fmt.Printf("conflict %t, answered %t, stored %q\n", apierrors.IsConflict(err), err == nil, pod.Status.Phase)
		if err == nil {
			break
		}
	}
	for _, asked := range server.Requests() {
		fmt.Println(asked.Method, asked.Status)
	}
	fmt.Println(server.Close())
	// Output:
	// conflict true, answered false, stored ""
	// conflict false, answered false, stored "Failed"
	// conflict false, answered true, stored "Failed"
	// PATCH 409
	// PATCH 0
	// PATCH 200
	// <nil>
}
