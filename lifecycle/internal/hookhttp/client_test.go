package hookhttp

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A redirect to another port or scheme of the same host is followed. pod.example.org is another host than
// pod.example, so a redirect there is not followed.
func TestRedirectToAnotherPortIsOnTheSameHost(t *testing.T) {
	from, to := "http://pod.example:80/", "https://pod.example:443/bye"
	require.NoError(t, onSameHost(requestOf(t, to), []*http.Request{requestOf(t, from)}))
	require.ErrorIs(t, onSameHost(requestOf(t, "http://pod.example.org/"), []*http.Request{requestOf(t, from)}), http.ErrUseLastResponse)
}

// requestOf returns a request for an address.
func requestOf(t *testing.T, address string) *http.Request {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return &http.Request{URL: u}
}
