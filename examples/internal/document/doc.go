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
// An error names the file, from the second document on its number, and, once the text could be parsed, the
// field, as a JSON pointer.
//
// # Testing
//
// [Parse] takes a text, so that a test needs no file.
package document
