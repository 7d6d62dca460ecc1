// Package deptest keeps the import rules of kubegrace: who may import whom, what
// nobody may reach, and what an embedder inherits, whose own module has to build. The rules
// are the tables of its tests; the code here reads the import graph that they are held
// against.
package deptest
