// Package docprogram compiles, for a test, the programs with which the documentation of this
// repository's packages begins.
package docprogram
