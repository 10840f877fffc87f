package wire

import (
	"fmt"
	"slices"
)

// CompressorID is a compressor's number in OP_COMPRESSED.
type CompressorID uint8

// The compressors of the protocol. Noop leaves the bytes as they are; it is a client's way to test.
const (
	Noop   CompressorID = 0
	Snappy CompressorID = 1
	Zlib   CompressorID = 2
	Zstd   CompressorID = 3
	// Uncompressed is not sent: it asks for a message without OP_COMPRESSED around it.
	Uncompressed CompressorID = 255
)

// CompressorNames are the names hello negotiates, in the order of MongoDB's net.compression.compressors.
func CompressorNames() []string { return []string{"snappy", "zstd", "zlib", "noop"} }

// String is the compressor's name, as hello says it.
func (id CompressorID) String() string {
	switch id {
	case Noop:
		return "noop"
	case Snappy:
		return "snappy"
	case Zlib:
		return "zlib"
	case Zstd:
		return "zstd"
	case Uncompressed:
		return "uncompressed"
	}
	return fmt.Sprintf("compressor %d", uint8(id))
}

// CompressorNamed is the compressor with that name.
func CompressorNamed(name string) (CompressorID, bool) {
	for _, id := range []CompressorID{Noop, Snappy, Zlib, Zstd} {
		if id.String() == name {
			return id, true
		}
	}
	return Uncompressed, false
}

// maxExpansion is how many bytes one compressed byte can become, rounded up. A message that claims more lies, and is
// refused before memory is set aside for it.
//
// Snappy: a copy of 64 bytes takes 3. Zlib: deflate's limit is 1032. Zstd: a block is at most 128 KiB and takes 4.
func (id CompressorID) maxExpansion() int {
	switch id {
	case Noop:
		return 1
	case Snappy:
		return 22
	case Zlib:
		return 1032
	case Zstd:
		return 128 << 10 / 4
	}
	return 0
}

// parseCompressors turns names into a set; it is the caller's mistake when one is unknown.
func parseCompressors(names []string) ([]CompressorID, error) {
	var ids []CompressorID
	for _, name := range names {
		id, ok := CompressorNamed(name)
		if !ok {
			return nil, fmt.Errorf("invalid network message compressor specified in configuration: %s", name)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
