package ebb

import (
	"fmt"
	"io"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
)

// Limits of a key file. Keys are as long as mongod wants them.
const (
	maxKeyFileBytes      = 16 << 10
	minKey, maxKey       = 6, 1024
	maxKeys              = 2
	keyIterations        = 15_000
	othersMayReadOrWrite = 0o077
)

// clusterKeys makes of a key file what whoever knows one of its keys logs in by: credentials as of a user, a document a key; and the keys that this
// server shows others. "" is no file.
func clusterKeys(path string) (credentials []bson.Doc, keys []string, err error) {
	if path == "" {
		return nil, nil, nil
	}
	if keys, err = readKeyFile(path); err != nil {
		return nil, nil, err
	}
	made := make([]*bson.Builder, len(keys))
	for i := range made {
		made[i] = bson.Build()
	}
	for _, mechanism := range scram.Mechanisms() {
		alike, err := scram.MakeAlike(mechanism, auth.Internal().Name.Name, keys, keyIterations)
		if err != nil {
			return nil, nil, err
		}
		for i, d := range alike {
			made[i].Document(mechanism, d)
		}
	}
	var docs []bson.Doc
	for _, b := range made {
		docs = append(docs, b.Doc())
	}
	return docs, keys, nil
}

// readKeyFile reads one key, or a list of them in YAML. Of an error nothing is said of what the file holds.
func readKeyFile(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("Error reading file %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("Error reading file %s: %w", path, err)
	}
	if info.Mode().Perm()&othersMayReadOrWrite != 0 {
		return nil, fmt.Errorf("permissions on %s are too open", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("Error reading file %s: %w", path, err)
	case len(text) > maxKeyFileBytes:
		return nil, fmt.Errorf("the key file %s is larger than %d bytes", path, maxKeyFileBytes)
	}
	var lines any
	if err := yaml.Unmarshal(text, &lines); err != nil { // whose error tells of the text
		return nil, fmt.Errorf("the key file %s is neither a key nor a list of keys", path)
	}
	var keys []string
	list, ok := lines.([]any)
	if !ok {
		list = []any{string(text)}
	}
	if len(list) == 0 || len(list) > maxKeys {
		return nil, fmt.Errorf("Only two keys are supported in the security key file, %d are specified in %s", len(list), path)
	}
	for _, k := range list {
		key, err := plainKey(path, fmt.Sprint(k))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// plainKey is a key without the white space in it, which says nothing.
func plainKey(path, text string) (string, error) {
	key := strings.Join(strings.Fields(text), "")
	for _, c := range key {
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/', c == '=':
		default:
			return "", fmt.Errorf("invalid char in key file %s", path)
		}
	}
	if len(key) < minKey || len(key) > maxKey {
		return "", fmt.Errorf("security key in %s has length %d, must be between %d and %d chars", path, len(key), minKey, maxKey)
	}
	return key, nil
}
