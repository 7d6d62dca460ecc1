// Package docprogram compiles the programs in the package documentation of this repository, for a test.
package docprogram
