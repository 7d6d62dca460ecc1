// Package view shows people what the agent does with its pods: with a line for each change, and at the end
// of a shutdown with its report. [Page] shows what one has done as a page.
//
// All methods of a [View] may be called concurrently. Output that cannot be written is lost: a drain does
// not stop for a closed terminal.
package view
