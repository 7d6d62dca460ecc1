// Package readme tests that the program, the lists, the tables and the figures of the pages say what
// the code says.
package readme
