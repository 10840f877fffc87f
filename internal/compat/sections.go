package compat

import (
	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/update"
)

func sections() []section {
	return []section{
		{key: "query", title: "Query operators", rows: queryRows(),
			unknown: `{find: "c", filter: {a: {%s: 1}}}`, code: mongoerr.BadValue},
		{key: "projection", title: "Projection operators", intro: "Expressions may stand in projections too.",
			unknown: `{find: "c", projection: {a: {%s: 1}}}`, code: 31325},
		{key: "update", title: "Update operators", intro: "Updates may be pipelines of $addFields, $project, $replaceRoot, $replaceWith, $set and $unset too.",
			rows: updateRows(), unknown: `{update: "c", updates: [{q: {}, u: {%s: {a: 1}}}]}`, code: mongoerr.FailedToParse},
		{key: "expression", title: "Expressions", rows: expressionRows(),
			unknown: `{aggregate: "c", pipeline: [{$project: {x: {%s: 1}}}], cursor: {}}`, code: 31325},
		{key: "accumulator", title: "Accumulators of $group", rows: accumulatorRows(func(op accumulator.Operator) bool { return op.Group != nil }),
			unknown: `{aggregate: "c", pipeline: [{$group: {_id: 1, x: {%s: 1}}}], cursor: {}}`, code: 15952},
		{key: "window", title: "Functions of $setWindowFields", rows: accumulatorRows(func(op accumulator.Operator) bool { return op.Window != nil }),
			unknown: `{aggregate: "c", pipeline: [{$setWindowFields: {sortBy: {a: 1}, output: {x: {%s: 1}}}}], cursor: {}}`, code: mongoerr.FailedToParse},
		{key: "stage", title: "Stages", rows: stageRows(),
			unknown: `{aggregate: "c", pipeline: [{%s: {}}], cursor: {}}`, code: 40324},
		{key: "command", title: "Commands", rows: commandRows(), unknown: `{%s: 1}`, code: mongoerr.CommandNotFound},
	}
}

func queryRows() []row {
	var out []row
	for _, op := range match.NewParser().Operators() {
		out = append(out, row{op.Name, op.Since, op.Doc})
	}
	return out
}

func updateRows() []row {
	var out []row
	for _, op := range update.Operators() {
		out = append(out, row{op.Name, op.Since, op.Doc})
	}
	return out
}

func expressionRows() []row {
	var out []row
	for _, op := range expr.Operators() {
		if !op.Internal {
			out = append(out, row{op.Name, op.Since, op.Doc})
		}
	}
	return out
}

func accumulatorRows(want func(accumulator.Operator) bool) []row {
	var out []row
	for _, op := range accumulator.Operators() {
		if want(op) {
			out = append(out, row{op.Name, op.Since, op.Doc})
		}
	}
	return out
}

func stageRows() []row {
	var out []row
	for _, s := range pipeline.Rows() {
		out = append(out, row{s.Name, s.Since, s.Doc})
	}
	return out
}

func commandRows() []row {
	var out []row
	for _, c := range command.Rows() {
		out = append(out, row{name: c.Name, doc: c.Doc})
	}
	return out
}
