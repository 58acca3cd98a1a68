package proof

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// consistencyHeader is the first line of a proof of consistency.
const consistencyHeader = "jobledger-consistency/v1"

// Consistency shows that the tree of a checkpoint begins with all leaves of an older one, in their order (RFC
// 9162, section 2.1.4).
type Consistency struct {
	Path     []Hash
	Old, New []byte // the texts of the checkpoints, with their signatures
}

// IsConsistency reports whether the text of a proof is that of a [Consistency] rather than of a [Proof].
func IsConsistency(text []byte) bool { return bytes.HasPrefix(text, []byte(consistencyHeader+"\n")) }

// Append appends the text of c to dst: the header; the hashes, each a line, and an empty line; and both
// checkpoints, the older one first.
func (c *Consistency) Append(dst []byte) []byte {
	dst = append(append(dst, consistencyHeader...), '\n')
	for _, h := range c.Path {
		dst = append(base64.StdEncoding.AppendEncode(dst, h[:]), '\n')
	}
	return append(append(append(dst, '\n'), c.Old...), c.New...)
}

// ParseConsistency reads the text of a proof of consistency. It does not check it. Errors wrap [ErrInvalid].
func ParseConsistency(text []byte) (c Consistency, err error) {
	rest, ok := bytes.CutPrefix(text, []byte(consistencyHeader+"\n"))
	section, rest, found := bytes.Cut(rest, []byte("\n\n"))
	lines := strings.Split(string(section), "\n")
	if !ok || !found || len(lines) > 1+maxHashes {
		return c, fmt.Errorf("%w: such a proof has the line %s, up to %d hashes and an empty line", ErrInvalid,
			consistencyHeader, 1+maxHashes)
	}
	for _, line := range lines {
		h, err := parseHash(line)
		if err != nil {
			return c, fmt.Errorf("%w: %.60q is not a hash in base64", ErrInvalid, line)
		}
		c.Path = append(c.Path, h)
	}
	texts, err := SplitCheckpoints(rest)
	if err != nil || len(texts) != 2 || len(texts[0])+len(texts[1]) != len(rest) {
		return c, fmt.Errorf("%w: such a proof ends with two checkpoints", ErrInvalid)
	}
	c.Old, c.New = texts[0], texts[1]
	return c, nil
}

// Check returns both checkpoints, or an error unless the tree of the newer one begins with that of the older
// one, which has fewer events and the same name. Errors wrap [ErrInvalid].
func (c *Consistency) Check() (older, newer Checkpoint, err error) {
	if older, err = ParseCheckpoint(c.Old); err != nil {
		return older, newer, err
	}
	if newer, err = ParseCheckpoint(c.New); err != nil {
		return older, newer, err
	}
	switch {
	case older.Origin != newer.Origin:
		err = fmt.Errorf("%w: the checkpoints are of %s and of %s", ErrInvalid, older.Origin, newer.Origin)
	case older.Size < 1 || older.Size >= newer.Size:
		err = fmt.Errorf("%w: a checkpoint of %d events before one of %d", ErrInvalid, older.Size, newer.Size)
	case tlog.CheckTree(c.Path, newer.Size, newer.Root, older.Size, older.Root) != nil:
		err = fmt.Errorf("%w: the %d events with root %s are not the first of the %d with root %s", ErrInvalid,
			older.Size, older.Root, newer.Size, newer.Root)
	}
	return older, newer, err
}
