package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The user of the image, who has no name elsewhere.
const imageUser = 65532

// descriptor names a blob of an OCI image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// image writes an OCI image of the Linux programs, one for each processor, as an archive in the layout of OCI
// (oci-archive: in the words of skopeo). It has the program, its licences, and an empty /data and /tmp, and
// nothing else.
func (r *release) image(programs map[target]string) error {
	blobs := make(map[string][]byte) // by their names in the archive
	add := func(kind string, text []byte) descriptor {
		digest := fmt.Sprintf("%x", sha256.Sum256(text))
		blobs["blobs/sha256/"+digest] = text
		return descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: "sha256:" + digest,
			Size: int64(len(text))}
	}
	addJSON := func(kind string, value any) (descriptor, error) {
		text, err := json.Marshal(value)
		return add(kind, text), err
	}
	var manifests []descriptor
	for _, t := range r.targets {
		if t.system != "linux" {
			continue
		}
		plain, err := r.imageLayer(programs[t])
		if err != nil {
			return err
		}
		layer := add("layer.v1.tar+gzip", zipped(plain))
		config, err := addJSON("config.v1+json", r.imageConfig(t, fmt.Sprintf("sha256:%x", sha256.Sum256(plain))))
		if err != nil {
			return err
		}
		manifest, err := addJSON("manifest.v1+json", map[string]any{"schemaVersion": 2,
			"mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
			"layers": []descriptor{layer}})
		if err != nil {
			return err
		}
		manifest.Platform = &platform{t.system, t.arch}
		manifests = append(manifests, manifest)
	}
	if len(manifests) == 0 {
		return nil
	}
	index, err := addJSON("index.v1+json", map[string]any{"schemaVersion": 2,
		"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests})
	if err != nil {
		return err
	}
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version[1:],
		"io.containerd.image.name": "jobledger:" + r.version[1:]}
	top, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{index}})
	if err != nil {
		return err
	}
	blobs["index.json"], blobs["oci-layout"] = top, []byte(`{"imageLayoutVersion":"1.0.0"}`)
	out, err := os.Create(filepath.Join(r.out, r.name("_oci.tar")))
	if err != nil {
		return err
	}
	return errors.Join(r.writeBlobs(out, blobs), out.Close())
}

func (r *release) writeBlobs(out io.Writer, blobs map[string][]byte) error {
	w := tar.NewWriter(out)
	names := make([]string, 0, len(blobs))
	for name := range blobs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := r.entry(w, name, 0o644, 0, blobs[name]); err != nil {
			return err
		}
	}
	return w.Close()
}

// entry writes a file, or, where its name ends with a slash, a folder.
func (r *release) entry(w *tar.Writer, name string, mode int64, owner int, text []byte) error {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text)), ModTime: r.time,
		Uid: owner, Gid: owner, Format: tar.FormatUSTAR}
	if strings.HasSuffix(name, "/") {
		head.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(head); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

// imageLayer returns the files of an image.
func (r *release) imageLayer(program string) ([]byte, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	user := fmt.Sprintf("jobledger:x:%d:%d::/data:/sbin/nologin\n", imageUser, imageUser)
	err = errors.Join(
		r.entry(w, "data/", 0o770, imageUser, nil),
		r.entry(w, "etc/", 0o755, 0, nil),
		r.entry(w, "etc/passwd", 0o644, 0, []byte(user)),
		r.entry(w, "jobledger", 0o755, 0, text),
		r.entry(w, "licenses/", 0o755, 0, nil))
	for _, f := range r.shared {
		if strings.Contains(f.name, "LICENSE") {
			err = errors.Join(err, r.entry(w, "licenses/"+f.name, 0o644, 0, f.text))
		}
	}
	err = errors.Join(err, r.entry(w, "tmp/", 0o1777, 0, nil), w.Close())
	return out.Bytes(), err
}

// imageConfig says how the image runs: its program, as a user without rights, with the ledger in /data.
func (r *release) imageConfig(t target, layer string) map[string]any {
	at := r.time.Format(time.RFC3339)
	return map[string]any{
		"created": at, "os": t.system, "architecture": t.arch,
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", imageUser, imageUser), "WorkingDir": "/data",
			"Env":        []string{"PATH=/", "HOME=/data", "JOBLEDGER_DB=/data/jobs.db"},
			"Entrypoint": []string{"/jobledger"}, "Cmd": []string{"help"},
			"Volumes": map[string]any{"/data": struct{}{}}, "StopSignal": "SIGTERM",
			// OCI does not have it, but programs that run images do.
			"Healthcheck": map[string]any{"Test": []string{"CMD", "/jobledger", "doctor", "--json"},
				"Interval": time.Minute, "Timeout": 30 * time.Second, "StartPeriod": 10 * time.Second, "Retries": 3},
			"Labels": map[string]string{"org.opencontainers.image.version": r.version[1:],
				"org.opencontainers.image.revision": r.revision, "org.opencontainers.image.licenses": "MIT",
				"org.opencontainers.image.title": "jobledger"},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{layer}},
		"history": []map[string]string{{"created": at, "created_by": "testdata/release"}},
	}
}
