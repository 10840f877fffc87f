package accumulator

type parseWindow func()

func windowOf(maker) parseWindow                    { return nil }
func windowWith(func(*Parser) maker) parseWindow    { return nil }
func windowSeveral(func(*Parser) maker) parseWindow { return nil }
func windowCount()                                  {}
func windowTop()                                    {}
func windowPercentile()                             {}
