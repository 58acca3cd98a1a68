package attemptlog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"jobledger/ledger/event"
)

// Stream is what the event at the end of an attempt says of one stream of its command.
type Stream struct {
	SHA256     string // of all that was written; "": nothing, or nothing was to be recorded
	Bytes      int64  // how much was written
	KeptSHA256 string // of what the log file holds, where that is not all; else "", as in older events
}

// Lost reports whether the command wrote something of which the worker could keep nothing. salt is that of
// the job; where it is nil, because it was erased, that is not known.
func (s Stream) Lost(salt []byte) bool { return salt != nil && s.KeptSHA256 == digestOfNothing(salt) }

func digestOfNothing(salt []byte) string { return hex.EncodeToString(saltedHash(salt).Sum(nil)) }

// StreamOf returns what o says of stdout, or of stderr.
func StreamOf(o event.Output, stderr bool) Stream {
	if stderr {
		return Stream{o.StderrSHA256, o.StderrBytes, o.StderrKeptSHA256}
	}
	return Stream{o.StdoutSHA256, o.StdoutBytes, o.StdoutKeptSHA256}
}

// State says whether a log file holds what its command wrote.
type State string

// The states of a log file.
const (
	Whole    State = "whole"     // it holds all that the command wrote
	Cut      State = "cut"       // it holds the part that the worker kept
	SizeOnly State = "size_only" // it is cut, and the event has no digest of the part; the sizes fit
	Differs  State = "differs"   // it holds something else
	// there is no digest: the attempt did not end by its worker, or was erased
	Unchecked State = "unchecked"
)

// Check compares a log file of size bytes with what the event says. salt is that of the job; nil means that
// it was erased. An error is one of reading the file.
func (s Stream) Check(file io.ReaderAt, size int64, salt []byte) (State, error) {
	switch {
	case s.SHA256 == "" || salt == nil:
		return Unchecked, nil
	case size > s.Bytes+cutMarkLen: // however long it is, it need not be read
		return Differs, nil
	}
	digest, err := digestOf(file, size, salt)
	if err != nil {
		return Unchecked, err
	}
	switch {
	case size == s.Bytes && digest == s.SHA256:
		return Whole, nil
	case s.KeptSHA256 != "" && digest == s.KeptSHA256:
		return Cut, nil
	case s.KeptSHA256 == "" && isCut(file, size, s.Bytes):
		return SizeOnly, nil
	}
	return Differs, nil
}

// digestOf is ledger.Digest of the first size bytes of file.
func digestOf(file io.ReaderAt, size int64, salt []byte) (string, error) {
	h := saltedHash(salt)
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// isCut reports whether the file has, between two halves, the mark that says how much of all is left out.
func isCut(file io.ReaderAt, size, all int64) bool {
	limit := size - cutMarkLen
	if limit < 0 || limit >= all {
		return false
	}
	mark := make([]byte, cutMarkLen)
	_, err := file.ReadAt(mark, limit/2)
	return (err == nil || err == io.EOF) && string(mark) == fmt.Sprintf(cutMark, all-limit)
}

// CutLen is the length of the mark in a cut file that replaces its middle.
var CutLen = cutMarkLen

// CutMark returns the mark for a number of bytes.
func CutMark(out int64) string { return fmt.Sprintf(cutMark, out) }

var cutPrefix, cutSuffix, _ = strings.Cut(cutMark, "%15d")

// FindCut returns where the first such mark is in text, and how many bytes were left out there; -1: there is
// none.
func FindCut(text []byte) (place int, out int64) {
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], []byte(cutPrefix))
		if i < 0 || at+i+int(CutLen) > len(text) {
			return -1, 0
		}
		at += i
		digits, ok := bytes.CutSuffix(text[at+len(cutPrefix):at+int(CutLen)], []byte(cutSuffix))
		out, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 10, 64)
		if ok && err == nil && out > 0 {
			return at, out
		}
	}
}

// Lacks returns how many bytes are missing from a file of size bytes that has no mark for them, as after a
// full disk.
func (s Stream) Lacks(file io.ReaderAt, size int64) int64 {
	if s.Bytes <= size || isCut(file, size, s.Bytes) {
		return 0
	}
	return s.Bytes - size
}
