// Package failpoint has tests turn on, by name, what goes wrong as a rule only now and then: a Point is a place that asks
// whether it is on, and what for. It does not know what any of them does.
package failpoint
