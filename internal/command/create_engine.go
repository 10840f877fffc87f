package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// parseEngine reads the options for a storage engine. They are checked as MongoDB checks those of WiredTiger, shown again,
// and mean nothing here.
func (r *createRequest) parseEngine(a *Args) {
	if doc := a.Doc("storageEngine"); doc != nil {
		if err := checkStorageEngine("storageEngine", doc); err != nil {
			a.Fail(err)
		}
		if !doc.IsEmpty() {
			r.options["storageEngine"] = doc.Value()
		}
	}
	defaults := a.sub("indexOptionDefaults")
	if defaults == nil {
		return
	}
	if doc := defaults.Doc("storageEngine"); doc != nil {
		if err := checkStorageEngine("indexOptionDefaults.storageEngine", doc); err != nil {
			a.Fail(err)
		}
		r.options["indexOptionDefaults"] = bson.Build().Document("storageEngine", doc).Doc().Value()
	}
	if err := defaults.Done(); err != nil {
		a.Fail(err)
	}
}

// checkIndexEngine looks at the options for a storage engine that an index comes with.
func checkIndexEngine(spec bson.Doc) error {
	v := spec.Lookup("storageEngine")
	switch {
	case v.Type != bson.TypeObject:
		return nil
	case v.Doc().IsEmpty():
		return mongoerr.New(mongoerr.CannotCreateIndex, "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.")
	}
	return checkStorageEngine("storageEngine", v.Doc())
}

func checkStorageEngine(path string, doc bson.Doc) error {
	for it := doc.Iter(); it.Next(); {
		name, v := it.Key(), it.Value()
		switch {
		case v.Type != bson.TypeObject:
			return mongoerr.New(mongoerr.BadValue, "'%s.%s' has to be an embedded document.", path, name)
		case name != "wiredTiger":
			return invalidOptions("%s.%s is not a registered storage engine for this server", path, name)
		}
		if err := checkWiredTiger(v.Doc()); err != nil {
			return err
		}
	}
	return nil
}

func checkWiredTiger(doc bson.Doc) error {
	for it := doc.Iter(); it.Next(); {
		switch v := it.Value(); {
		case it.Key() != "configString":
			return invalidOptions("'%s' is not a supported option in 'wiredTiger'", it.Key())
		case v.Type != bson.TypeString:
			return mongoerr.New(mongoerr.TypeMismatch, "'configString' must be a string, but is a %s", v.Type)
		default:
			if err := checkConfigString(v.Str()); err != nil {
				return err
			}
		}
	}
	return nil
}

// configKeys are the words that WiredTiger knows in the configuration of a table.
var configKeys = map[string]bool{"access_pattern_hint": true, "allocation_size": true, "app_metadata": true, "assert": true,
	"block_allocation": true, "block_compressor": true, "cache_resident": true, "checksum": true, "colgroups": true, "collator": true,
	"columns": true, "dictionary": true, "encryption": true, "exclusive": true, "extractor": true, "format": true,
	"ignore_in_memory_cache_size": true, "immutable": true, "import": true, "internal_item_max": true, "internal_key_max": true,
	"internal_key_truncate": true, "internal_page_max": true, "key_format": true, "key_gap": true, "leaf_item_max": true,
	"leaf_key_max": true, "leaf_page_max": true, "leaf_value_max": true, "log": true, "lsm": true, "memory_page_image_max": true,
	"memory_page_max": true, "os_cache_dirty_max": true, "os_cache_max": true, "prefix_compression": true,
	"prefix_compression_min": true, "source": true, "split_deepen_min_child": true, "split_deepen_per_child": true, "split_pct": true,
	"tiered_storage": true, "type": true, "value_format": true, "verbose": true, "write_timestamp_usage": true}

// checkConfigString checks the words on the first level of a configuration: key=value, separated by commas, with values
// in brackets or quotes left as they are.
func checkConfigString(s string) error {
	if strings.ContainsRune(s, 0) {
		return mongoerr.New(mongoerr.FailedToParse, "malformed 'configString' value: it has an embedded null byte")
	}
	depth, quoted, start := 0, false, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) {
			switch c := s[i]; {
			case c == '"':
				quoted = !quoted
				continue
			case quoted:
				continue
			case c == '(' || c == '[' || c == '{':
				depth++
				continue
			case c == ')' || c == ']' || c == '}':
				depth--
				continue
			case c != ',' || depth > 0:
				continue
			}
		}
		key, _, _ := strings.Cut(strings.TrimSpace(s[start:i]), "=")
		start = i + 1
		if key = strings.TrimSpace(key); key != "" && !configKeys[key] {
			return mongoerr.New(mongoerr.BadValue, "unknown configuration key '%s' in 'configString': Invalid argument", key)
		}
	}
	if depth != 0 || quoted {
		return mongoerr.New(mongoerr.BadValue, "unbalanced brackets or quotes in 'configString': Invalid argument")
	}
	return nil
}
