package certificate

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/youmark/pkcs8"
)

// readKeyFile reads a certificate, those between it and the root, and its key. The order of the blocks does not matter, but that the
// certificate of the key comes before those of its authorities.
func readKeyFile(name, password string) (tls.Certificate, error) {
	var out tls.Certificate
	text, err := read(name, maxFileBytes)
	if err != nil {
		return out, fmt.Errorf("cannot read certificate file: %s: %w", name, err)
	}
	var keys []*pem.Block
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch block.Type {
		case "CERTIFICATE":
			out.Certificate = append(out.Certificate, block.Bytes)
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY":
			keys = append(keys, block)
		}
	}
	switch {
	case len(out.Certificate) == 0:
		return out, fmt.Errorf("cannot read certificate file: %s: there is no certificate in it", name)
	case len(out.Certificate) > maxCertificates:
		return out, fmt.Errorf("cannot read certificate file: %s: there are more than %d certificates in it", name, maxCertificates)
	case len(keys) == 0:
		return out, fmt.Errorf("cannot read PEM key file: %s: there is no private key in it", name)
	}
	if out.Leaf, err = x509.ParseCertificate(out.Certificate[0]); err != nil {
		return out, fmt.Errorf("cannot read certificate file: %s: %w", name, err)
	}
	key, err := decodeKey(keys[0], password)
	if err != nil {
		return out, fmt.Errorf("cannot read PEM key file: %s: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return out, fmt.Errorf("cannot read PEM key file: %s: a key of this kind cannot sign", name)
	}
	if public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(out.Leaf.PublicKey) {
		return out, fmt.Errorf("SSL certificate validation failed: %s: the private key is not that of the certificate", name)
	}
	out.PrivateKey = signer
	return out, nil
}

var errWrongPassword = errors.New("the key is encrypted, and its password is another one")

// decodeKey reads a private key in one of the forms that OpenSSL writes.
func decodeKey(block *pem.Block, password string) (any, error) {
	der := block.Bytes
	//lint:ignore SA1019 old keys are encrypted like that, and only who has the file could change it
	legacy := x509.IsEncryptedPEMBlock(block)
	if (legacy || block.Type == "ENCRYPTED PRIVATE KEY") && password == "" {
		return nil, errors.New("the key is encrypted, and there is no password for it")
	}
	switch {
	case legacy:
		var err error
		//lint:ignore SA1019 see above
		if der, err = x509.DecryptPEMBlock(block, []byte(password)); err != nil {
			return nil, errWrongPassword
		}
	case block.Type == "ENCRYPTED PRIVATE KEY":
		key, _, err := pkcs8.ParsePrivateKey(der, []byte(password))
		if err != nil {
			return nil, errWrongPassword
		}
		return key, nil
	}
	key, err := parseKey(block.Type, der)
	if err != nil && legacy { // such a key has nothing but its shape to tell that it was decrypted
		err = errWrongPassword
	}
	return key, err
}

func parseKey(kind string, der []byte) (any, error) {
	switch kind {
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(der)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(der)
	}
	return x509.ParsePKCS8PrivateKey(der)
}
