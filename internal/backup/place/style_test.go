package place

import (
	"net/http"
	"testing"
	"time"
)

// TestStyles: where a bucket's name stands in what is asked for.
func TestStyles(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "ebb")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
	const amazons, others = "https://s3.eu-west-1.amazonaws.com", "https://store.example.org:9000"
	for _, c := range []struct {
		access Access
		asks   string
	}{
		{Access{Endpoint: amazons}, "https://shop.s3.dualstack.eu-west-1.amazonaws.com/x"},
		{Access{Endpoint: amazons, HostStyle: true}, "https://shop.s3.dualstack.eu-west-1.amazonaws.com/x"},
		{Access{Endpoint: amazons, PathStyle: true}, "https://s3.dualstack.eu-west-1.amazonaws.com/shop/x"},
		{Access{Endpoint: others}, "https://store.example.org:9000/shop/x"},
		{Access{Endpoint: others, PathStyle: true}, "https://store.example.org:9000/shop/x"},
		{Access{Endpoint: others, HostStyle: true}, "https://shop.store.example.org:9000/x"},
	} {
		c.access.Region = "eu-west-1"
		client, err := dial(c.access)
		if err != nil {
			t.Fatal(err)
		}
		u, err := client.Presign(t.Context(), http.MethodGet, "shop", "x", time.Hour, nil)
		if err != nil {
			t.Fatal(err)
		}
		if u.RawQuery = ""; u.String() != c.asks {
			t.Errorf("%+v asks %s, want %s", c.access, u, c.asks)
		}
	}
}
