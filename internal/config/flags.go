package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Flags is the command line's side of the options.
type Flags struct {
	set       *pflag.FlagSet
	file      string
	verbosity int
	params    []string
}

// NewFlags declares a flag on set for each option that has one.
func NewFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set}
	set.StringVarP(&f.file, "config", "f", "", "`file` to read settings from, YAML in mongod.conf's shape; flags win over it")
	set.CountVarP(&f.verbosity, "verbose", "v", "log more; repeat it for still more, up to -vvvvv")
	set.StringArrayVar(&f.params, "setParameter", nil, "`name=value` of a server parameter; repeat it for several")
	for _, o := range options() {
		switch {
		case o.flag == "":
		case strings.HasPrefix(o.flag, negation):
			set.Bool(o.flag[len(negation):], false, o.help)
		case o.isSwitch():
			set.Bool(o.flag, false, o.help)
		default:
			set.String(o.flag, "", o.help)
		}
	}
	for _, d := range deprecatedOptions() {
		if d.isSwitch() {
			set.Bool(d.flag, false, "")
		} else {
			set.String(d.flag, "", "")
		}
		_ = set.MarkHidden(d.flag) // it is there
	}
	return f
}

// settings are the flags that were given, in the order of the table.
func (f *Flags) settings() ([]setting, error) {
	var out []setting
	for _, o := range options() {
		name, negated := strings.CutPrefix(o.flag, negation)
		if name == "" || !f.set.Changed(name) {
			continue
		}
		value := f.set.Lookup(name).Value.String()
		if negated {
			value = strconv.FormatBool(value == "false")
		}
		out = append(out, setting{o.key, value})
	}
	for _, d := range deprecatedOptions() {
		if f.set.Changed(d.flag) {
			out = append(out, setting{d.key, f.set.Lookup(d.flag).Value.String()})
		}
	}
	out, err := modernize(out)
	if err != nil {
		return nil, err
	}
	if f.set.Changed("verbose") {
		out = append(out, setting{"systemLog.verbosity", strconv.Itoa(min(f.verbosity, maxVerbosity))})
	}
	if f.set.Changed("config") && f.file == "" {
		return nil, errorf("Missing value for option \"config\"")
	}
	for _, p := range f.params {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, errorf("Illegal option assignment: \"%s\": --setParameter needs name=value", p)
		}
		key := setParameterPrefix + name
		out = slices.DeleteFunc(out, func(s setting) bool { return s.key == key })
		out = append(out, setting{key, value})
	}
	return plainAuthorization(out)
}
