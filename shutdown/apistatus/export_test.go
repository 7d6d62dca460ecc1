package apistatus

// TwoWayPatch exports twoWayPatch for any type.
var TwoWayPatch = twoWayPatch[any]
