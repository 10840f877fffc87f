package server

import (
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// httpPatience is how long a browser may take to read what it is told.
const httpPatience = time.Second

const httpText = "It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"

// httpReply is mongod's to a browser.
func httpReply() string {
	return "HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: " +
		strconv.Itoa(len(httpText)) + "\r\n\r\n" + httpText
}

// answerHTTP tells a browser that this is no place for it. The connection ends then.
func (s *Server) answerHTTP(c *Conn) {
	_ = c.socket.SetWriteDeadline(clock.Wall().Now().Add(httpPatience))
	n, _ := c.stream().Write([]byte(httpReply()))
	s.counters.bytesOut.Add(int64(n))
}
