package segment

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"

	"jobledger/ledger/event"
)

// Member is a gzip member of a segment file, read. Its events have no N, which their lines do not say: the
// index has it.
type Member struct {
	Offset, Length int64 // in the file
	Events         []event.Event
	Lines          [][]byte // of these events, without the line feed
}

// Members yields the members of a segment file from its begin to its end. A Member is valid until the next
// one. An error ends it; damage wraps ErrDamaged. It does not look at where the events belong: [Check] does.
func Members(file io.Reader) iter.Seq2[*Member, error] {
	return func(yield func(*Member, error) bool) {
		r := memberReader{in: &countingReader{in: bufio.NewReaderSize(file, 64<<10)}}
		for {
			m, err := r.next()
			if err == io.EOF {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// ReadMember reads one member, at this offset and of this length.
func ReadMember(file io.ReaderAt, offset, length int64) (*Member, error) {
	r := memberReader{in: &countingReader{in: bufio.NewReader(io.NewSectionReader(file, offset, length))}}
	m, err := r.next()
	if err == io.EOF || err == nil && m.Length != length {
		err = fmt.Errorf("%w: no member of %d bytes at offset %d", ErrDamaged, length, offset)
	}
	if err != nil {
		return nil, err
	}
	m.Offset = offset
	return m, nil
}

// memberReader reads members one after another.
type memberReader struct {
	in     *countingReader
	gzip   *gzip.Reader
	text   bytes.Buffer
	leaf   []byte
	member Member
}

// next returns the next member; io.EOF at the end of the file.
func (r *memberReader) next() (*Member, error) {
	m := &r.member
	m.Offset, m.Events, m.Lines = r.in.n, m.Events[:0], m.Lines[:0]
	if _, err := r.in.in.Peek(1); err != nil {
		return nil, err // io.EOF, or the file cannot be read
	}
	if err := r.inflate(); err != nil {
		return nil, r.damage(err)
	}
	m.Length = r.in.n - m.Offset
	text := r.text.Bytes()
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if !ended {
			return nil, r.damage(errors.New("a line without an end"))
		}
		if len(m.Events) == MemberLines {
			return nil, r.damage(fmt.Errorf("more than %d lines", MemberLines))
		}
		var l event.Line
		if err := l.UnmarshalJSON(line); err != nil {
			return nil, r.damage(fmt.Errorf("line %d: %w", len(m.Events)+1, err))
		}
		if r.leaf = l.Event.AppendLeaf(r.leaf[:0]); !bytes.Equal(r.leaf, line) {
			return nil, r.damage(fmt.Errorf("line %d is not as event %d is written", len(m.Events)+1, l.Pos))
		}
		m.Events, m.Lines = append(m.Events, l.Event), append(m.Lines, line)
		text = rest
	}
	if len(m.Events) == 0 {
		return nil, r.damage(errors.New("no lines"))
	}
	return m, nil
}

// inflate reads the text of the next member.
func (r *memberReader) inflate() (err error) {
	if r.gzip == nil {
		r.gzip, err = gzip.NewReader(r.in)
	} else {
		err = r.gzip.Reset(r.in)
	}
	if err != nil {
		return err
	}
	r.gzip.Multistream(false)
	r.text.Reset()
	if n, err := io.Copy(&r.text, io.LimitReader(r.gzip, maxMember+1)); err != nil || n <= maxMember {
		return err
	}
	return fmt.Errorf("more than %d bytes", maxMember)
}

// damage adds the place to err. An error of the disk stays one.
func (r *memberReader) damage(err error) error {
	err = fmt.Errorf("the member at offset %d: %w", r.member.Offset, err)
	if r.in.failed != nil && r.in.failed != io.EOF {
		return fmt.Errorf("segment: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// countingReader counts the bytes that were taken. A reader of gzip takes no byte too many from it, because
// it is an io.ByteReader.
type countingReader struct {
	in     *bufio.Reader
	n      int64
	failed error // why in gave no more
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	c.failed = err
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.n++
	}
	c.failed = err
	return b, err
}
