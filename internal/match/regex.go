package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pcre"
)

// Regex matches strings in which a pattern is found, and regular expressions that are the same.
type Regex struct {
	Path             fieldpath.Path
	Pattern, Options string
	Compiled         *pcre.Regexp
}

func (p *parsing) regex(path fieldpath.Path, pattern, options string) (*Regex, error) {
	re, err := p.Exprs.Patterns().Compile(pattern, options)
	if err != nil {
		return nil, err
	}
	return &Regex{path, pattern, options, re}, nil
}

func (n *Regex) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *Regex) test(c run, v bson.Value) (bool, error) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return n.Compiled.Match(v.Str(), c.ask())
	case bson.TypeRegex:
		pattern, options := v.Regex()
		return pattern == n.Pattern && options == n.Options, nil
	}
	return false, nil
}

// regexValue parses a regular expression that stands as a value.
func (p *parsing) regexValue(path fieldpath.Path, v bson.Value) (*Regex, error) {
	pattern, options := v.Regex()
	return p.regex(path, pattern, options)
}

// parseRegex parses $regex together with the $options beside it.
func parseRegex(p *parsing, path fieldpath.Path, _ bson.Value, beside bson.Doc) (Node, error) {
	var pattern, options string
	for it := beside.Iter(); it.Next(); {
		v := it.Value()
		switch it.Key() {
		case "$regex":
			switch v.Type {
			case bson.TypeString:
				pattern = v.Str()
			case bson.TypeRegex:
				var own string
				if pattern, own = v.Regex(); own == "" {
					break
				}
				if options != "" {
					return nil, mongoerr.New(51074, "options set in both $regex and $options")
				}
				options = own
			default:
				return nil, badValue("$regex has to be a string")
			}
		case "$options":
			if v.Type != bson.TypeString {
				return nil, badValue("$options has to be a string")
			}
			if options != "" {
				return nil, mongoerr.New(51075, "options set in both $regex and $options")
			}
			options = v.Str()
		}
	}
	return p.regex(path, pattern, options)
}

func parseRegexOptions(_ *parsing, _ fieldpath.Path, _ bson.Value, beside bson.Doc) (Node, error) {
	if beside.Lookup("$regex").IsMissing() {
		return nil, badValue("$options needs a $regex")
	}
	return nil, nil
}
