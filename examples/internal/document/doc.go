// Package document reads Kubernetes objects from files and says exactly what is
// wrong with them:
//
//	docs, err := document.Read("pods/web.yaml")
//	for _, doc := range docs {
//		pod, err := document.Decode[v1.Pod](doc)
//		// pods/web.yaml (document 2): ... unknown object member name "imag" within "/spec/containers/0"
//	}
//
// # Concurrency properties
//
// The package has functions only, and no state.
//
// # Failure modes
//
// An error names the file and, from the second document on, the number of the document. If the text could be
// parsed, the error also names the field, as a JSON pointer such as "/spec/containers/0".
//
// # Testing
//
// [Parse] takes a text, so tests of it need no file.
package document
