// Package document reads Kubernetes objects from files of YAML or JSON:
//
//	docs, err := document.Read("pods/web.yaml")
//	for _, doc := range docs {
//		err := json.Unmarshal(doc.JSON, &pod) // doc.Source names the document in errors
//	}
//
// # Concurrency properties
//
// The package has functions only, and no state.
//
// # Failure modes
//
// An error names the file and, from the second document on, the number of the document.
//
// # Testing
//
// [Parse] takes a text, so tests of it need no file.
package document
