// The functions of MongoDB's shell that users' functions may call and that are best said in JavaScript.

var args, emit;

Array.sum = function(a) { if (a.length == 0) return null; var s = a[0]; for (var i = 1; i < a.length; i++) s += a[i]; return s; };
Array.avg = function(a) { return a.length == 0 ? null : Array.sum(a) / a.length; };
Array.stdDev = function(a) {
	var mean = Array.avg(a), s = 0;
	for (var i = 0; i < a.length; i++) s += (a[i] - mean) * (a[i] - mean);
	return Math.sqrt(s / a.length);
};
Array.contains = function(a, x) { return a.indexOf(x) >= 0; };
Array.unique = function(a) { return a.filter(function(x, i) { return a.indexOf(x) == i; }); };
Array.tojson = function(a, indent, nolint) { return tojsonObject(a, indent, nolint); };

function isNumber(x) { return typeof x == "number"; }
function isString(x) { return typeof x == "string"; }
function isObject(x) { return typeof x == "object"; }

function DBRef(ref, id, db) {
	var out = {$ref: ref, $id: id};
	if (db !== undefined) out.$db = db;
	return out;
}

function doassert(msg) {
	if (typeof msg == "function") msg = msg();
	throw new Error(typeof msg == "object" ? tojson(msg) : msg);
}

function assert(value, msg) {
	if (value) return;
	if (typeof msg == "function") msg = msg();
	if (typeof msg == "object") msg = tojson(msg);
	throw new Error("assert failed" + (msg === undefined ? "" : " : " + msg));
}

function print() {}
function printjson() {}
function printjsononeline() {}
function gc() {}

function tojson(x, indent, nolint) {
	if (x === null) return "null";
	switch (typeof x) {
	case "undefined":
		return "undefined";
	case "string":
		return JSON.stringify(x);
	case "object":
		var s = tojsonObject(x, indent, nolint);
		return !nolint && !indent && s.length < 80 ? s.replace(/[\t\r\n]+/g, " ") : s;
	}
	return String(x);
}

function tojsononeline(x) { return tojson(x, " ", true); }

function tojsonObject(x, indent, nolint) {
	if (typeof x != "object" || x === null) return tojson(x, indent, nolint);
	if (typeof x.tojson == "function" && x.tojson != tojson) return x.tojson(indent, nolint);
	if (x instanceof Date) return isNaN(x) ? "ISODate(null)" : 'ISODate("' + x.toISOString().replace(/\.000Z$/, "Z") + '")';
	if (x instanceof RegExp) return x.toString();
	if (isBSON(x)) return x.toString();
	indent = indent || "";
	var line = nolint ? " " : "\n", tab = nolint ? "" : indent + "\t", parts = [];
	if (Array.isArray(x)) {
		if (x.length == 0) return "[ ]";
		for (var i = 0; i < x.length; i++) parts.push(tab + tojson(x[i], tab, nolint));
		return "[" + line + parts.join("," + line) + line + (nolint ? "" : indent) + "]";
	}
	for (var k in x) if (typeof x[k] != "function") parts.push(tab + JSON.stringify(k) + " : " + tojson(x[k], tab, nolint));
	if (parts.length == 0) return nolint ? "{ }" : "{" + line + indent + "}";
	return "{" + line + parts.join("," + line) + line + (nolint ? "" : indent) + "}";
}

// A sort takes comparators which only say whether the first is the larger: where one says nothing of a pair, it is asked the
// other way round. The interpreter's own asks only for the smaller.
(function(own) {
	Object.defineProperty(Array.prototype, 'sort', {writable: true, configurable: true, enumerable: false, value: function sort(compare) {
		if (typeof compare != 'function') return own.call(this, compare);
		return own.call(this, function(a, b) {
			var order = +compare(a, b);
			if (order < 0 || order > 0) return order;
			return compare(b, a) > 0 ? -1 : 0;
		});
	}});
})(Array.prototype.sort);
