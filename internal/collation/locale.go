package collation

import (
	"strings"

	"golang.org/x/text/language"
)

// languages are those that have a collation in ICU 57.
const languages = " af agq ak am ar as asa az bas be bem bez bg bm bn bo br brx bs ca ce cgg chr cs cy da dav de dje dsb dua dyo dz ebu ee el en eo es et eu ewo " +
	"fa ff fi fil fo fr fur fy ga gd gl gsw gu guz gv ha haw he hi hr hsb hu hy id ig ii in is it iw ja jgo jmc ka kab kam kde kea khq ki kk kkj kl kln km kn ko kok " +
	"ks ksb ksf ksh kw ky lag lb lg lkt ln lo lrc lt lu luo luy lv mas mer mfe mg mgh mgo mk ml mn mr ms mt mua my mzn naq nb nd ne nl nmg nn nnh no nus nyn om or os pa " +
	"pl prg ps pt qu rm rn ro rof ru rw rwk sah saq sbp se seh ses sg shi si sk sl smn sn so sq sr sv sw ta te teo tg th ti tk to tr twq tzm ug uk ur uz vai vi vo vun " +
	"wae wo xog yav yi yo yue zgh zh zu "

// keywords are the values of @collation= and how x/text calls them.
const keywords = " big5han=big5han compat=compat dictionary=dict eor=eor gb2312han=gb2312 phonebook=phonebk phonetic=phonetic pinyin=pinyin reformed=reformed " +
	"search=search searchjl=searchjl standard=standard stroke=stroke traditional=trad unihan=unihan zhuyin=zhuyin "

func checkLocale(locale string) error {
	bad := func() error { return badValue("Field 'locale' is invalid in: { locale: \"%s\" }", locale) }
	place, keyword, has := strings.Cut(locale, "@")
	if has {
		value, ok := strings.CutPrefix(keyword, "collation=")
		if !ok || keywordTag(value) == "" {
			return bad()
		}
	}
	parts := strings.Split(place, "_")
	if parts[0] == "" || strings.ContainsAny(parts[0], " =") || !strings.Contains(languages, " "+parts[0]+" ") {
		return bad()
	}
	parts = parts[1:]
	if len(parts) > 0 && len(parts[0]) == 4 {
		if s, err := language.ParseScript(parts[0]); err != nil || s.String() != parts[0] {
			return bad()
		}
		parts = parts[1:]
	}
	if len(parts) > 0 {
		if r, err := language.ParseRegion(parts[0]); err != nil || r.String() != parts[0] {
			return bad()
		}
		parts = parts[1:]
	}
	if len(parts) > 0 && place != "en_US_POSIX" {
		return bad()
	}
	return nil
}

func keywordTag(value string) string {
	if value == "" || strings.ContainsAny(value, " =") {
		return ""
	}
	_, rest, ok := strings.Cut(keywords, " "+value+"=")
	if !ok {
		return ""
	}
	tag, _, _ := strings.Cut(rest, " ")
	return tag
}

// tag is the locale as x/text names it.
func tag(locale string) language.Tag {
	if locale == "en_US_POSIX" {
		return language.Make("en-US-u-va-posix")
	}
	place, keyword, has := strings.Cut(locale, "@")
	text := strings.ReplaceAll(place, "_", "-")
	if has {
		text += "-u-co-" + keywordTag(strings.TrimPrefix(keyword, "collation="))
	}
	return language.Make(text)
}
