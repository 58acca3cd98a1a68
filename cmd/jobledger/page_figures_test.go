package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// figure is a text of a page that has a number, with where it stands.
type figure struct {
	where  string // the name of the table; otherwise the element, with its class or id
	row    string // of a table: the text of the first cell
	column string // of a table: its title
	titles []string
	cells  []string // of the row; those that a further line of an entry leaves out are those of the line before
	text   string
}

// cell is what the row has in a column.
func (f figure) cell(title string) string {
	if i := slices.Index(f.titles, title); i >= 0 && i < len(f.cells) {
		return f.cells[i]
	}
	return ""
}

// blocks are the elements whose text is one figure.
var blocks = []string{"p", "h1", "h2", "li", "summary", "figcaption", "text", "title", "dd", "dt", "label",
	"legend", "strong", "pre", "button", "option", "noscript", "a", "td", "th", "code"}

// node is an element of a page.
type node struct {
	name  string
	attr  map[string]string
	text  string // between its first tag and the next one
	after string // behind its last tag
	nodes []*node
}

// parsePage reads a page, which closes what it opens.
func parsePage(t *testing.T, page string) *node {
	t.Helper()
	page = strings.Map(func(r rune) rune {
		if r < 32 && r != 10 {
			return -1
		}
		return r
	}, page)
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &node{}
	path := []*node{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root
		}
		check(t, err)
		top := path[len(path)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local, attr: make(map[string]string)}
			for _, a := range token.Attr {
				n.attr[a.Name.Local] = a.Value
			}
			top.nodes = append(top.nodes, n)
			path = append(path, n)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if len(top.nodes) == 0 {
				top.text += string(token)
			} else {
				top.nodes[len(top.nodes)-1].after += string(token)
			}
		}
	}
}

// all is the text of n and of what is in it.
func (n *node) all() string {
	var b strings.Builder
	b.WriteString(n.text)
	for i, in := range n.nodes {
		if in.name == "pre" {
			b.WriteString(" ")
		}
		b.WriteString(in.all())
		if in.name == "time" && n.name == "li" && i == 0 {
			b.WriteString(" ") // which the style of the page puts there
		}
		b.WriteString(in.after)
	}
	return b.String()
}

// figuresOf returns the texts with numbers of a page, those that only programs for the blind read included.
func figuresOf(t *testing.T, page string) (found []figure) {
	t.Helper()
	add := func(f figure) {
		f.text = strings.Join(strings.Fields(f.text), " ")
		if strings.ContainsAny(f.text, "0123456789") {
			found = append(found, f)
		}
	}
	var walk func(n *node, region string)
	walk = func(n *node, region string) {
		if label := n.attr["aria-label"]; label != "" {
			if n.attr["role"] == "region" {
				region = label
			} else {
				add(figure{where: n.name + " label", text: label})
			}
		}
		for _, name := range []string{"data-tail", "data-pos", "data-after"} {
			add(figure{where: name, text: n.attr[name]})
		}
		switch {
		case n.name == "table":
			var titles, before []string
			for _, r := range n.rows() {
				var cells []string
				for _, c := range r.nodes {
					cells = append(cells, strings.Join(strings.Fields(c.all()), " "))
				}
				if titles == nil && n.attr["class"] != "pairs" {
					titles = cells
					continue
				}
				whole := slices.Clone(cells)
				for i := range min(len(whole), len(before)) {
					if whole[i] == "" && cells[0] == "" {
						whole[i] = before[i]
					}
				}
				before = whole
				for i, text := range cells {
					f := figure{where: region, row: cells[0], titles: titles, cells: whole, text: text}
					if titles == nil {
						f.where = "pairs"
					} else if i < len(titles) {
						f.column = titles[i]
					}
					add(f)
				}
			}
			for _, svg := range n.find("svg") {
				walk(svg, region)
			}
			return
		case slices.Contains(blocks, n.name):
			where := n.name
			for _, name := range []string{"id", "class"} {
				if n.attr[name] != "" {
					where += " " + n.attr[name]
				}
			}
			add(figure{where: where, text: n.all()})
			return
		}
		add(figure{where: n.name, text: n.text})
		for _, in := range n.nodes {
			walk(in, region)
			add(figure{where: "after " + in.name, text: in.after})
		}
	}
	walk(parsePage(t, page), "")
	return found
}

// rows are the rows of a table.
func (n *node) rows() []*node { return n.find("tr") }

// find returns the elements of that name in n.
func (n *node) find(name string) (found []*node) {
	for _, in := range n.nodes {
		if in.name == name {
			found = append(found, in)
		} else {
			found = append(found, in.find(name)...)
		}
	}
	return found
}
