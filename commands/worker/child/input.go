//go:build unix

package child

import (
	"io"
	"os"
)

// inputFile returns a file that holds data. A file, unlike a pipe, needs no writer: a command that does not
// read blocks no goroutine, and one that reads does not wait for a frozen worker.
func inputFile(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	if f, err := memoryFile(data); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp("", "jobledger-stdin-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return fill(f, data)
}

// fill writes data to f and seeks to its beginning.
func fill(f *os.File, data []byte) (*os.File, error) {
	_, err := f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
