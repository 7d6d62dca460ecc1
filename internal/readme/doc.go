// Package readme tests that the program and the tables of README.md say what the code says.
package readme
