// Package view shows people what the agent does with its pods: with a line for each change, and at the end
// of a shutdown with a table and sentences. [Plan] shows what a shutdown would do, [Report] and [Page] what one has done.
//
// All methods of a [View] may be called concurrently. Output that cannot be written is lost: a drain does
// not stop for a closed terminal. KUBEGRACE_GOLDEN=1 go test writes the files of testdata anew.
package view
