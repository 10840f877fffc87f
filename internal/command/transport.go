package command

import (
	"math"
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/wire"
)

// minUnknownBytes is what a login takes at least.
const minUnknownBytes = 1 << 10

// TransportParameters are the parameters of connections.
type TransportParameters struct {
	// NoPlainLog leaves plain connections out of the log where others are preferred, NoBareLog clients without a certificate.
	NoPlainLog, NoBareLog *parameter.Bool
	// Withholds does not show the server's certificate to other members.
	Withholds *parameter.Bool
	// MaxUnknown is how many bytes a message may have of a client that has not logged in, where clients have to.
	MaxUnknown *parameter.Int
	// WarnDays is how many days a client's certificate must be good for still, for nothing to be logged.
	WarnDays *parameter.Int
}

// AddTransportParameters enters the parameters of connections. mode is that of TLS, 0 for none, and certificates what it goes by, or nil.
func AddTransportParameters(r *parameter.Registry, mode *atomic.Int32, certificates *certificate.Store) *TransportParameters {
	for name, modes := range map[string][]string{"tlsMode": tlsModes(), "sslMode": {"disabled", "allowSSL", "preferSSL", "requireSSL"}} {
		r.Add(&parameter.Parameter{Name: name, When: parameter.Runtime,
			Get: func() bson.Value { return bson.String(modes[mode.Load()]) },
			Set: func(v bson.Value) error { return raiseTLSMode(mode, v, name, modes) }})
	}
	override := ""
	r.Add(&parameter.Parameter{Name: "tlsX509ClusterAuthDNOverride", When: parameter.Both,
		Get: func() bson.Value { return bson.String(override) },
		Set: func(v bson.Value) error {
			if v.Type != bson.TypeString {
				return mongoerr.New(mongoerr.BadValue, "Value for parameter 'tlsX509ClusterAuthDNOverride' must be a string")
			}
			if err := certificates.SetMemberName(v.Str()); err != nil {
				return mongoerr.New(mongoerr.BadValue, "%s", err.Error())
			}
			override = string([]byte(v.Str()))
			return nil
		}})
	parameter.NewBool(r, "tlsUseSystemCA", parameter.Startup, false)
	t := &TransportParameters{
		NoPlainLog: parameter.NewBool(r, "disableNonTLSConnectionLogging", parameter.Both, false),
		NoBareLog:  parameter.NewBool(r, "suppressNoTLSPeerCertificateWarning", parameter.Startup, false),
		Withholds:  parameter.NewBool(r, "tlsWithholdClientCertificate", parameter.Startup, false),
		MaxUnknown: parameter.NewInt(r, "preAuthMaximumMessageSizeBytes", parameter.Both, 16<<10, minUnknownBytes, wire.MaxMessageSize, false),
		WarnDays:   parameter.NewInt(r, "tlsX509ExpirationWarningThresholdDays", parameter.Startup, 30, 0, math.MaxInt32, false),
	}
	r.Alias("disableNonSSLConnectionLogging", "disableNonTLSConnectionLogging")
	r.Alias("sslWithholdClientCertificate", "tlsWithholdClientCertificate")
	return t
}

// tlsModes are the modes by their number.
func tlsModes() []string { return []string{"disabled", "allowTLS", "preferTLS", "requireTLS"} }

// raiseTLSMode goes from one mode to the next, which is all that MongoDB lets a running server do. The parameter has the name, and calls the
// modes so.
func raiseTLSMode(mode *atomic.Int32, v bson.Value, parameter string, modes []string) error {
	now := mode.Load()
	name := ""
	if v.Type == bson.TypeString {
		name = v.Str()
	}
	for next, known := range modes {
		switch {
		case name != known:
		case next > 1 && int32(next) == now+1 && mode.CompareAndSwap(now, int32(next)):
			return nil
		default:
			return mongoerr.New(mongoerr.BadValue, "Illegal state transition for %s, attempt to change from %s to %s", parameter, modes[now], known)
		}
	}
	return mongoerr.New(mongoerr.BadValue, "Invalid %s setting '%s', expected one of: '%s', or '%s'", parameter, name, strings.Join(modes[:3], "', '"), modes[3])
}

// rotateCertificates puts in force what is in the files of certificates now. Connections that are open keep to what they have.
func rotateCertificates(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	message, _ := op.Args.String("message")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if op.Certificates != nil {
		if err := op.Certificates.Rotate(op.Ctx); err != nil {
			op.Log.Error("Certificate rotation failed; the certificates that were read before stay in force", "error", err.Error(), "message", message)
			return nil, mongoerr.New(mongoerr.InvalidSSLConfiguration, "%s", err.Error())
		}
	}
	op.Log.Info("Certificate rotation completed successfully", "message", message)
	return bson.EmptyDoc, nil
}

// transportSection counts connections over TLS by the version of the protocol.
func (op *Op) transportSection(b *bson.Builder) {
	t := op.traffic()
	b.Int64("1.0", 0).Int64("1.1", 0).Int64("1.2", t.TLS12).Int64("1.3", t.TLS13).Int64("unknown", 0)
}

// certificateFields are those of serverStatus's section security that tell of the server's certificate.
func (op *Op) certificateFields(b *bson.Builder) {
	if op.Certificates == nil {
		return
	}
	set := op.Certificates.Set()
	b.String("SSLServerSubjectName", set.Subject).Bool("SSLServerHasCertificateAuthority", true).
		Date("SSLServerCertificateExpirationDate", set.NotAfter.UnixMilli())
}
