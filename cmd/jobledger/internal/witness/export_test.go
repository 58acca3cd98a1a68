package witness

// Replace is replace; changed is true if the file had another content than was.
func (w *Witness) Replace(file string, was, text []byte) (changed bool, err error) {
	err = w.replace(file, was, text)
	return err == errChanged, err
}
