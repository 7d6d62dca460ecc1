package hookhttp

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another port or scheme is still the same host, so the redirect is followed. A longer host name is another
// host.
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
