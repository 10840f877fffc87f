package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// CheckReadConcern refuses a read concern ("local", "majority" …) that a stage cannot run with. It goes by the names of stages alone, before
// they are parsed: MongoDB finds a read concern wrong before what is wrong in a stage, or that a stage is for servers with a search process.
func CheckReadConcern(stages bson.Value, level string) error {
	return eachName(stages, func(stage string) error { return readConcernOf(stage, level) })
}

func readConcernOf(stage, level string) error {
	switch stage {
	case "$currentOp", "$listLocalSessions", "$planCacheStats", "$listClusterCatalog", "$listCatalog", "$querySettings", "$listSampledQueries",
		"$search", "$searchBeta", "$searchMeta", "$vectorSearch", "$listSearchIndexes":
		if level != "local" {
			return mongoerr.New(mongoerr.InvalidOptions, "Aggregation stage %s cannot run with a readConcern other than 'local', or in a multi-document transaction. Current readConcern: %s",
				stage, level)
		}
	case "$changeStream":
		if level != "majority" {
			return mongoerr.New(mongoerr.InvalidOptions, "Aggregation stage %s cannot run with a readConcern other than 'majority', or in a multi-document transaction. Current readConcern: %s",
				stage, level)
		}
	case "$ebbTTL":
		if level == "snapshot" {
			return mongoerr.New(mongoerr.InvalidOptions, "Aggregation stage %s cannot run with the readConcern 'snapshot', or in a multi-document transaction", stage)
		}
	case "$out", "$merge":
		if level == "linearizable" {
			return mongoerr.New(mongoerr.InvalidOptions, "%s cannot be used with a 'linearizable' read concern level", stage)
		}
	}
	return nil
}

// CheckTransaction refuses stages that cannot be part of a transaction: those that write, that are about the server, and $unionWith.
func (p *Pipeline) CheckTransaction() error {
	for _, s := range p.Stages {
		if err := transactionOf(s.Name()); err != nil {
			return err
		}
		for _, sub := range subPipelines(s) {
			if err := sub.CheckTransaction(); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckTransactionNames is CheckTransaction by the names of stages alone, before they are parsed.
func CheckTransactionNames(stages bson.Value) error { return eachName(stages, transactionOf) }

func transactionOf(stage string) error {
	switch stage {
	case "$out", "$merge", "$unionWith", "$changeStream", "$ebbTTL", "$collStats", allCollectionStats, "$indexStats", "$planCacheStats", "$currentOp", "$queryStats", "$querySettings",
		"$listSessions", "$listLocalSessions", "$listCatalog", "$listClusterCatalog", "$listSampledQueries", "$listSearchIndexes",
		"$search", "$searchBeta", "$searchMeta", "$vectorSearch":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Stage not supported inside of a multi-document transaction: %s", stage)
	}
	return nil
}

// eachName asks check for the name of each stage of a pipeline that is not parsed yet.
func eachName(stages bson.Value, check func(stage string) error) error {
	for it := stages.Doc().Iter(); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeObject {
			if err := check(v.Doc().FirstKey()); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckStable refuses what is outside of the first version of the stable API.
func (p *Pipeline) CheckStable() error {
	for _, s := range p.Stages {
		unstable := isUnstable(s.Name())
		switch s := s.(type) {
		case *ChangeStream:
			if err := s.checkStable(); err != nil {
				return err
			}
		case *Sort:
			if err := expr.CheckStableMeta(s.Pattern.Meta()...); err != nil {
				return err
			}
		}
		if s.Name() == "$collStats" {
			for it := s.Spec().Doc().Iter(); it.Next(); {
				unstable = unstable || it.Key() != "count"
			}
		}
		if unstable {
			return notStable(s.Name())
		}
		for _, sub := range subPipelines(s) {
			if err := sub.CheckStable(); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckStableNames is CheckStable by the names of stages alone, before anything else is looked at.
func CheckStableNames(stages bson.Value) error {
	return eachName(stages, func(stage string) error {
		if isUnstable(stage) {
			return notStable(stage)
		}
		return nil
	})
}

func isUnstable(stage string) bool {
	switch stage {
	case allCollectionStats, "$currentOp", "$ebbTTL", "$indexStats", "$listLocalSessions", "$listSessions", "$planCacheStats", "$search", "$searchMeta", "$vectorSearch",
		"$listSearchIndexes", "$listCatalog", "$listClusterCatalog", "$querySettings", "$queryStats", "$rankFusion", "$score", "$scoreFusion", "$changeStreamSplitLargeEvent":
		return true
	}
	return false
}

// checkStable refuses the options that are outside of the stable API.
func (s *ChangeStream) checkStable() error {
	for it := s.Spec().Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "resumeAfter", "startAfter", "startAtOperationTime", "fullDocument", "fullDocumentBeforeChange", "allChangesForCluster":
		default:
			return mongoerr.New(mongoerr.APIStrictError, "BSON field '$changeStream.%s' is not allowed with apiStrict:true.", it.Key())
		}
	}
	return nil
}

func notStable(stage string) error {
	return mongoerr.New(mongoerr.APIStrictError, "stage %s is not allowed with 'apiStrict: true' in API Version 1", stage)
}
