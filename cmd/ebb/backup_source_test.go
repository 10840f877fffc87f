package main

import "testing"

// TestWithoutSecrets: servers have names of their own, in which nothing is secret.
func TestWithoutSecrets(t *testing.T) {
	for uri, want := range map[string]string{
		"mongodb://127.0.0.1:27017":                                       "mongodb://127.0.0.1:27017",
		"mongodb://127.0.0.1:27017/?directConnection=true":                "mongodb://127.0.0.1:27017",
		"mongodb://127.0.0.1:27017?directConnection=true":                 "mongodb://127.0.0.1:27017",
		"mongodb://keeper:hu%40sh@db1/admin?tls=true":                     "mongodb://db1",
		"mongodb://keeper:hu?sh@db1/":                                     "mongodb://db1",
		"mongodb://keeper:hush@a:1,b:2/?replicaSet=rs0":                   "mongodb://a:1,b:2",
		"mongodb://[::1]:27017/":                                          "mongodb://[::1]:27017",
		"mongodb://keeper:hush@%2Ftmp%2Fmongodb-27017.sock/?authSource=x": "mongodb://%2Ftmp%2Fmongodb-27017.sock",
		"mongodb://db1/?appName=keeper@home":                              "mongodb://db1",
		"mongodb+srv://keeper:hush@cluster.example/":                      "mongodb+srv://cluster.example",
	} {
		if got := withoutSecrets(uri); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}
