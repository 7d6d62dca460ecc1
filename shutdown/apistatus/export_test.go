package apistatus

// TwoWayPatch is twoWayPatch for what cannot be written as JSON.
var TwoWayPatch = twoWayPatch[any]
