package auth

import (
	"net/netip"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Restrictions are those that a user or a role has: an address has to meet one of them.
type Restrictions []Restriction

// Restriction is where somebody has to come from, and where to. What is nil may be any.
type Restriction struct{ ClientSource, ServerAddress []netip.Prefix }

// maxRestrictions is how many addresses a user or role may name.
const maxRestrictions = 1000

// Allow says whether somebody from one address may use another. An address that is none (of a Unix socket) meets no restriction.
func (rs Restrictions) Allow(client, server netip.Addr) bool {
	if len(rs) == 0 {
		return true
	}
	for _, r := range rs {
		if lies(client, r.ClientSource) && lies(server, r.ServerAddress) {
			return true
		}
	}
	return false
}

func lies(a netip.Addr, within []netip.Prefix) bool {
	if within == nil {
		return true
	}
	a = a.Unmap()
	for _, p := range within {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// ParseRestrictions reads authenticationRestrictions; path is what errors call it.
func ParseRestrictions(path string, list bson.Doc) (Restrictions, error) {
	var all Restrictions
	n := 0
	for it := list.Iter(); it.Next(); {
		at := path + "." + it.Key()
		if it.Value().Type != bson.TypeObject {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type 'object'", at, it.Value().Type)
		}
		r, err := parseRestriction(at, it.Value().Doc())
		if err != nil {
			return nil, err
		}
		if n += len(r.ClientSource) + len(r.ServerAddress); n > maxRestrictions {
			return nil, mongoerr.New(mongoerr.BadValue, "authenticationRestrictions may name %d addresses at most", maxRestrictions)
		}
		all = append(all, r)
	}
	return all, nil
}

func parseRestriction(path string, d bson.Doc) (r Restriction, err error) {
	for it := d.Iter(); it.Next(); {
		switch it.Key() {
		case "clientSource":
			r.ClientSource, err = parseRanges(path+".clientSource", it.Value())
		case "serverAddress":
			r.ServerAddress, err = parseRanges(path+".serverAddress", it.Value())
		default:
			err = mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", path, it.Key())
		}
		if err != nil {
			return r, err
		}
	}
	if r.ClientSource == nil && r.ServerAddress == nil {
		return r, mongoerr.New(mongoerr.CollectionIsEmpty, "At least one of 'clientSource' or 'serverAddress' must be set")
	}
	return r, nil
}

// parseRanges reads addresses and CIDR ranges. The list may be empty: nobody meets it then.
func parseRanges(path string, v bson.Value) ([]netip.Prefix, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type 'array'", path, v.Type)
	}
	ranges := []netip.Prefix{}
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type 'string'", path, it.Key(), it.Value().Type)
		}
		p, err := parseRange(it.Value().Str())
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, p)
	}
	return ranges, nil
}

func parseRange(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return p, mongoerr.New(mongoerr.BadValue, "Invalid IP address in CIDR string")
		}
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, mongoerr.New(mongoerr.BadValue, "Invalid IP address in CIDR string")
	}
	return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
}

// Value shows them as they are stored.
func (rs Restrictions) Value() bson.Value {
	vs := make([]bson.Value, len(rs))
	for i, r := range rs {
		b := bson.Build()
		if r.ClientSource != nil {
			b.Strings("clientSource", ranges(r.ClientSource))
		}
		if r.ServerAddress != nil {
			b.Strings("serverAddress", ranges(r.ServerAddress))
		}
		vs[i] = b.Doc().Value()
	}
	return bson.ArrayOf(vs...)
}

// ranges are addresses in words: one that is no range is shown as one.
func ranges(ps []netip.Prefix) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		if out[i] = p.String(); p.IsSingleIP() {
			out[i] = p.Addr().String()
		}
	}
	return out
}
