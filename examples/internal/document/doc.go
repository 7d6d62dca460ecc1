// Package document reads Kubernetes objects from files and says exactly what is
// wrong with them:
//
//	docs, err := document.Read("pods/web.yaml")
//	for _, doc := range docs {
//		pod, err := document.Decode[v1.Pod](doc)
//		// pods/web.yaml (document 2): spec.containers[0].imag: Invalid value: "nginx": unknown field
//	}
//
// # Concurrency properties
//
// Functions only, without state.
//
// # Failure modes
//
// An error names the file, the document where the file has several, and, once the
// text could be parsed, the field and its value. All unknown fields of a document
// are reported at once, joined. What is too large to be read within some hundred MB of
// memory is an error that names the limit: a file, a document, what the aliases of a
// document stand for, or the number of documents.
//
// # Testing
//
// [Parse] takes the text itself, so that a test needs no file.
package document
