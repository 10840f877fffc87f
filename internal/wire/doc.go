// Package wire reads and writes the frames of MongoDB's wire protocol: lengths, sections, checksums and compression.
// It must not know any command, nor what a document means.
package wire
