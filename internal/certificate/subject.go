package certificate

import (
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// attribute is one part of a name, such as CN=ann.
type attribute struct {
	oid, value string
	// encoded says that the value is no string: it is the bytes of its encoding then.
	encoded bool
}

// name is a distinguished name as its certificate has it: relative names, each of one attribute or more.
type name [][]attribute

type attributeDER struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// relativeSET is a set, as its name says to package asn1.
type relativeSET []attributeDER

// parseName reads a name as it stands in a certificate.
func parseName(der []byte) (name, error) {
	var sets []relativeSET
	if rest, err := asn1.Unmarshal(der, &sets); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("a certificate's name cannot be read: %v", err)
	}
	var out name
	for _, set := range sets {
		var relative []attribute
		for _, a := range set {
			value, ok := text(a.Value)
			if !ok {
				value = hex.EncodeToString(a.Value.FullBytes)
			}
			relative = append(relative, attribute{a.Type.String(), value, !ok})
		}
		out = append(out, relative)
	}
	return out, nil
}

// text is a value that is a string.
func text(v asn1.RawValue) (s string, ok bool) {
	if v.Class == asn1.ClassUniversal && !v.IsCompound {
		switch v.Tag {
		case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, asn1.TagNumericString:
			return string(v.Bytes), true
		case asn1.TagT61String: // Latin-1, as everybody takes it
			var b strings.Builder
			for _, c := range v.Bytes {
				b.WriteRune(rune(c))
			}
			return b.String(), true
		case asn1.TagBMPString:
			units := make([]uint16, 0, len(v.Bytes)/2)
			for i := 0; i+1 < len(v.Bytes); i += 2 {
				units = append(units, uint16(v.Bytes[i])<<8|uint16(v.Bytes[i+1]))
			}
			return string(utf16.Decode(units)), true
		}
	}
	return "", false
}

// String is the name as MongoDB prints it, and as users of $external are called: RFC 2253, the last part first, with OpenSSL's short names.
func (n name) String() string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		relative := n[len(n)-1-i]
		for j := range relative {
			if j > 0 {
				b.WriteByte('+')
			}
			a := relative[len(relative)-1-j]
			b.WriteString(shortName(a.oid) + "=")
			if a.encoded {
				b.WriteString("#" + a.value)
			} else {
				b.WriteString(escape(a.value))
			}
		}
	}
	return b.String()
}

// escape is RFC 2253's: what has a meaning in a name, spaces at the ends, and each byte that is not ASCII.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 0x80:
			fmt.Fprintf(&b, `\%02X`, c)
			continue
		case strings.IndexByte(`,+"\<>;`, c) >= 0, i == 0 && (c == ' ' || c == '#'), i == len(s)-1 && c == ' ':
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// shortNames are OpenSSL's of the attributes that names are made of.
func shortNames() map[string]string {
	return map[string]string{
		"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
		"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.13": "description", "2.5.4.15": "businessCategory", "2.5.4.17": "postalCode",
		"2.5.4.20": "telephoneNumber", "2.5.4.41": "name", "2.5.4.42": "GN", "2.5.4.43": "initials", "2.5.4.44": "generationQualifier",
		"2.5.4.45": "x500UniqueIdentifier", "2.5.4.46": "dnQualifier", "2.5.4.65": "pseudonym", "2.5.4.97": "organizationIdentifier",
		"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.3": "mail", "0.9.2342.19200300.100.1.25": "DC",
		"1.2.840.113549.1.9.1": "emailAddress", "1.2.840.113549.1.9.2": "unstructuredName", "1.2.840.113549.1.9.8": "unstructuredAddress",
		"1.3.6.1.4.1.311.60.2.1.1": "jurisdictionL", "1.3.6.1.4.1.311.60.2.1.2": "jurisdictionST", "1.3.6.1.4.1.311.60.2.1.3": "jurisdictionC",
	}
}

func shortName(oid string) string {
	if short, ok := shortNames()[oid]; ok {
		return short
	}
	return oid
}

// readName reads a name in words: what String writes, with spaces allowed after each comma.
func readName(s string) ([]attribute, error) {
	var out []attribute
	for rest := s; ; {
		key, after, ok := strings.Cut(strings.TrimLeft(rest, " "), "=")
		oid := oidOf(key)
		if !ok || oid == "" {
			return nil, fmt.Errorf("DN contained an unknown OID %q: %q", key, s)
		}
		value, more, err := readValue(after)
		if err != nil {
			return nil, fmt.Errorf("%w: %q", err, s)
		}
		out = append(out, attribute{oid: oid, value: value})
		if more == "" {
			return out, nil
		}
		rest = more[1:]
	}
}

// oidOf is what an attribute is called by, "" where there is none of that name.
func oidOf(key string) string {
	for oid, short := range shortNames() {
		if strings.EqualFold(short, key) || oid == key {
			return oid
		}
	}
	return ""
}

// readValue reads up to a comma or plus sign that ends the value, which rest begins with.
func readValue(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ',', '+':
			return strings.TrimRight(b.String(), " "), s[i:], nil
		case '\\':
			if i+2 < len(s) {
				if pair, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
					b.Write(pair)
					i += 2
					continue
				}
			}
			if i++; i == len(s) {
				return "", "", fmt.Errorf("DN ends with an escape")
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", nil
}

// Members says which certificates are those of members of the cluster.
type Members struct {
	// Attributes are what the name of a member has, such as "O=Ebb,OU=members"; "": the same O, OU and DC as the server's own.
	Attributes string
	// ExtensionValue is what a member's certificate has in the extension for that, instead of a name.
	ExtensionValue string
}

// membership are the attributes of a name by which members know one another, in order.
func membership(all []attribute) []attribute {
	var out []attribute
	for _, a := range all {
		if short := shortName(a.oid); short == "O" || short == "OU" || short == "DC" {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, attribute.compare)
	return out
}

func (a attribute) compare(b attribute) int {
	if c := strings.Compare(a.oid, b.oid); c != 0 {
		return c
	}
	return strings.Compare(a.value, b.value)
}

// all are the attributes of all relative names.
func (n name) all() []attribute { return slices.Concat(n...) }

// isMember says whether a certificate of that name is a member's: it has the attributes that were asked for, and no others of their
// kinds, or those of the server's own name.
func (m Members) isMember(n, own name) bool {
	want, have := membership(own.all()), membership(n.all())
	if m.Attributes != "" {
		asked, err := readName(m.Attributes)
		if err != nil {
			return false
		}
		slices.SortFunc(asked, attribute.compare)
		want, have = asked, nil
		for _, a := range n.all() {
			if slices.ContainsFunc(asked, func(b attribute) bool { return a.oid == b.oid }) {
				have = append(have, a)
			}
		}
		slices.SortFunc(have, attribute.compare)
	}
	return len(want) > 0 && slices.Equal(want, have)
}
