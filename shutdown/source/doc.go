// Package source defines the interface of a host that announces its shutdown and can be delayed with an
// inhibitor lock. It imports only the standard library. Packages shutdown/logind and shutdown/unixsocket have
// sources. The manager of package shutdown uses one, as does a program without pods with package
// shutdown/inhibitor.
//
// # Failures
//
//	what fails                       what happens                          what to do
//	the session is lost              Events is closed; the lock stays      connect, take a new lock, then
//	                                   held                                  close the old one (the manager
//	                                                                         and package inhibitor do)
//	the program loses its reference  the lock is held at least until the   keep the reference, and
//	  to a lock                        session ends                          close the lock
//	the host grants less than        RequestDelay returns a                raise the limit, or work with the
//	  requested                        *DelayCappedError                     granted time
//
// # Concurrency
//
// All methods of a [Source], a [Session] and an [Adopter] may be called concurrently.
//
// # Testing
//
// Package shutdown/shutdowntest has a fake host.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package source
