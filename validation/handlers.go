package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// hook checks that a hook has one handler, and that one's own fields. Of several
// the first in this order counts, and every other one is one too many (the API
// server's validateHandler).
func (c *checker) hook(hook *v1.LifecycleHandler, at place) {
	handlers := 0
	if hook.Exec != nil && c.isFirst(&handlers, at, "exec") {
		c.exec(hook.Exec, at.child("exec"))
	}
	if hook.HTTPGet != nil && c.isFirst(&handlers, at, "httpGet") {
		c.httpGet(hook.HTTPGet, at.child("httpGet"))
	}
	if hook.TCPSocket != nil && c.isFirst(&handlers, at, fieldTCPSocket) {
		c.port(hook.TCPSocket.Port, at.child(fieldTCPSocket).child("port"))
	}
	if hook.Sleep != nil && c.isFirst(&handlers, at, fieldSleep) {
		c.sleep(hook.Sleep, at.child(fieldSleep))
	}
	if handlers == 0 {
		c.errs = append(c.errs, field.Required(at.path(), "must specify a handler type"))
	}
}

// isFirst counts a handler, and refuses it if another one came before. Of one too
// many nothing else is said: it has to go anyway.
func (c *checker) isFirst(handlers *int, at place, name string) bool {
	*handlers++
	if *handlers == 1 {
		return true
	}
	c.forbidden(at.child(name), "may not specify more than 1 handler type")
	return false
}

// exec wants a command, even one that is an empty word (validateExecAction).
func (c *checker) exec(exec *v1.ExecAction, at place) {
	if len(exec.Command) == 0 {
		c.required(at.child("command"))
	}
}

// httpGet checks a request, but not its host: whatever is written there is looked
// up when the hook runs (validateHTTPGetAction). All its headers share one path,
// which says nothing of their place.
func (c *checker) httpGet(get *v1.HTTPGetAction, at place) {
	if get.Path == "" {
		c.required(at.child("path"))
	}
	c.port(get.Port, at.child("port"))
	if get.Scheme != v1.URISchemeHTTP && get.Scheme != v1.URISchemeHTTPS {
		c.errs = append(c.errs, field.NotSupported(at.child("scheme").path(), get.Scheme, []v1.URIScheme{v1.URISchemeHTTP, v1.URISchemeHTTPS}))
	}
	for i := range get.HTTPHeaders {
		name := get.HTTPHeaders[i].Name
		for _, detail := range validation.IsHTTPHeaderName(name) {
			c.invalid(at.child("httpHeaders"), name, detail)
		}
	}
}

// port checks a port that is a number or the name of a container's port, which
// need not exist (ValidatePortNumOrName). A string of digits is no name, although
// a kubelet would take it for a number.
func (c *checker) port(port intstr.IntOrString, at place) {
	switch port.Type {
	case intstr.Int:
		for _, detail := range validation.IsValidPortNum(port.IntValue()) {
			c.invalid(at, port.IntValue(), detail)
		}
	case intstr.String:
		for _, detail := range validation.IsValidPortName(port.StrVal) {
			c.invalid(at, port.StrVal, detail)
		}
	default:
		c.errs = append(c.errs, field.InternalError(at.path(), fmt.Errorf("unknown type: %v", port.Type)))
	}
}
