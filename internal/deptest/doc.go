// Package deptest reads the import graph of kubegrace. Its tests have the rules: which
// package may import which, what no package may depend on, and how many packages a module
// that imports kubegrace gets.
package deptest
