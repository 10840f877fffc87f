// Package loosen has what a TTL hides not come back when the TTL hides less: made longer, taken away, made visible, or when all of them stop
// hiding (Loosener.StopHiding). What is hidden is deleted before, or made visible because a command says so, or the change is refused
// while expiry is held. Whoever changes a collection's definition takes the steps of a Change; it does not know what else they change.
package loosen
