package main

import (
	"cmp"
	"slices"
)

// metric describes one name of metrics.
type metric struct {
	name, about string
	more        bool // more is better
}

// known are the metrics in the order in which they are shown. What is not here comes behind, by its name.
func known() []metric {
	return []metric{
		{name: "docs_s", more: true, about: "documents a second"},
		{name: "ops_s", more: true, about: "operations a second"},
		{name: "server_cores", about: "processors that the server kept busy"}, {name: "client_cores", about: "the same of this program"},
		{name: "rss_before_mib"}, {name: "rss_after_mib"}, {name: "rss_peak_mib", about: "memory of the server, in RAM"},
		{name: "p50_ms"}, {name: "p99_ms"}, {name: "p999_ms"}, {name: "max_ms"},
		{name: "server_us", about: "CPU of the server an operation, or a document where documents are counted"},
		{name: "client_us", about: "the same of this program and its driver"},
		{name: "server_per_client", about: "the ratio of the two"},
		{name: "server_per_update", about: "CPU of the server a transaction for that of a single update in the same run"},
		{name: "rate_per_alone", more: true, about: "ops_s of three servers for that of one"},
		{name: "server_per_alone", about: "server_us of all three for that of one"},
		{name: "logins", about: "clients that have logged in"},
		{name: "p99_per_alone", about: "p99_ms for that without those"},
		{name: "login_p50_ms", about: "from a client's first connection to the answer to its first command"}, {name: "login_p99_ms"}, {name: "login_p999_ms"}, {name: "login_max_ms"},
		{name: "login_late", about: "logins that could not begin on time"},
		{name: "login_client_us", about: "CPU of their own process a client"},
		{name: "visible_first", about: "documents that the first query from the deadline on still saw"},
		{name: "first_query_ms", about: "when that query began, after the deadline"},
		{name: "invisible_ms", about: "when a query saw none of them"},
		{name: "gone_ms", about: "when the store had none of them: all deleted, no backlog"},
		{name: "cleaned_ms", about: "when no index entries of them were left either"},
		{name: "dead_entries", about: "index entries that were left when waiting for quiet ended"},
		{name: "quiet_ms", about: "when the server was as idle again as before"},
		{name: "server_us_free", about: "CPU of the server a document until they were gone, less what it used before the deadline"},
		{name: "server_us_all", about: "the same until the server was quiet"},
		{name: "disk_empty_mib", about: "files of the server with an empty collection"}, {name: "disk_full_mib"}, {name: "disk_after_mib", about: "30 s after the deadline, or when it was back"},
		{name: "data_empty_mib", about: "the same without the journal's files"}, {name: "data_full_mib"}, {name: "data_after_mib"},
		{name: "data_back_ms", about: "when that was within 10 % and 1 MiB of the empty collection's"},
		{name: "disk_after_per_empty"}, {name: "disk_back_ms", about: "when it was within 10 % of the empty collection's"},
		{name: "lag_p50_ms", about: "how long the oldest document was stored past its deadline"},
		{name: "lag_p99_ms"}, {name: "lag_p999_ms"}, {name: "lag_max_ms"},
		{name: "missed", about: "updates that did not find their document alive"},
		{name: "late", about: "operations that could not begin on time"},
		{name: "disk_mib"}, {name: "disk_data_mib"},
		{name: "other_cores", about: "processors that neither the server nor this program kept busy: above 0.2 the machine was disturbed"},
	}
}

// inOrder sorts names of metrics as known has them.
func inOrder(names []string) []string {
	rows := known()
	place := func(name string) int {
		if i := slices.IndexFunc(rows, func(m metric) bool { return m.name == name }); i >= 0 {
			return i
		}
		return len(rows)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return names
}

func describe(name string) metric {
	for _, m := range known() {
		if m.name == name {
			return m
		}
	}
	return metric{name: name}
}
