package repository

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/ebbdb/ebb/internal/backup/place"
)

// The oplog behind a backup is shipped in segments, which make a chain: each says behind which entry it begins. A segment is a head, which is
// sealed JSON of two lines, and a body, the entries one behind the other, compressed by zstd, whose SHA-256 the head tells.
//
// How far the oplog was looked at without finding more stands in an object of its own, so that it is known that there was nothing.

const (
	logPrefix     = "log/"
	segmentEnd    = ".seg"
	coverageName  = "covered.json"
	segmentFormat = 1

	// MaxSegmentBytes is how many bytes of entries a segment has at most, and MaxEntryBytes how many one has.
	MaxSegmentBytes = 64 << 20
	MaxEntryBytes   = 17 << 20
	maxSegments     = 1_000_000
	maxHead         = 4 << 10
)

// Segment is the head of a segment.
type Segment struct {
	Format int `json:"format"`
	// Prev is the entry behind which it begins; First and Last are its own.
	Prev  Timestamp `json:"prev"`
	First Timestamp `json:"first"`
	Last  Timestamp `json:"last"`
	// LastSHA256 is of the last entry: who goes on looks whether it is still that.
	LastSHA256 string `json:"lastSHA256"`
	Entries    int    `json:"entries"`
	// Bytes are those of the entries, SHA256 is of the body.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Coverage says that behind an entry there was no other with a timestamp up to another.
type Coverage struct {
	After Timestamp `json:"after"`
	Until Timestamp `json:"until"`
}

var segmentName = regexp.MustCompile(`^(\d{10})\.(\d{10})-(\d{10})\.(\d{10})$`)

func chainPrefix(backup string) string { return logPrefix + backup + "/" }

func (s *Segment) name(backup string) string {
	return fmt.Sprintf("%s%010d.%010d-%010d.%010d%s", chainPrefix(backup), s.First.Seconds, s.First.Counter, s.Last.Seconds, s.Last.Counter, segmentEnd)
}

// PutSegment ships entries, whose place in the chain s tells, as the next segment behind a backup.
func (r *Repository) PutSegment(ctx context.Context, backup string, s Segment, entries []byte) error {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	body := encoder.EncodeAll(entries, nil)
	sum := sha256.Sum256(body)
	s.Format, s.Bytes, s.SHA256 = segmentFormat, int64(len(entries)), hex.EncodeToString(sum[:])
	if err := s.check(); err != nil {
		return fmt.Errorf("the segment would be refused: %w", err)
	}
	head, err := json.Marshal(s)
	if err != nil {
		return err
	}
	all := append(seal(head), body...)
	return r.place.Put(ctx, s.name(backup), bytes.NewReader(all), int64(len(all)))
}

func (s *Segment) check() error {
	switch {
	case s.Format != segmentFormat:
		return fmt.Errorf("its format is %d, and this version of Ebb knows %d", s.Format, segmentFormat)
	case s.Prev.Compare(s.First) >= 0 || s.First.Compare(s.Last) > 0:
		return fmt.Errorf("it says that it goes from %s to %s, behind %s", s.First, s.Last, s.Prev)
	case s.Entries < 1 || s.Bytes < 1 || s.Bytes > MaxSegmentBytes+MaxEntryBytes:
		return fmt.Errorf("it says that it has %d entries of %d bytes", s.Entries, s.Bytes)
	case !digest.MatchString(s.SHA256) || !digest.MatchString(s.LastSHA256):
		return errors.New("it has no digest")
	}
	return nil
}

// Segments are the names of the segments behind a backup, in the order of their first entries, with those entries.
func (r *Repository) Segments(ctx context.Context, backup string) (all []SegmentName, err error) {
	prefix := chainPrefix(backup)
	err = r.place.List(ctx, prefix, func(o place.Object) error {
		name, ok := strings.CutSuffix(strings.TrimPrefix(o.Name, prefix), segmentEnd)
		parts := segmentName.FindStringSubmatch(name)
		if !ok || parts == nil {
			return nil
		}
		if len(all) == maxSegments {
			return fmt.Errorf("%s has more than %d segments behind %s", r.place, maxSegments, backup)
		}
		var n [4]uint32
		for i := range n {
			v, err := strconv.ParseUint(parts[1+i], 10, 32)
			if err != nil {
				return nil // nobody writes such a name
			}
			n[i] = uint32(v)
		}
		all = append(all, SegmentName{o.Name, Timestamp{n[0], n[1]}, Timestamp{n[2], n[3]}})
		return nil
	})
	slices.SortFunc(all, func(a, b SegmentName) int {
		if c := a.First.Compare(b.First); c != 0 {
			return c
		}
		return a.Last.Compare(b.Last)
	})
	return all, err
}

// SegmentName is what the name of a segment tells.
type SegmentName struct {
	Object      string
	First, Last Timestamp
}

// ReadSegment reads a segment, and believes nothing of it. Each entry is given with its timestamp; what each fails with ends the reading.
func (r *Repository) ReadSegment(ctx context.Context, n SegmentName, each func(entry []byte) error) (*Segment, error) {
	object, err := r.place.Get(ctx, n.Object)
	if err != nil {
		return nil, fmt.Errorf("%s in %s is not read: %w", n.Object, r.place, err)
	}
	defer object.Close()
	in := &noted{r: object}
	s, err := readSegment(in, n, each)
	switch {
	case err == nil:
		return s, nil
	case in.err != nil:
		return nil, fmt.Errorf("%s in %s is not read: %w", n.Object, r.place, in.err)
	}
	return nil, place.Faultf("%s in %s is refused: %w", n.Object, r.place, err)
}

// noted notes what a reader fails with, but for its end: what was read is not to blame for that.
type noted struct {
	r   io.Reader
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return k, err
}

func readSegment(object io.Reader, n SegmentName, each func(entry []byte) error) (*Segment, error) {
	in := bufio.NewReaderSize(object, maxHead)
	s, err := readHead(in, n)
	if err != nil || each == nil {
		return s, err
	}
	h := sha256.New()
	body, err := io.ReadAll(io.LimitReader(io.TeeReader(in, h), 2*(MaxSegmentBytes+MaxEntryBytes)))
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(h.Sum(nil)) != s.SHA256 {
		return nil, errors.New("it is damaged: its entries do not have the digest that it tells")
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxSegmentBytes+MaxEntryBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	entries, err := decoder.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("it cannot be unpacked: %w", err)
	}
	if int64(len(entries)) != s.Bytes {
		return nil, fmt.Errorf("it has %d bytes of entries and says that they are %d", len(entries), s.Bytes)
	}
	return s, split(s, entries, each)
}

// readHead reads the two lines that a segment begins with.
func readHead(in *bufio.Reader, n SegmentName) (*Segment, error) {
	first, err := in.ReadSlice('\n')
	if err != nil {
		return nil, errors.New("it has no head")
	}
	head := bytes.Clone(first)
	second, err := in.ReadSlice('\n')
	if err != nil {
		return nil, errors.New("its head has no checksum")
	}
	text, err := unseal(append(head, second...))
	if err != nil {
		return nil, err
	}
	s := &Segment{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("it has no head: %w", err)
	}
	if s.First != n.First || s.Last != n.Last {
		return nil, fmt.Errorf("it says that it goes from %s to %s", s.First, s.Last)
	}
	return s, s.check()
}

// split gives entries one by one.
func split(s *Segment, entries []byte, each func([]byte) error) error {
	count := 0
	for len(entries) > 0 {
		if len(entries) < 5 {
			return errors.New("its last entry is cut off")
		}
		size := int64(binary.LittleEndian.Uint32(entries))
		if size < 5 || size > int64(len(entries)) || size > MaxEntryBytes {
			return fmt.Errorf("an entry says that it has %d bytes", size)
		}
		if err := each(entries[:size]); err != nil {
			return err
		}
		entries = entries[size:]
		count++
	}
	if count != s.Entries {
		return fmt.Errorf("it has %d entries and says that they are %d", count, s.Entries)
	}
	return nil
}

// Cover notes how far the oplog behind a backup was looked at.
func (r *Repository) Cover(ctx context.Context, backup string, c Coverage) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	b = seal(b)
	return r.place.Put(ctx, chainPrefix(backup)+coverageName, bytes.NewReader(b), int64(len(b)))
}

