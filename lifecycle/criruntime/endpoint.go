package criruntime

import (
	"fmt"
	"net/url"
	"path"
)

// checkEndpoint returns an error unless endpoint has the form unix:///path/to/socket, as the kubelet's
// --container-runtime-endpoint has on Linux.
func checkEndpoint(endpoint string) error {
	const want = "want unix:///path/to/socket"
	if endpoint == "" {
		return fmt.Errorf("container runtime endpoint is not set, %s", want)
	}
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("container runtime endpoint %q is not a URL, %s: %w", endpoint, want, err)
	case parsed.Scheme != "unix":
		return fmt.Errorf("container runtime endpoint %q has the scheme %q, %s", endpoint, parsed.Scheme, want)
	case parsed.Host != "" || !path.IsAbs(parsed.Path):
		return fmt.Errorf("container runtime endpoint %q has no absolute path, %s", endpoint, want)
	}
	return nil
}
