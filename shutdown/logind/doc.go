// Package logind is the shutdown source of hosts with systemd.
package logind
