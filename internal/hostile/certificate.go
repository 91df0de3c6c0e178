package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() *authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().AddDate(-10, 0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return &authority{must(x509.ParseCertificate(der)), key}
}

// roots returns a pool with this authority only.
func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue returns a certificate for service.example.com and loopback, for servers and clients. change modifies it before
// it is signed; nil changes nothing.
func (a *authority) issue(change func(*x509.Certificate)) *tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"service.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(template)
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// must returns a value that only a broken source of randomness prevents.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
