package index

import (
	"crypto/md5"
	"encoding/hex"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// A word longer than maxWordBytes is in a key as so many bytes of it and the MD5 of all.
const maxWordBytes = 224

// Text is what the words of a document score in a text index.
func (d *Definition) Text() *textsearch.Spec { return d.text }

// Weights are what each text of a document counts in a text index, by field.
func (d *Definition) Weights() bson.Doc { return d.weights }

// WordField is the number of the field of a text index's keys that is the word; the next one is its score.
func (d *Definition) WordField() int {
	for i, f := range d.Fields {
		if f.Kind == Text {
			return i
		}
	}
	panic("index: no text index")
}

// isOneText says whether d is a text index that was asked for with one field.
func (d *Definition) isOneText() bool {
	return d.Kind == Text && len(d.Fields) == 2 && d.weights.Count() == 1
}

// textRoots are the fields of a document that the words, their languages and the other values of its keys come from.
func (d *Definition) textRoots() (roots []string) {
	for it := d.weights.Iter(); it.Next(); {
		f, err := parseField(it.Key(), bson.Int32(1))
		if err != nil || f.Parts[len(f.Parts)-1] == textsearch.Wildcard {
			return nil
		}
		roots = append(roots, f.Parts[0])
	}
	for _, f := range d.Fields {
		if f.Kind == Ordered {
			roots = append(roots, f.Parts[0])
		}
	}
	return append(roots, d.override)
}

// textKeys adds a key for each word of doc, with what it scores, among the values of the ordered fields.
func (d *Definition) textKeys(doc bson.Doc, k *Keys) (err error) {
	if k.terms, err = d.text.Terms(k.terms[:0], doc, MaxKeys); err != nil {
		return err
	}
	if len(k.terms) > MaxKeys {
		return d.tooManyKeys()
	}
	k.values = k.values[:0]
	for i := range d.Fields {
		v := bson.Missing
		if d.Fields[i].Kind == Ordered {
			if v, err = besideText(doc, &d.Fields[i]); err != nil {
				return err
			}
		}
		if v.IsMissing() {
			v = bson.Null
		}
		k.values = append(k.values, v)
	}
	word := d.WordField()
	for _, t := range k.terms {
		k.values[word], k.values[word+1] = WordValue(t.Word), bson.Double(t.Score)
		if err := k.add(d, k.values); err != nil {
			return err
		}
	}
	if len(k.terms) > 1 {
		k.Multikey[word] |= 1
	}
	return nil
}

// WordValue is a word as keys have it.
func WordValue(word string) bson.Value {
	if len(word) <= maxWordBytes {
		return bson.String(word)
	}
	sum := md5.Sum([]byte(word))
	return bson.String(word[:maxWordBytes] + hex.EncodeToString(sum[:]))
}

// besideText is the value of an ordered field of a text index, which must not go through an array but by position.
func besideText(doc bson.Doc, f *Field) (bson.Value, error) {
	v := doc.Value()
	for i, part := range f.Parts {
		switch v.Type {
		case bson.TypeObject, bson.TypeArray:
			v = v.Doc().Lookup(part)
		default:
			return bson.Missing, nil
		}
		if v.Type == bson.TypeArray && (i+1 == len(f.Parts) || !isPosition(f.Parts[i+1])) {
			return v, mongoerr.New(mongoerr.CannotBuildIndexKeys, "Field '%s' of text index contains an array in document: %s", f.Path, doc)
		}
	}
	return v, nil
}
