package ldap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// Limits of a mapping.
const (
	maxMappingBytes = 64 << 10
	maxRules        = 100
)

// mapping makes of what a client says that it is called what the directory calls it. The first rule that takes the whole of the name holds.
type mapping []rule

// rule makes of a name that it takes another one, by a substitution or a search, in which {0}, {1}, … are the groups of the match.
type rule struct {
	match        *regexp.Regexp
	substitution string
	query        *search
}

// parseMapping reads a list of rules in JSON.
func parseMapping(text string) (mapping, error) {
	if text == "" {
		return nil, nil
	}
	fail := func(format string, args ...any) (mapping, error) {
		return nil, fmt.Errorf("security.ldap.userToDNMapping: "+format, args...)
	}
	if len(text) > maxMappingBytes {
		return fail("it has more than %d bytes", maxMappingBytes)
	}
	var rules []struct {
		Match        *string `json:"match"`
		Substitution *string `json:"substitution"`
		Query        *string `json:"ldapQuery"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&rules); err != nil {
		return fail("%w", err)
	}
	if len(rules) == 0 || len(rules) > maxRules {
		return fail("it has %d rules; it may have 1 to %d", len(rules), maxRules)
	}
	m := make(mapping, 0, len(rules))
	for i, r := range rules {
		if r.Match == nil || (r.Substitution == nil) == (r.Query == nil) {
			return fail("rule %d needs match, and either substitution or ldapQuery", i)
		}
		if _, err := regexp.Compile(*r.Match); err != nil {
			return fail("rule %d: %w", i, err)
		}
		re, err := regexp.Compile(`\A(?:` + *r.Match + `)\z`)
		if err != nil {
			return fail("rule %d: %w", i, err)
		}
		out := rule{match: re}
		text := ""
		if r.Query != nil {
			if out.query, err = parseSearch(*r.Query); err != nil {
				return fail("rule %d: %w", i, err)
			}
			text = *r.Query
		} else {
			out.substitution = *r.Substitution
			text = out.substitution
		}
		if missing := missingGroup(text, re.NumSubexp()); missing != "" {
			return fail("rule %d: match has no group %s", i, missing)
		}
		m = append(m, out)
	}
	return m, nil
}

// missingGroup is a place of a text for a group that there is not, "" where there is none.
func missingGroup(text string, groups int) string {
	for _, place := range regexp.MustCompile(`\{[0-9]+\}`).FindAllString(text, -1) {
		if n, err := strconv.Atoi(place[1 : len(place)-1]); err != nil || n >= groups {
			return place
		}
	}
	return ""
}

// asks says whether somebody has to be bound to make a name.
func (m mapping) asks() bool {
	for _, r := range m {
		if r.query != nil {
			return true
		}
	}
	return false
}

// name is what the directory calls a user. What the client has said can be no more than a value in it.
func (m mapping) name(c *ldap.Conn, user string) (string, error) {
	if m == nil {
		return user, nil
	}
	for _, r := range m {
		groups := r.match.FindStringSubmatch(user)
		if groups == nil {
			continue
		}
		places := func(escape func(string) string) []string {
			var out []string
			for i, g := range groups[1:] {
				out = append(out, "{"+strconv.Itoa(i)+"}", escape(g))
			}
			return out
		}
		if r.query == nil {
			return strings.NewReplacer(places(ldap.EscapeDN)...).Replace(r.substitution), nil
		}
		found, err := r.query.run(c, places)
		if err != nil {
			return "", err
		}
		if len(found) != 1 {
			return "", ErrNoUser
		}
		return found[0], nil
	}
	return "", ErrNoUser
}

// search is a question in the form of RFC 4516, without a server: base?attributes?scope?filter. What it finds are the values of the
// attributes, or the names of the entries where it names none. Places in it are filled at each run.
type search struct {
	base, filter string
	attributes   []string
	scope        int
}

func parseSearch(text string) (*search, error) {
	parts := strings.Split(text, "?")
	if len(parts) > 4 {
		return nil, errors.New("a query has the form base?attributes?scope?filter")
	}
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil {
			return nil, err
		}
		parts[i] = plain
	}
	parts = append(parts, "", "", "")
	s := &search{base: strings.TrimPrefix(parts[0], "/"), filter: parts[3]}
	if parts[1] != "" {
		s.attributes = strings.Split(parts[1], ",")
	}
	switch parts[2] {
	case "", "base":
		s.scope = ldap.ScopeBaseObject
	case "one":
		s.scope = ldap.ScopeSingleLevel
	case "sub":
		s.scope = ldap.ScopeWholeSubtree
	default:
		return nil, fmt.Errorf("a query has the scope base, one or sub, not %q", parts[2])
	}
	if s.filter == "" {
		s.filter = "(objectClass=*)"
	}
	if _, err := ldap.CompileFilter(s.filter); err != nil {
		return nil, err
	}
	return s, nil
}

// run asks. places gives what stands where, escaped for where it stands: a name is a value in the filter, and in the base it is a name as a
// whole or a value in one.
func (s *search) run(c *ldap.Conn, places func(escape func(string) string) []string) ([]string, error) {
	base := s.base
	whole := places(func(v string) string { return v })
	isName := false
	for i := 0; i < len(whole); i += 2 {
		if whole[i] == base {
			base, isName = whole[i+1], true
			break
		}
	}
	if !isName {
		base = strings.NewReplacer(places(ldap.EscapeDN)...).Replace(base)
	}
	filter := strings.NewReplacer(places(ldap.EscapeFilter)...).Replace(s.filter)
	attributes := s.attributes
	if attributes == nil {
		attributes = []string{"1.1"} // none
	}
	r, err := c.Search(ldap.NewSearchRequest(base, s.scope, ldap.NeverDerefAliases, maxEntries, 0, false, filter, attributes, nil))
	if err != nil {
		if ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject) {
			return nil, nil
		}
		return nil, fmt.Errorf("the directory does not answer a query: %w", code(err))
	}
	var out []string
	for _, e := range r.Entries {
		if s.attributes == nil {
			out = append(out, e.DN)
		}
		for _, a := range e.Attributes {
			out = append(out, a.Values...)
		}
		if len(out) > maxValues {
			return nil, fmt.Errorf("the directory tells of more than %d values", maxValues)
		}
	}
	return out, nil
}
