package repository

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Manifest is what a backup consists of. It is a file of JSON, and behind it a line with its SHA-256.
type Manifest struct {
	// Format is that of the manifest.
	Format int `json:"format"`
	// ID is the backup's name: the time, and four digits at random.
	ID string `json:"id"`
	// At is the moment as of which the data are.
	At time.Time `json:"at"`
	// Commit is the number of the store's last commit that is in it.
	Commit int64 `json:"commit"`
	// Ebb is the version that took it, and Source where it was taken.
	Ebb    string `json:"ebb"`
	Source string `json:"source,omitempty"`
	// HeldAt is where expiry stood still at the source; nil where it went on.
	HeldAt *time.Time `json:"heldAt,omitempty"`
	// Oplog tells of the source's oplog; nil where it has none.
	Oplog *Oplog `json:"oplog,omitempty"`
	Files []File `json:"files"`
}

// Oplog is what a backup has of the oplog.
type Oplog struct {
	// From is an entry that is surely in it, and To the last that may be.
	From Timestamp `json:"from"`
	To   Timestamp `json:"to"`
	// Set is the name of the replica set.
	Set string `json:"set,omitempty"`
}

// Timestamp is the place of an entry in the oplog.
type Timestamp struct {
	Seconds uint32 `json:"t"`
	Counter uint32 `json:"i"`
}

// Compare orders timestamps.
func (t Timestamp) Compare(u Timestamp) int {
	switch a, b := uint64(t.Seconds)<<32|uint64(t.Counter), uint64(u.Seconds)<<32|uint64(u.Counter); {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// IsZero says whether it is none.
func (t Timestamp) IsZero() bool { return t == Timestamp{} }

func (t Timestamp) String() string { return fmt.Sprintf("%d:%d", t.Seconds, t.Counter) }

// File is a file of the store.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// SHA256 is of its content, in hexadecimal, under which the repository keeps it.
	SHA256 string `json:"sha256"`
}

const (
	manifestFormat = 1
	// maxManifestBytes and maxFiles bound what is read of a manifest.
	maxManifestBytes = 256 << 20
	maxFiles         = 1 << 20
	// maxFileBytes bounds a file of a store: tables are much smaller.
	maxFileBytes = 1 << 40
)

// The names that files of a store have. Others are not restored.
var (
	fileName = regexp.MustCompile(`^(\d{6,20}\.(sst|log|blob)|MANIFEST-\d{6,20}|OPTIONS-\d{6,20}|marker\.(manifest|format-version)\.\d{6,20}\.(MANIFEST-\d{6,20}|\d{3,10})|EBB-FORMAT|EBB-SYNCED)$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	backupID = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{4}$`)
)

// CheckID refuses what is not the name of a backup.
func CheckID(id string) error {
	if !backupID.MatchString(id) {
		return fmt.Errorf("%q is not the name of a backup, which is like 20260102T030405.678Z-1a2b", id)
	}
	return nil
}

// Bytes is how much all files take.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// encode is the manifest's file.
func (m *Manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	return seal(b), nil
}

// seal puts a line with the digest behind a text.
func seal(b []byte) []byte {
	b = append(b, '\n')
	sum := sha256.Sum256(b)
	return append(append(b, hex.EncodeToString(sum[:])...), '\n')
}

// unseal is the text, if the line behind it is its digest.
func unseal(b []byte) ([]byte, error) {
	text := bytes.TrimSuffix(b, []byte("\n"))
	at := bytes.LastIndexByte(text, '\n') + 1
	sum := sha256.Sum256(b[:at])
	if len(text) == len(b) || hex.EncodeToString(sum[:]) != string(text[at:]) {
		return nil, errors.New("it is damaged: its checksum is not that of what it says")
	}
	return b[:at], nil
}

// decodeManifest reads the manifest of the backup id and believes nothing of it.
func decodeManifest(id string, b []byte) (*Manifest, error) {
	text, err := unseal(b)
	if err != nil {
		return nil, err
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("it is no manifest: %w", err)
	}
	if head.Format != manifestFormat {
		return nil, fmt.Errorf("its format is %d, and this version of Ebb knows %d", head.Format, manifestFormat)
	}
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("it is no manifest: %w", err)
	}
	return m, m.check(id)
}

func (m *Manifest) check(id string) error {
	switch {
	case m.ID != id:
		return fmt.Errorf("it says that it is %q", m.ID)
	case m.At.IsZero() || m.At.Year() < 1970 || m.At.Year() > 9999:
		return fmt.Errorf("it says that the data are as of %v", m.At)
	case len(m.Files) == 0 || len(m.Files) > maxFiles:
		return fmt.Errorf("it lists %d files", len(m.Files))
	}
	seen := make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		switch {
		case !fileName.MatchString(f.Name):
			return fmt.Errorf("it lists %q, which is no name of a file of a store", f.Name)
		case seen[f.Name]:
			return fmt.Errorf("it lists %s twice", f.Name)
		case f.Bytes < 0 || f.Bytes > maxFileBytes:
			return fmt.Errorf("it says that %s has %d bytes", f.Name, f.Bytes)
		case !digest.MatchString(f.SHA256):
			return fmt.Errorf("it says that %s has the digest %q", f.Name, f.SHA256)
		}
		seen[f.Name] = true
	}
	if !seen["EBB-FORMAT"] {
		return errors.New("it lists no EBB-FORMAT, which every store has")
	}
	return nil
}
