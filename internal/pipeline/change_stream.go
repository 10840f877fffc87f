package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/changestream"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/resumetoken"
)

// ChangeStream is $changeStream: it brings the events of what is watched, without an end.
type ChangeStream struct {
	written
	Watch changestream.Spec
}

func (s *ChangeStream) needs(*Dependencies) bool { return false }

// SplitLargeEvent is $changeStreamSplitLargeEvent: events that are too large for a document become several.
type SplitLargeEvent struct {
	written
	// After is the part behind which the stream goes on, if HasAfter.
	After    resumetoken.Token
	HasAfter bool
}

func (s *SplitLargeEvent) needs(*Dependencies) bool { return true }

var aTimestamp = []bson.Type{bson.TypeTimestamp}

// changeStreamFields are the fields of the stage's argument.
type changeStreamFields struct {
	resumeAfter, startAfter, startAt, fullDocument, before, cluster, expanded, system, raw bson.Value
}

func parseChangeStream(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(6188500, "$changeStream must take a nested object but found: $changeStream: %s", arg)
	}
	if !p.Watches {
		return nil, mongoerr.New(40573, "The $changeStream stage is only supported on replica sets")
	}
	if err := p.watchesHere(); err != nil {
		return nil, err
	}
	var f changeStreamFields
	var ignored bson.Value
	if err := readStrict("$changeStream", arg.Doc(),
		want{name: "resumeAfter", to: &f.resumeAfter, types: anObject}, want{name: "startAfter", to: &f.startAfter, types: anObject},
		want{name: "startAtOperationTime", to: &f.startAt, types: aTimestamp}, want{name: "fullDocument", to: &f.fullDocument, types: aString},
		want{name: "fullDocumentBeforeChange", to: &f.before, types: aString}, flag("allChangesForCluster", &f.cluster),
		flag("showExpandedEvents", &f.expanded), flag("showSystemEvents", &f.system),
		flag("showRawUpdateDescription", &f.raw), flag("showMigrationEvents", &ignored),
		flag("allowToRunOnConfigDB", &ignored), flag("allowToRunOnSystemNS", &ignored),
	); err != nil {
		return nil, err
	}
	s := &ChangeStream{written: written{"$changeStream", arg}}
	s.Watch.Expanded, s.Watch.System, s.Watch.RawUpdates = f.expanded.Truthy(), f.system.Truthy(), f.raw.Truthy()
	var err error
	if s.Watch.FullDocument, err = imageMode("fullDocument", f.fullDocument, "default", "updateLookup", "whenAvailable", "required"); err != nil {
		return nil, err
	}
	if s.Watch.BeforeChange, err = imageMode("fullDocumentBeforeChange", f.before, "off", "", "whenAvailable", "required"); err != nil {
		return nil, err
	}
	if s.Watch.NS, err = watched(p.NS, f.cluster.Truthy()); err != nil {
		return nil, err
	}
	return one(s), f.start(&s.Watch)
}

// flag is a boolean for which null is no value either.
func flag(name string, to *bson.Value) want { return want{name: name, to: to, flag: true} }

// watchesHere refuses the stage where it may not stand.
func (p *parsing) watchesHere() error {
	switch {
	case p.inside == "$lookup":
		return mongoerr.New(51047, "$changeStream is not allowed within a $lookup's sub-pipeline")
	case p.inside == "$unionWith":
		return mongoerr.New(31441, "$changeStream is not allowed within a $unionWith's sub-pipeline")
	case p.inside != "":
		return mongoerr.New(40600, "$changeStream is not allowed to be used within a %s stage", p.inside)
	case p.View:
		return mongoerr.New(mongoerr.OptionNotSupportedOnView, "$changeStream cannot be used in a view definition")
	}
	return nil
}

// imageMode reads one of the names, which are those of the modes in their order.
func imageMode(field string, v bson.Value, names ...string) (changestream.Mode, error) {
	if v.IsMissing() {
		return changestream.Off, nil
	}
	for i, name := range names {
		if name != "" && v.Str() == name {
			return changestream.Mode(i), nil
		}
	}
	return 0, mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '$changeStream.%s' is not a valid value.", v.Str(), field)
}

