// Package deptest reads the import graph of kubegrace. Its tests check which imports each package may have,
// which dependencies are forbidden, and how many packages an importer of kubegrace inherits.
package deptest
