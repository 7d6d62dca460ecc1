// Package logindfake is a small D-Bus broker with a scripted logind and systemd. Package logindtest offers
// the part that tests of other programs need. This package can also answer late, refuse, send invalid
// messages, and lack optional features: see [Lack]. [StartLogin1] and [StartSystemd1] add the scripted
// services to another bus.
package logindfake
