package meter

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/web/view"
)

// Media types of the metrics.
const (
	textMetrics = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// wantsOpenMetrics reports whether r asks for OpenMetrics, and likes no plain text better. A wildcard, as of
// browsers and curl, asks for plain text.
func wantsOpenMetrics(r *http.Request) bool {
	open, plain := 0.0, 0.0
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q, version := 1.0, params["version"]
		if text, has := params["q"]; has {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		switch {
		case kind == "application/openmetrics-text" && (version == "" || version == "1.0.0" || version == "0.0.1"):
			open = max(open, q)
		case kind == "text/plain":
			plain = max(plain, q)
		}
	}
	return open > 0 && open >= plain
}

// openFamily is family in OpenMetrics: a counter's has no _total, and its unit is named.
func (m *exposition) openFamily(name, kind, help string) {
	if kind == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	fmt.Fprintf(m, "# TYPE %s %s\n", name, kind)
	for _, unit := range []string{"seconds", "bytes"} {
		if strings.HasSuffix(name, "_"+unit) {
			fmt.Fprintf(m, "# UNIT %s %s\n", name, unit)
		}
	}
	fmt.Fprintf(m, "# HELP %s %s\n", name, labelEscaper.Replace(help))
}

// maxExemplar is how many characters an exemplar's names and values may have.
const maxExemplar = 128

// exemplar is the text of x at the end of the line of its bucket; "" if x is empty.
func exemplar(x *view.Exemplar) string {
	if x.N == 0 {
		return ""
	}
	labels, length := `job="`+labelEscaper.Replace(string(x.Job))+`"`, len("job")+len(x.Job)
	if x.Trace != "" {
		labels += `,trace_id="` + x.Trace + `"`
		length += len("trace_id") + len(x.Trace)
	}
	if length > maxExemplar {
		return ""
	}
	return fmt.Sprintf(" # {%s} %s %d.%06d", labels, strconv.FormatFloat(x.Value, 'g', -1, 64), x.At.Unix(),
		x.At.Nanosecond()/1000)
}

// endOf is the upper end of a bucket as a label has it. In OpenMetrics each is a float.
func (m *exposition) endOf(end float64) string {
	text := strconv.FormatFloat(end, 'g', -1, 64)
	if m.open && !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
