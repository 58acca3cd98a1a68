package cli

import (
	"os"
	"path/filepath"
	"strings"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/commands/remote"
)

// RemoteFlags are those with which a verb uses a server in place of the ledger itself.
func RemoteFlags() []Flag {
	return []Flag{
		&StringFlag{Name: "url", Usage: "use 'jobledger serve' at `URL`: https://HOST, or unix:PATH on this host",
			EnvVars: []string{"JOBLEDGER_URL"}},
		&StringFlag{Name: "api-token-file", Usage: "the `FILE`, of mode 0600, with the token for --url",
			EnvVars: []string{"JOBLEDGER_API_TOKEN_FILE"}},
		&StringFlag{Name: "ca", Usage: "trust the certificates in `FILE` for --url, not those of the system",
			EnvVars: []string{"JOBLEDGER_CA"}},
		&StringFlag{Name: "client-cert", Usage: "the `FILE` with a certificate for --url, in place of a token",
			EnvVars: []string{"JOBLEDGER_CLIENT_CERT"}},
		&StringFlag{Name: "client-key", Usage: "the `FILE`, of mode 0600, with the key of --client-cert",
			EnvVars: []string{"JOBLEDGER_CLIENT_KEY"}},
	}
}

// AboutRemote is the paragraph about [RemoteFlags] in the help of a verb.
const AboutRemote = "\nWith --url or JOBLEDGER_URL the ledger is that of a server, here or elsewhere; the " +
	"token is in --api-token-file or JOBLEDGER_API_TOKEN, or --client-cert is in its place. See " +
	"'jobledger help http'."

// Remote returns a client of the server of --url, which the caller closes; nil: the ledger of --db is
// meant. A --db on the line is meant where only the environment names a server.
func (p *Program) Remote(c *Context) (*remote.Client, error) {
	url := p.remoteURL(c)
	if url == "" {
		return nil, nil
	}
	config := remote.Config{URL: url, TokenFile: c.String("api-token-file"), CA: c.String("ca"),
		ClientCert: c.String("client-cert"), ClientKey: c.String("client-key")}
	if config.TokenFile == "" {
		config.Token = os.Getenv("JOBLEDGER_API_TOKEN")
	}
	return remote.New(config)
}

func (p *Program) remoteURL(c *Context) string {
	if p.dbGiven && os.Getenv("JOBLEDGER_URL") == c.String("url") {
		return ""
	}
	return c.String("url")
}

// CheckRemote refuses --url and --db on the same line.
func (p *Program) CheckRemote(c *Context) error {
	if p.dbGiven && p.remoteURL(c) != "" {
		return Usagef("--db and --url cannot be combined")
	}
	return nil
}

// RemoteEnvironment returns what a command gets in place of JOBLEDGER_DB where the ledger is a server's: its
// URL, and further variables with which the command can use it.
func (p *Program) RemoteEnvironment(c *Context) (url string, also []string) {
	url = p.remoteURL(c)
	for name, value := range map[string]string{"JOBLEDGER_API_TOKEN_FILE": c.String("api-token-file"),
		"JOBLEDGER_CA": c.String("ca"), "JOBLEDGER_CLIENT_CERT": c.String("client-cert"),
		"JOBLEDGER_CLIENT_KEY": c.String("client-key")} {
		if absolute, err := filepath.Abs(value); value != "" && err == nil {
			also = append(also, name+"="+absolute)
		}
	}
	if token := os.Getenv("JOBLEDGER_API_TOKEN"); token != "" && c.String("api-token-file") == "" {
		also = append(also, "JOBLEDGER_API_TOKEN="+token)
	}
	return url, also
}

// RemoteLogFolder is LogFolder for the ledger of a server.
func (p *Program) RemoteLogFolder(url string) string {
	folder, err := logs.StateFolder()
	if err != nil {
		p.Message("what commands write is not kept for 'jobledger logs': %v", err)
		return ""
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://"))
	return filepath.Join(folder, "url_"+name)
}
