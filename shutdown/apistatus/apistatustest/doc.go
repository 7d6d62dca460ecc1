// Package apistatustest has an API server for the tests of those who report to one.
package apistatustest
