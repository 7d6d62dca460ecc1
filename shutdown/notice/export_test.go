package notice

const (
	OriginEC2            = originEC2
	OriginGCEPreempted   = originGCEPreempted
	OriginGCEMaintenance = originGCEMaintenance
	OriginAzure          = originAzure
)
