package exec

import "github.com/ebbdb/ebb/internal/mongoerr"

// spilling says that a stage is past its memory: it may go on in files, or the error tells why not.
func (op *Op) spilling(stage string) error {
	if !op.AllowDiskUse {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed,
			"Exceeded memory limit for %s, but didn't allow external spilling; pass allowDiskUse:true to opt in", stage)
	}
	op.spilled()
	return nil
}
