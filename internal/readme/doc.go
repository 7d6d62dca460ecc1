// Package readme keeps the README honest: its program is compiled with the rest.
package readme
