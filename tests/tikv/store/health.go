// Package store holds what the build of the store needs beside its own sources: a service that tells of its health, without which clients take it
// for gone after the first failure.
package store

import (
	_ "google.golang.org/grpc/health"
	_ "google.golang.org/grpc/health/grpc_health_v1"
)
