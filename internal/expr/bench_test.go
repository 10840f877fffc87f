package expr

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// BenchmarkFamilies evaluates an everyday expression of each family on a document of some 300 bytes.
func BenchmarkFamilies(b *testing.B) {
	doc := bson.MustDoc(`{_id: ObjectId("65e07bd50123456789abcdef"), name: "Ada Lovelace", city: "London", qty: 12, price: 9.99, big: NumberLong("123456789012"),
		at: ISODate("2024-02-29T12:30:45.678Z"), tags: ["red", "green", "blue"], scores: [82, 91, 77, 64], address: {street: "Main Street 1", zip: "12345"},
		items: [{sku: "a", n: 1}, {sku: "b", n: 2}], note: "a text that is somewhat longer than the other ones are", cost: NumberDecimal("12.50")}`)
	for _, c := range []struct{ family, text string }{
		{"field", `"$price"`},
		{"path", `"$address.zip"`},
		{"path over array", `"$items.n"`},
		{"compare", `{$gt: ["$qty", 10]}`},
		{"boolean", `{$and: [{$gt: ["$qty", 10]}, {$eq: ["$city", "London"]}]}`},
		{"arith int", `{$add: ["$qty", 1]}`},
		{"arith double", `{$multiply: ["$price", "$qty"]}`},
		{"arith decimal", `{$add: ["$cost", "$cost"]}`},
		{"subtract", `{$subtract: ["$qty", 3]}`},
		{"trig", `{$sin: "$price"}`},
		{"conditional", `{$cond: [{$gte: ["$qty", 10]}, "$name", "$city"]}`},
		{"concat", `{$concat: ["$name", ", ", "$city"]}`},
		{"toUpper", `{$toUpper: "$name"}`},
		{"substr", `{$substrCP: ["$name", 0, 3]}`},
		{"regex", `{$regexMatch: {input: "$name", regex: "^Ada"}}`},
		{"size", `{$size: "$tags"}`},
		{"elemAt", `{$arrayElemAt: ["$scores", 1]}`},
		{"in", `{$in: ["blue", "$tags"]}`},
		{"map", `{$map: {input: "$scores", in: {$add: ["$$this", 1]}}}`},
		{"filter", `{$filter: {input: "$scores", cond: {$gt: ["$$this", 80]}}}`},
		{"reduce", `{$reduce: {input: "$scores", initialValue: 0, in: {$add: ["$$value", "$$this"]}}}`},
		{"set", `{$setUnion: ["$tags", ["red", "black"]]}`},
		{"sum", `{$sum: "$scores"}`},
		{"object", `{a: "$qty", b: {$add: ["$qty", 1]}}`},
		{"mergeObjects", `{$mergeObjects: ["$address", {x: 1}]}`},
		{"year", `{$year: "$at"}`},
		{"dateToString", `{$dateToString: {date: "$at", format: "%Y-%m-%d"}}`},
		{"dateTrunc zone", `{$dateTrunc: {date: "$at", unit: "day", timezone: "Europe/Berlin"}}`},
		{"dateFromString", `{$dateFromString: {dateString: "2024-02-29T12:30:45Z", onNull: "$at"}}`},
		{"toInt", `{$toInt: "$price"}`},
		{"toString", `{$toString: "$big"}`},
		{"let", `{$let: {vars: {x: "$qty"}, in: {$add: ["$$x", "$$x"]}}}`},
	} {
		b.Run(c.family, func(b *testing.B) {
			p := testParser()
			e, err := p.Parse(bson.MustParse(c.text), nil)
			if err != nil {
				b.Fatal(err)
			}
			env := p.NewEnv()
			env.Root = doc
			b.ReportAllocs()
			for b.Loop() {
				env.Reset()
				if _, err := e.Eval(env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParse parses what a small pipeline has.
func BenchmarkParse(b *testing.B) {
	v := bson.MustParse(`{$cond: [{$gte: ["$qty", 10]}, {$concat: ["$name", ", ", "$city"]}, {$toString: {$add: ["$qty", 1]}}]}`)
	p := testParser()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Parse(v, nil); err != nil {
			b.Fatal(err)
		}
	}
}
