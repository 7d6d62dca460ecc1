package notice_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A server takes the place of EC2's metadata service and interrupts the machine. An agent passes the Trigger of its manager
// instead of the function that prints here.
func ExampleWatch() {
	when := time.Now().Add(2 * time.Minute).UTC().Truncate(time.Second)
	service := http.NewServeMux()
	service.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a-token") })
	service.HandleFunc("GET /latest/meta-data/spot/instance-action", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"action": "terminate", "time": %q}`, when.Format(time.RFC3339))
	})
	server := httptest.NewServer(service)
	defer server.Close()

	ctx, cancel := context.WithCancel(context.Background())
	provider := notice.EC2()
	provider.Endpoint = server.URL
	provider.OnError = func(err error) { fmt.Println(err) }
	err := notice.Watch(ctx, provider, func(event source.Event) error {
		fmt.Println(event.Origin, "announces a", event.Kind, "in two minutes:", event.Deadline.Equal(when))
		cancel() // an agent watches until it ends
		return nil
	})
	fmt.Println(err)
	// Output:
	// EC2 instance-action announces a poweroff in two minutes: true
	// <nil>
}
