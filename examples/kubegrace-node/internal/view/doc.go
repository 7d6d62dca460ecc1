// Package view shows people what the agent does with its pods. A [View] prints a line for each change, and at
// the end of a shutdown its report. [Page] shows as an HTML page what a shutdown has done.
//
// All methods of a [View] may be called concurrently. Output that cannot be written is lost, so that a closed
// terminal does not stop a drain.
package view
