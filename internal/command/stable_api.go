package command

import (
	"cmp"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func (op *Op) readAPIVersion(a *Args) {
	version, given := a.String("apiVersion")
	strict, deprecation := a.Has("apiStrict"), a.Has("apiDeprecationErrors")
	op.versioned, op.APIStrict = given, a.Bool("apiStrict", false)
	deprecationErrors := a.Bool("apiDeprecationErrors", false)
	switch {
	case given && version == "2" && !op.takesVersion2():
		a.Fail(mongoerr.New(mongoerr.APIVersionError, "Cannot accept API version 2"))
	case given && version != "1" && version != "2":
		a.Fail(mongoerr.New(mongoerr.APIVersionError, "API version must be \"1\""))
	case !given && (strict || deprecation):
		a.Fail(mongoerr.New(4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion"))
	case op.APIStrict:
		a.Fail(op.checkStable(a, version))
	}
	if deprecationErrors && version == "2" && op.Command.Name == deprecatedIn2 {
		a.Fail(mongoerr.New(mongoerr.APIDeprecationError, "Provided apiDeprecationErrors:true, but the command %s is deprecated in API Version 2.", op.Name()))
	}
}

// version2 and deprecatedIn2 are the commands for tests that are in the second version of the stable API. The second is in the first version, too.
const version2, deprecatedIn2 = "testVersion2", "testDeprecationInVersion2"

// requireAPIName is the parameter that has clients say a version of the stable API with each command, and acceptAPI2Name the one that lets tests
// say a second version, in which there are nothing but commands for tests.
const requireAPIName, acceptAPI2Name = "requireApiVersion", "acceptApiVersion2"

// takesVersion2 says whether a command may say the second version of the stable API. Only a server for tests knows the parameter.
func (op *Op) takesVersion2() bool {
	p := op.Params.Lookup(acceptAPI2Name)
	return p != nil && p.Get().Bool()
}

// checkSaysAPI refuses a client's command that says no version of the stable API where all have to. Other members of the replica set, the server
// itself, its console, its metrics and what an applyOps holds need not.
func (op *Op) checkSaysAPI() error {
	if op.versioned || !op.requireAPI.Get().Bool() || op.Conn.ID == 0 || op.Conn.own || op.Conn.applying > 0 || op.Conn.IsMember() {
		return nil
	}
	return mongoerr.New(498870, "The apiVersion parameter is required, please configure your MongoClient's API version")
}

// apiParameters is what the command says of the stable API, as errors show it; "" where it says nothing.
func (op *Op) apiParameters() string {
	if !op.versioned {
		return ""
	}
	b := bson.Build()
	for _, name := range [...]string{"apiVersion", "apiStrict", "apiDeprecationErrors"} {
		if v := op.Args.Document().Lookup(name); !v.IsNullish() {
			b.Value(name, v)
		}
	}
	return b.Doc().String()
}

// checkAPI refuses a command that says something else of the stable API than what it goes on with: before is what that said, and of what it is.
func (op *Op) checkAPI(before, of string) error {
	now := op.apiParameters()
	if now == before {
		return nil
	}
	return mongoerr.New(mongoerr.APIMismatchError, "API parameter mismatch: %s used params %s, the %s used %s", op.Command.Name, cmp.Or(now, "{}"), of, cmp.Or(before, "{}"))
}

// checkStable refuses commands and options that are outside of the version of the stable API.
func (op *Op) checkStable(a *Args, version string) error {
	if version == "1" && !op.Command.stable() || version == "2" && op.Command.Name != version2 && op.Command.Name != deprecatedIn2 {
		return mongoerr.New(mongoerr.APIStrictError, "Provided apiStrict:true, but the command %s is not in API Version %s. Information on supported commands and migrations in API Version %s can be found at https://dochub.mongodb.org/core/manual-versioned-api.", op.Name(), version, version)
	}
	for _, option := range op.Command.unstableOptions() {
		if !a.peek(option).IsMissing() {
			return notStable(op.Command.Name + "." + option)
		}
	}
	return nil
}

func notStable(field string) error {
	return mongoerr.New(mongoerr.APIStrictError, "BSON field '%s' is not allowed with apiStrict:true.", field)
}

// stable says whether the command is in version 1 of the stable API.
func (c *Command) stable() bool {
	switch c.Name {
	case "abortTransaction", "aggregate", "authenticate", "bulkWrite", "collMod", "commitTransaction", "count", "create", "createIndexes",
		"delete", "drop", "dropDatabase", "dropIndexes", "endSessions", "explain", "find", "findAndModify", "getMore", "hello", "insert",
		"killCursors", "listCollections", "listDatabases", "listIndexes", "ping", "refreshSessions", "saslContinue", "saslStart", "update", deprecatedIn2:
		return true
	}
	return false
}

// unstableOptions are those of a stable command that are not in the API.
func (c *Command) unstableOptions() []string {
	switch c.Name {
	case "aggregate":
		return []string{"explain", "isMapReduceCommand", "$_requestReshardingResumeToken", "runtimeConstants", "collectionUUID", "encryptionInformation"}
	case "count":
		return []string{"encryptionInformation", "mirrored"}
	case "create":
		return []string{"autoIndexId", "size", "max", "storageEngine", "indexOptionDefaults", "recordPreImages", "temp", "flags"}
	case "createIndexes":
		return []string{"ignoreUnknownIndexOptions", "collectionUUID"}
	case "delete":
		return []string{"collectionUUID", "encryptionInformation", "runtimeConstants"}
	case "find":
		return []string{"min", "max", "returnKey", "showRecordId", "tailable", "oplogReplay", "noCursorTimeout", "awaitData", "term", "readOnce",
			"allowSpeculativeMajorityRead", "$_requestResumeToken", "$_resumeAfter", "runtimeConstants", "collectionUUID", "encryptionInformation", "mirrored"}
	case "getMore":
		return []string{"term", "lastKnownCommittedOpTime"}
	case "insert", "update":
		return []string{"collectionUUID", "encryptionInformation"}
	}
	return nil
}

// checkStableIndexes refuses options of indexes that are outside of the stable API.
func checkStableIndexes(specs []bson.Doc) error {
	for _, spec := range specs {
		for _, option := range [...]string{"sparse", "storageEngine", "bucketSize", "dropDups", "prepareUnique"} {
			if !spec.Lookup(option).IsMissing() {
				return notStable("createIndexes.indexes." + option)
			}
		}
	}
	return nil
}
