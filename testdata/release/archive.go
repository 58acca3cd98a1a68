package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is one of an archive.
type file struct {
	name       string // with slashes
	text       []byte
	executable bool
}

func (f file) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// archive writes the archive for t: a .zip for Windows, a .tar.gz for the others. Its files are in a folder
// of its own.
func (r *release) archive(t target, program string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	files := append(slices.Clone(r.shared), file{name: filepath.Base(program), text: text, executable: true})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	folder := r.name("_" + t.system + "_" + t.arch)
	ending, write := ".tar.gz", r.writeTar
	if t.system == "windows" {
		ending, write = ".zip", r.writeZip
	}
	out, err := os.Create(filepath.Join(r.out, folder+ending))
	if err != nil {
		return err
	}
	return errors.Join(write(out, folder, files), out.Close())
}

func (r *release) writeTar(out io.Writer, folder string, files []file) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Mode: f.mode(),
			Size: int64(len(f.text)), ModTime: r.time, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := w.WriteHeader(head); err != nil {
			return err
		}
		if _, err := w.Write(f.text); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), compressed.Close())
}

func (r *release) writeZip(out io.Writer, folder string, files []file) error {
	w := zip.NewWriter(out)
	for _, f := range files {
		head := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: r.time}
		head.SetMode(os.FileMode(f.mode()))
		part, err := w.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.text); err != nil {
			return err
		}
	}
	return w.Close()
}

// zipped returns text as gzip makes it, without a name or a time.
func zipped(text []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // fails for no level that exists
	_, _ = w.Write(text)                                    // a Buffer takes all
	_ = w.Close()
	return out.Bytes()
}
