package keystring

func (r *reader) skipValue(depth int) error {
	tag, err := r.byte()
	if err != nil {
		return err
	}
	switch tag {
	case tagMinKey, tagUndefined, tagNull, tagNaN, tagZero, tagFalse, tagTrue, tagMaxKey:
		return nil
	case tagNegative:
		r.flip ^= 0xFF
		err := r.skipMagnitude()
		r.flip ^= 0xFF
		return err
	case tagPositive:
		return r.skipMagnitude()
	case tagString, tagCode:
		return r.skipString()
	case tagObject:
		return r.skipElements(depth, true)
	case tagArray:
		return r.skipElements(depth, false)
	case tagBinary:
		return r.skipCounted(1)
	case tagDBPointer:
		return r.skipCounted(0)
	case tagObjectID:
		return r.skip(objectIDBytes)
	case tagDate, tagTimestamp:
		return r.skip(8)
	case tagRegex:
		if err := r.skipCString(); err != nil {
			return err
		}
		return r.skipCString()
	case tagCodeWithScope:
		if err := r.skipString(); err != nil {
			return err
		}
		return r.skipElements(depth, true)
	default:
		return errKey
	}
}

func (r *reader) skip(n int) error {
	if len(r.key) < n {
		return errKey
	}
	r.key = r.key[n:]
	return nil
}

func (r *reader) skipCounted(more int) error {
	n, err := r.length()
	if err != nil {
		return err
	}
	return r.skip(n + more)
}

func (r *reader) skipMagnitude() error {
	for i := range doubleBytes {
		b, err := r.byte()
		if err != nil {
			return err
		}
		if b&1 == 0 {
			return nil
		}
		if i == doubleBytes-1 {
			break
		}
	}
	if err := r.skip(2); err != nil {
		return err
	}
	return r.skipCString()
}

func (r *reader) skipCString() error {
	for {
		if b, err := r.byte(); err != nil || b == 0 {
			return err
		}
	}
}

func (r *reader) skipString() error {
	for {
		if err := r.skipCString(); err != nil {
			return err
		}
		switch b, err := r.byte(); {
		case err != nil:
			return err
		case b == stringEnd:
			return nil
		case b != stringEscape:
			return errKey
		}
	}
}

func (r *reader) skipElements(depth int, named bool) error {
	if depth == 0 {
		return errTooDeep
	}
	for {
		if len(r.key) == 0 {
			return errKey
		}
		if r.key[0]^r.flip == tagEnd {
			r.key = r.key[1:]
			return nil
		}
		if named {
			r.key = r.key[1:]
			if err := r.skipCString(); err != nil {
				return err
			}
		}
		if err := r.skipValue(depth - 1); err != nil {
			return err
		}
	}
}