// watched is what a stream on ns is about; everything where the cluster is asked for.
func watched(ns namespace.NS, cluster bool) (namespace.NS, error) {
	if cluster {
		if ns.DB != "admin" || ns.Coll != "" {
			if ns.Coll == "" {
				ns.Coll = "$cmd.aggregate"
			}
			return ns, mongoerr.New(mongoerr.InvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found %s", ns)
		}
		return namespace.NS{}, nil
	}
	switch {
	case ns.DB == "admin" || ns.DB == "local" || ns.DB == "config":
		return ns, mongoerr.New(mongoerr.InvalidNamespace, "$changeStream may not be opened on the internal %s database", ns.DB)
	case ns.IsSystem():
		return ns, mongoerr.New(mongoerr.InvalidNamespace, "$changeStream may not be opened on the internal %s collection", ns)
	}
	return ns, nil
}

// start reads where the stream begins.
func (f *changeStreamFields) start(s *changestream.Spec) (err error) {
	if !f.resumeAfter.IsMissing() && !f.startAfter.IsMissing() {
		return mongoerr.New(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage")
	}
	given := f.resumeAfter
	if given.IsMissing() {
		given = f.startAfter
	}
	if !given.IsMissing() {
		if s.Start, err = resumetoken.Parse(given.Doc()); err != nil {
			return err
		}
		s.HasStart = true
	}
	if !f.startAt.IsMissing() {
		if s.HasStart {
			return mongoerr.New(40674, "Only one type of resume option is allowed, but multiple were found")
		}
		seconds, counter := f.startAt.Timestamp()
		s.Start, s.HasStart = resumetoken.HighWaterMark(uint64(seconds)<<32|uint64(counter)), true
	}
	switch {
	case !f.resumeAfter.IsMissing() && s.Start.FromInvalidate:
		return mongoerr.New(mongoerr.InvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification")
	case s.HasStart && s.Start.IsEvent && !s.Start.HasUUID && s.Single():
		return mongoerr.New(mongoerr.InvalidResumeToken, "Attempted to resume a single-collection stream, but the resume token does not include a UUID")
	}
	return nil
}

func parseChangeStreamSplit(p *parsing, arg bson.Value) ([]Stage, error) {
	if p.Watches && (arg.Type != bson.TypeObject || !arg.Doc().IsEmpty()) {
		return nil, mongoerr.New(7182800, "$changeStreamSplitLargeEvent spec should be an empty object")
	}
	if p.inside != "$facet" && (!p.Watches || p.inside != "") { // a $facet refuses the stage itself
		return nil, notInStream()
	}
	return one(&SplitLargeEvent{written: written{"$changeStreamSplitLargeEvent", arg}}), nil
}

func notInStream() error {
	return mongoerr.New(mongoerr.IllegalOperation, "$changeStreamSplitLargeEvent can only be used in a $changeStream pipeline")
}

// Changes is the stage that the pipeline begins with if it is one of a change stream; nil otherwise.
func (p *Pipeline) Changes() *ChangeStream {
	s, _ := p.First().(*ChangeStream)
	return s
}

// checkStream refuses the stages that a change stream may not have behind its first.
func (p *Pipeline) checkStream() error {
	changes := p.Changes()
	for i, s := range p.Stages {
		split, splits := s.(*SplitLargeEvent)
		switch {
		case changes == nil && splits:
			return notInStream()
		case changes == nil || i == 0:
			continue
		case splits && i < len(p.Stages)-1:
			return mongoerr.New(7182802, "$changeStreamSplitLargeEvent must be the last stage in the pipeline")
		case splits:
			changes.Watch.Splits = true
			split.After, split.HasAfter = changes.Watch.Start, changes.Watch.HasStart && changes.Watch.Start.Fragment >= 0
			continue
		}
		switch s.(type) {
		case *Match, *Project, *ReplaceRoot, *Redact:
		case *Count: // a $group and a $project
			return notPermitted("$group")
		default:
			return notPermitted(s.Name())
		}
	}
	return nil
}

func notPermitted(stage string) error {
	return mongoerr.New(mongoerr.IllegalOperation, "%s is not permitted in a $changeStream pipeline", stage)
}
