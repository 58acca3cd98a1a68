package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"

	"jobledger/commands"
	"jobledger/ledger/ownerfile"
)

// tls is how connections are encrypted; encrypted says whether they are.
func (c Config) tls(encrypted bool) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &commands.InvalidError{Field: "ca", Got: c.CA, Allowed: "a file with certificates in PEM"}
		}
	}
	switch {
	case c.ClientCert == "" && c.ClientKey == "":
		return config, nil
	case c.ClientCert == "" || c.ClientKey == "":
		return nil, &commands.InvalidError{Field: "client certificate", Got: "without its key, or a key alone",
			Allowed: "both files, or one file twice that has both"}
	case !encrypted:
		return nil, &commands.InvalidError{Field: "client certificate", Got: "for an address without TLS",
			Allowed: "with https://HOST"}
	}
	info, err := os.Stat(c.ClientKey)
	if err != nil {
		return nil, err
	}
	if err := checkSecret("client key", c.ClientKey, info); err != nil {
		return nil, err
	}
	if _, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	// From the list of Certificates it would not be sent if the server names other authorities, and the server
	// could not say what is wrong with it.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
		return &pair, err
	}
	return config, nil
}

// checkSecret returns an error if other users may read the file at path.
func checkSecret(field, path string, info fs.FileInfo) error {
	if !ownerfile.OpenToOthers(info) {
		return nil
	}
	return &commands.InvalidError{Field: field, Got: fmt.Sprintf("%s, which lets other users in (mode %04o)",
		path, info.Mode().Perm()), Allowed: "a file of its owner alone: chmod 600 it"}
}
