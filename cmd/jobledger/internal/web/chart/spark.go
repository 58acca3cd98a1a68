package chart

import (
	"fmt"
	"strings"
)

// Size of a spark in its own units.
const (
	SparkWidth  = 144
	SparkHeight = 22
)

// Spark is a picture for the cell of a table: an area, and red columns in front of it.
type Spark struct {
	Title, About string // in words
	Area         string // path; "": there is none
	Columns      []Column
}

// Column is a column of a spark.
type Column struct{ X, Y, Width, Height float64 }

// NewSpark draws values as an area and problems as columns, each by its own scale. Either may be nil.
func NewSpark(title, about string, values, problems []int64) *Spark {
	s := &Spark{Title: title, About: about}
	s.Area, s.Columns = draw(values, problems, SparkWidth, SparkHeight)
	return s
}

// draw draws values as an area and problems as columns from the bottom, of at most half of the height.
func draw(values, problems []int64, width, height float64) (area string, columns []Column) {
	most, worst := int64(0), int64(0)
	for _, v := range values {
		most = max(most, v)
	}
	for _, v := range problems {
		worst = max(worst, v)
	}
	if most > 0 {
		step := width / float64(len(values))
		var b strings.Builder
		fmt.Fprintf(&b, "M0 %g", height)
		for i, v := range values {
			y := height - (height-1)*float64(v)/float64(most)
			fmt.Fprintf(&b, "L%.1f %.1fL%.1f %.1f", step*float64(i), y, step*float64(i+1), y)
		}
		fmt.Fprintf(&b, "L%g %gZ", width, height)
		area = b.String()
	}
	if worst > 0 {
		step := width / float64(len(problems))
		full := height
		if most > 0 {
			full = height / 2
		}
		for i, v := range problems {
			if v > 0 {
				h := max(2, full*float64(v)/float64(worst))
				columns = append(columns, Column{step * float64(i), height - h, max(1, step-.5), h})
			}
		}
	}
	return area, columns
}
