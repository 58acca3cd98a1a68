package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// module is one whose code is in the program.
type module struct {
	path, version string
	sum           string // as in go.sum
	dir           string // of its source
	licence       string // as SPDX names it
	texts         []file // its licences and notices
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// licensed returns modules in order, with their licences. A licence that it does not know is an error:
// a person must read it first.
func licensed(modules []module) ([]module, error) {
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	for i := range modules {
		m := &modules[i]
		if m.dir == "" {
			return nil, fmt.Errorf("the source of %s is not on this machine: go mod download", m.path)
		}
		entries, err := os.ReadDir(m.dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
			if err != nil {
				return nil, err
			}
			m.texts = append(m.texts, file{name: e.Name(), text: text})
			if m.licence == "" {
				m.licence = spdx(string(text))
			}
		}
		if m.licence == "" {
			return nil, fmt.Errorf("%s %s: its licence is not known; look into %s", m.path, m.version, m.dir)
		}
	}
	return modules, nil
}

// spdx returns the name of the licence that a text is; "": not known.
func spdx(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(part string) bool { return strings.Contains(strings.ToLower(text), part) }
	switch {
	case has("apache license version 2.0"):
		return "Apache-2.0"
	case has("mozilla public license") && has("2.0"):
		return "MPL-2.0"
	case has("permission is hereby granted, free of charge"):
		return "MIT"
	case has("permission to use, copy, modify, and/or distribute this software"):
		return "ISC"
	case has("redistribution and use in source and binary forms") && has("neither the name"):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return ""
}

// thirdParty returns the licences of all modules as one text.
func thirdParty(modules []module) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString("jobledger contains code of these projects, under the licences that follow.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&text, "  %-50s %-40s %s\n", m.path, m.version, m.licence)
	}
	for _, m := range modules {
		for _, f := range m.texts {
			fmt.Fprintf(&text, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 78), m.path, m.version, f.name,
				strings.TrimSpace(strings.ReplaceAll(string(f.text), "\r\n", "\n")))
		}
	}
	return text.Bytes(), nil
}

// bill writes the list of all modules in the programs, in CycloneDX.
func (r *release) bill(modules []module) error {
	type licence struct {
		ID string `json:"id"`
	}
	type licenceChoice struct {
		License licence `json:"license"`
	}
	type property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type component struct {
		Type       string          `json:"type"`
		Ref        string          `json:"bom-ref"`
		Name       string          `json:"name"`
		Version    string          `json:"version"`
		Licenses   []licenceChoice `json:"licenses"`
		PURL       string          `json:"purl"`
		Properties []property      `json:"properties,omitempty"`
	}
	type metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	bill := struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Serial     string      `json:"serialNumber"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}{Format: "CycloneDX", Spec: "1.5", Version: 1}
	of := func(kind, path, version, id string) component {
		purl := "pkg:golang/" + path + "@" + version
		return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl,
			Licenses: []licenceChoice{{licence{id}}}}
	}
	main := of("application", "jobledger", r.version, "MIT")
	for _, t := range r.targets {
		main.Properties = append(main.Properties, property{"target", t.String()})
	}
	if r.revision != "" {
		main.Properties = append(main.Properties, property{"revision", r.revision})
	}
	bill.Metadata = metadata{r.time.Format(time.RFC3339), main}
	digest := sha256.New()
	fmt.Fprintln(digest, main)
	for _, m := range modules {
		c := of("library", m.path, m.version, m.licence)
		if m.sum != "" {
			c.Properties = []property{{"go.sum", m.sum}}
		}
		bill.Components = append(bill.Components, c)
		fmt.Fprintln(digest, c)
	}
	id := digest.Sum(nil)[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8: of the content
	bill.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	text, err := json.MarshalIndent(bill, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, r.name("_sbom.cdx.json")), append(text, '\n'), 0o644)
}