// Covered is what Cover noted last; zeros where it has not.
func (r *Repository) Covered(ctx context.Context, backup string) (c Coverage, err error) {
	name := chainPrefix(backup) + coverageName
	b, err := place.ReadSmall(ctx, r.place, name, maxSmall)
	if errors.Is(err, place.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	text, err := unseal(b)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return Coverage{}, place.Faultf("%s in %s is refused: %w", name, r.place, err)
	}
	return c, nil
}

// Chains are the names of the backups behind which something of an oplog is kept, sorted. They may be gone.
func (r *Repository) Chains(ctx context.Context) (ids []string, err error) {
	seen := map[string]bool{}
	err = r.place.List(ctx, logPrefix, func(o place.Object) error {
		id, _, _ := strings.Cut(strings.TrimPrefix(o.Name, logPrefix), "/")
		if seen[id] || CheckID(id) != nil {
			return nil
		}
		if len(seen) == maxBackups {
			return fmt.Errorf("%s has the oplogs of more than %d backups", r.place, maxBackups)
		}
		seen[strings.Clone(id)] = true
		return nil
	})
	return slices.Sorted(maps.Keys(seen)), err
}

// forgetLog removes the segments behind a backup.
func (r *Repository) forgetLog(ctx context.Context, backup string) error {
	var names []string
	err := r.place.List(ctx, chainPrefix(backup), func(o place.Object) error {
		names = append(names, o.Name)
		return nil
	})
	for _, name := range names {
		err = errors.Join(err, r.place.Delete(ctx, name))
	}
	return err
}
