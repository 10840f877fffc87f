package wire

// Limits of the protocol. hello announces the first two; a message or document beyond its limit is never buffered.
const (
	// MaxMessageSize bounds a message, its header included, both as it travels and once decompressed.
	MaxMessageSize = 48_000_000
	// MaxDocumentSize bounds a document that a client stores.
	MaxDocumentSize = 16 << 20
	// MaxInternalDocumentSize bounds any document in a message: room for the command around the largest document.
	MaxInternalDocumentSize = MaxDocumentSize + 16<<10
	// MaxSequences bounds the document sequences of one message; bulkWrite needs two.
	MaxSequences = 2

	// maxNamespaceLength bounds OP_QUERY's collection name: MongoDB's 255 bytes and room to say what is wrong with more.
	maxNamespaceLength = 1024

	headerSize = 16
)
