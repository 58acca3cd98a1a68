package hook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger/event"
)

// secretPrefix begins each secret, so that a scanner of leaked secrets knows it.
const secretPrefix = "whsec_"

// Bytes of a secret, before base64.
const (
	minSecret = 24
	maxSecret = 64
	newSecret = 32
)

// Secret signs requests, so that their receiver can verify them.
type Secret struct {
	key   []byte
	Until time.Time // it signs until then; zero: as long as it is there
}

// NewSecret makes a random one.
func NewSecret() Secret {
	key := make([]byte, newSecret)
	_, _ = rand.Read(key) // never fails
	return Secret{key: key}
}

// ParseSecret reads one as Standard Webhooks writes it: whsec_ and 24 to 64 bytes in base64. Its error does
// not have the text.
func ParseSecret(text string) (Secret, error) {
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(coded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, &commands.InvalidError{Field: "secret",
			Allowed: "whsec_ and 24 to 64 bytes in base64"}
	}
	return Secret{key: key}, nil
}

// Text is the form that ParseSecret reads.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

// String hides the secret from logs.
func (s Secret) String() string { return secretPrefix + "…" }

// sign is one signature of Standard Webhooks.
func (s Secret) sign(id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix()) // a hash takes everything
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signatures has one signature for each secret that is valid at that time.
func (e Endpoint) signatures(id string, at time.Time, body []byte) string {
	var all []string
	for _, s := range e.Secrets {
		if s.Until.IsZero() || at.Before(s.Until) {
			all = append(all, s.sign(id, at, body))
		}
	}
	return strings.Join(all, " ")
}

// Rotate gives e a new secret. The old ones go on signing until the time given, next to it.
func (e *Endpoint) Rotate(to Secret, now, until time.Time) {
	secrets := []Secret{to}
	for _, s := range e.Secrets {
		if s.Until.IsZero() || s.Until.After(until) {
			s.Until = until
		}
		if s.Until.After(now) {
			secrets = append(secrets, s)
		}
	}
	e.Secrets = secrets
}

// IDOf names an event for its receivers: its position, and a digest of what it says. A ledger that was
// restored may have another event at that position, which has another id.
func IDOf(x event.Event) (string, error) {
	line, err := words.JSONLine(x)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(line)
	return strconv.FormatInt(x.Pos, 10) + "-" + hex.EncodeToString(digest[:8]), nil
}

// PosOf is the position in an id; 0 where text is not an id.
func PosOf(id string) int64 {
	digits, digest, ok := strings.Cut(id, "-")
	pos, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || pos < 1 || len(digest) != 16 {
		return 0
	}
	return pos
}

// message is a body in the structured form of CloudEvents 1.0.
type message struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Subject     string `json:"subject,omitempty"` // the job
	Time        string `json:"time"`
	ContentType string `json:"datacontenttype"`
	Sequence    string `json:"sequence,omitempty"` // the position, with zeros in front, so that text sorts
	Queue       string `json:"queue,omitempty"`
	Traceparent string `json:"traceparent,omitempty"`
	Data        any    `json:"data"`
}

// newMessage is the body for x, which is about queue.
func newMessage(source, id string, x event.Event, queue, traceparent string) ([]byte, error) {
	kind := "dev.jobledger.ledger."
	if x.Job != "" {
		kind = "dev.jobledger.job."
	}
	return json.Marshal(message{SpecVersion: "1.0", ID: id, Source: source,
		Type: kind + x.Kind().String() + ".v1", Subject: string(x.Job), Time: event.FormatTime(x.At),
		ContentType: "application/json", Sequence: fmt.Sprintf("%016d", x.Pos), Queue: queue,
		Traceparent: traceparent, Data: x})
}

// testMessage is the body of a test, without an event.
func testMessage(source, id string, at time.Time) ([]byte, error) {
	return json.Marshal(message{SpecVersion: "1.0", ID: id, Source: source, Type: "dev.jobledger.test.v1",
		Time: event.FormatTime(at), ContentType: "application/json", Data: struct{}{}})
}
