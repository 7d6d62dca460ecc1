// Package readme compares programs, lists, tables and figures in the Markdown pages with the code.
package readme
