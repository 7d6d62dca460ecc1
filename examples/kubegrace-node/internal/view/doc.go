// Package view shows people what the agent does with its pods. A [View] prints a line when a pod is told to stop
// and when it has stopped, and at the end of a shutdown its report. [Page] shows as an HTML page what a shutdown
// has done.
//
// All methods of a [View] may be called concurrently. Output that cannot be written is lost, so that a closed
// terminal does not stop a drain.
package view
