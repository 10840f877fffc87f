package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	// maxFileBytes bounds a configuration file.
	maxFileBytes = 1 << 20
	// maxFileDepth bounds its nesting.
	maxFileDepth = 20
)

func readFile(name string) ([]setting, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errorf("Error opening config file %s: %v", name, plain(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, errorf("Error reading config file %s: %v", name, plain(err))
	}
	if len(text) > maxFileBytes {
		return nil, errorf("Error reading config file %s: it is larger than %d bytes", name, maxFileBytes)
	}
	return parseFile(text)
}

// plain is what went wrong without the name, which the caller says.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func parseFile(text []byte) ([]setting, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, errorf("Error parsing YAML config file: %v", err)
	}
	if len(root.Content) == 0 {
		return nil, nil // an empty file
	}
	r := fileReader{seen: map[string]bool{}}
	if err := r.mapping("", root.Content[0], 1); err != nil {
		return nil, err
	}
	return modernize(r.out)
}

// fileReader flattens a file into dotted keys.
type fileReader struct {
	out  []setting
	seen map[string]bool
}

func (r *fileReader) mapping(prefix string, n *yaml.Node, depth int) error {
	if depth > maxFileDepth {
		return errorf("Error parsing YAML config file: line %d: nested too deep", n.Line)
	}
	if n.Kind != yaml.MappingNode {
		return errorf("Error parsing YAML config file: line %d: %s must be a map", n.Line, orWhole(prefix))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "" || strings.ContainsRune(key.Value, 0) {
			return errorf("Error parsing YAML config file: line %d: a key must be a name", key.Line)
		}
		name := key.Value
		if prefix != "" {
			name = prefix + "." + key.Value
		}
		if err := r.value(name, value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *fileReader) value(name string, n *yaml.Node, depth int) error {
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(name, n, depth+1)
	case yaml.ScalarNode:
	case yaml.SequenceNode:
		return r.list(name, n)
	default:
		return errorf("Error parsing YAML config file: line %d: %s must be one value, without lists, anchors or aliases", n.Line, name)
	}
	if n.Tag == "!!null" {
		return nil // "net:" with everything below it commented out
	}
	if r.seen[name] {
		return errorf("Error parsing YAML config file: line %d: duplicate key %s", n.Line, name)
	}
	r.seen[name] = true
	r.out = append(r.out, setting{name, n.Value})
	return nil
}

// list reads a list of values as a text in which they are separated by commas, which is how a flag has them.
func (r *fileReader) list(name string, n *yaml.Node) error {
	var texts []string
	for _, one := range n.Content {
		if one.Kind != yaml.ScalarNode || strings.Contains(one.Value, ",") || !isList(name) {
			return errorf("Error parsing YAML config file: line %d: %s must be one value, without lists, anchors or aliases", n.Line, name)
		}
		texts = append(texts, one.Value)
	}
	return r.value(name, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.Join(texts, ","), Line: n.Line}, 0)
}

// isList says whether an option is a list in the file.
func isList(name string) bool {
	return name == "net.maxIncomingConnectionsOverride" || name == "security.clusterIpSourceAllowlist"
}

func orWhole(name string) string {
	if name == "" {
		return "the file"
	}
	return name
}
