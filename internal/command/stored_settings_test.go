package command

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestPanickingSetting: a stored setting whose query cannot even be read does not keep the server from its start.
func TestPanickingSetting(t *testing.T) {
	h := newHarness(t)
	hash := strings.Repeat("0F", shapeBytes)
	stored := bson.MustDoc(`{queryShapeHash: "` + hash + `", settings: {reject: true}, representativeQuery: {find: "c", $db: "test"}}`)
	var noted strings.Builder
	broken := &Server{Config: Config{Clock: h.clock, Log: slog.New(slog.NewTextHandler(&noted, nil))}, table: h.server.table}
	x, err := broken.loadSetting(t.Context(), stored)
	if err != nil || x.Hash != hash || !x.Reject || x.Query != nil {
		t.Errorf("loadSetting = %+v, %v", x, err)
	}
	if !strings.Contains(noted.String(), "panic") {
		t.Errorf("the log says %q", noted.String())
	}
}
