package policy

// Reason is why a document expires by a rule, or why it does not.
type Reason uint8

// The reasons.
const (
	Expires Reason = iota
	NoSuchField
	NotADate
	OutsidePartialFilter
	BeforeEpoch
	TTLMinusOne
	NoDefault
	PastTheEndOfTime
)

// Code is the reason as a program tells it apart.
func (r Reason) Code() string {
	switch r {
	case Expires:
		return "expires"
	case NoSuchField:
		return "noSuchField"
	case NotADate:
		return "notADate"
	case OutsidePartialFilter:
		return "outsidePartialFilter"
	case BeforeEpoch:
		return "beforeEpoch"
	case TTLMinusOne:
		return "ttlMinusOne"
	case NoDefault:
		return "noDefault"
	case PastTheEndOfTime:
		return "pastTheEndOfTime"
	}
	return "unknown"
}

// String is the reason in words, for explanations.
func (r Reason) String() string {
	switch r {
	case Expires:
		return "expires"
	case NoSuchField:
		return "no such field, or nothing in its array"
	case NotADate:
		return "no value of the field is a date"
	case OutsidePartialFilter:
		return "excluded by the index's partial filter"
	case BeforeEpoch:
		return "the date in _id is before 1970"
	case TTLMinusOne:
		return "the document's ttl is -1"
	case NoDefault:
		return "the index has no default and the document no valid ttl"
	case PastTheEndOfTime:
		return "the deadline is past the end of time"
	}
	return "unknown"
}
