package proof

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// header is the first line of a proof.
const header = "jobledger-proof/v1"

// maxHashes is how many hashes prove one leaf: a tree of 2⁶² leaves needs no more.
const maxHashes = 62

// Proof shows that events are in the tree of a checkpoint.
type Proof struct {
	Entries    []Entry
	Checkpoint []byte // the text, with its signatures
}

// Entry is one event of a proof.
type Entry struct {
	Leaf  []byte // the event's line, in ASCII
	Index int64  // the number of the leaf: the event's position less one
	Path  []Hash // that lead from the leaf to the root
}

// Append appends the text of p to dst: the header; for each entry its leaf, its index, the hashes of its
// path, each a line, and an empty line; and the checkpoint.
func (p *Proof) Append(dst []byte) []byte {
	dst = append(append(dst, header...), '\n')
	for _, e := range p.Entries {
		dst = append(append(dst, e.Leaf...), "\nindex "...)
		dst = append(strconv.AppendInt(dst, e.Index, 10), '\n')
		for _, h := range e.Path {
			dst = append(base64.StdEncoding.AppendEncode(dst, h[:]), '\n')
		}
		dst = append(dst, '\n')
	}
	return append(dst, p.Checkpoint...)
}

// Parse reads the text of a proof. It does not check it. Errors wrap [ErrInvalid].
func Parse(text []byte) (p Proof, err error) {
	rest, ok := bytes.CutPrefix(text, []byte(header+"\n"))
	if !ok {
		return p, fmt.Errorf("%w: a proof begins with the line %s", ErrInvalid, header)
	}
	for len(rest) > 0 && rest[0] == '{' {
		section, after, ok := bytes.Cut(rest, []byte("\n\n"))
		if !ok {
			return p, fmt.Errorf("%w: the proof ends within its entry %d", ErrInvalid, len(p.Entries)+1)
		}
		e, err := parseEntry(strings.Split(string(section), "\n"))
		if err != nil {
			return p, fmt.Errorf("%w: entry %d: %w", ErrInvalid, len(p.Entries)+1, err)
		}
		p.Entries, rest = append(p.Entries, e), after
	}
	if len(p.Entries) == 0 {
		return p, fmt.Errorf("%w: the proof has no events", ErrInvalid)
	}
	p.Checkpoint = rest
	return p, nil
}

func parseEntry(lines []string) (e Entry, err error) {
	if len(lines) < 2 || len(lines) > 2+maxHashes {
		return e, errors.New("it has an event's line, an index and up to 62 hashes")
	}
	e.Leaf = []byte(lines[0])
	number, ok := strings.CutPrefix(lines[1], "index ")
	e.Index, err = strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || e.Index < 0 || strconv.FormatInt(e.Index, 10) != number {
		return e, fmt.Errorf("%.40q is not an index", lines[1])
	}
	for _, line := range lines[2:] {
		h, err := parseHash(line)
		if err != nil {
			return e, fmt.Errorf("%.60q is not a hash in base64", line)
		}
		e.Path = append(e.Path, h)
	}
	return e, nil
}

// Check returns the checkpoint of p, or an error unless every entry is in its tree, once and in order, and
// the checkpoint is signed by each of the public keys. Errors wrap [ErrInvalid]. Which events the leaves are
// is for the caller to read; Check says only that they are in the tree at their index.
func (p *Proof) Check(keys ...string) (Checkpoint, error) {
	c, err := ParseCheckpoint(p.Checkpoint, keys...)
	if err != nil {
		return c, err
	}
	before := int64(-1)
	for _, e := range p.Entries {
		if e.Index <= before || e.Index >= c.Size {
			return c, fmt.Errorf("%w: index %d; indexes ascend and are below %d", ErrInvalid, e.Index, c.Size)
		}
		before = e.Index
		if err := e.Check(c.Size, c.Root); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Check returns an error unless e is in the tree of so many leaves with this root. Errors wrap [ErrInvalid].
func (e *Entry) Check(size int64, root Hash) error {
	if err := tlog.CheckRecord(e.Path, size, root, e.Index, LeafHash(e.Leaf)); err != nil {
		return fmt.Errorf("%w: event %d is not in the tree of %d events with root %s", ErrInvalid, e.Index+1, size,
			root)
	}
	return nil
}
