// Package readme tests that the programs in README.md and in the package documentation
// compile.
package readme
