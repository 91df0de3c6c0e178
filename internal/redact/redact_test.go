package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

func finder(texts ...string) *redact.Finder {
	var hidden []redact.Hidden
	for _, text := range texts {
		hidden = append(hidden, redact.Hidden{Secret: redact.New(text)})
	}
	return redact.NewFinder(hidden...)
}

// All forms are written by hand. None of them contains the plain secret.
func TestEscapesOfOtherWritersAreFound(t *testing.T) {
	t.Parallel()
	const secret, hard = `pass=wo"rd'1`, "pä😀+ß/x y"
	for name, tt := range map[string]struct{ secret, form string }{
		"itself":                        {secret, `pass=wo"rd'1`},
		"JSON":                          {secret, `pass=wo\"rd'1`},
		"JSON, signs as numbers":        {secret, `pass\u003dwo\u0022rd\u00271`},
		"JSON, upper case":              {secret, `pass\u003Dwo\u0022rd\u00271`},
		"JSON, every letter":            {secret, `\u0070\u0061\u0073\u0073\u003d\u0077\u006f\u0022\u0072\u0064\u0027\u0031`},
		"JSON, some letters":            {secret, `p\u0061ss=wo\"r\u0064'1`},
		"JSON twice":                    {secret, `pass=wo\\\"rd'1`},
		"JSON twice, a number":          {secret, `pass\\u003dwo\\u0022rd'1`},
		"JSON thrice":                   {secret, `pass=wo\\\\\\\"rd'1`},
		"JSON, its backslash a number":  {secret, `pass=wo\u005c\u0022rd'1`},
		"JSON, not ASCII":               {hard, `p\u00e4\ud83d\ude00+\u00DF\/x y`},
		"JSON twice, not ASCII":         {hard, `p\\u00e4\\ud83d\\ude00+\\u00DF\\/x y`},
		"JSON thrice, or octal digits":  {"a0bc", `\\u005C\\u00750\\u0030610bc`},
		"percent":                       {secret, `pass%3dwo%22rd%271`},
		"percent, every letter":         {secret, `%70%61%73%73%3D%77%6F%22%72%64%27%31`},
		"percent, some letters":         {secret, `p%61ss=wo%22rd'1`},
		"percent twice":                 {secret, `pass%253Dwo%2522rd%25271`},
		"percent thrice":                {secret, `pass%25253Dwo%252522rd%2525271`},
		"percent, UTF-8":                {hard, `p%C3%A4%f0%9f%98%80%2B%c3%9F%2Fx%20y`},
		"percent, a blank is a plus":    {hard, `p%C3%A4%F0%9F%98%80%2B%C3%9F/x+y`},
		"percent, Latin-1":              {"pässword", `p%E4ssword`},
		"percent, escape of JavaScript": {hard, `p%E4%uD83D%uDE00+%DF/x%20y`},
		"JSON in percent":               {secret, `pass%5Cu003Dwo%5C%22rd%271`},
		"percent in JSON":               {secret, `pass%3Dwo\u002522rd%271`},
		"HTML":                          {secret, `pass=wo&quot;rd&apos;1`},
		"HTML, decimal":                 {secret, `pass&#61;wo&#34;rd&#39;1`},
		"HTML, hexadecimal":             {secret, `pass&#x3d;wo&#X22;rd&#x27;1`},
		"HTML, leading zeros":           {secret, `pass&#00000000000000061;wo&#x000000022;rd&#039;1`},
		"HTML, rare names":              {secret, `pass&equals;wo&QUOT;rd&apos;1`},
		"HTML, no semicolon":            {secret, `pass&#61wo&quotrd&#39;1`},
		"HTML twice":                    {secret, `pass=wo&amp;quot;rd&amp;#39;1`},
		"HTML thrice":                   {secret, `pass=wo&amp;amp;#34;rd&#38;#38;apos;1`},
		"HTML, not ASCII":               {hard, `p&auml;&#128512;+&szlig;/x&#32;y`},
		"HTML in JSON in percent":       {"0&&&0", `0%5C%75%30%30%32%36%5C%75%30%30%36%31%5C%75%30%30%36%64%5C%75%30%30%370%5c%750%30%33%42%5c%75%30%30%326\%750%30%36%31%5c%750%30%36d%5c%75%30%30%37%30\%75%3003%62%26%61%5c%75%300%36%64%70%3b%5C%75%30%3030`},
		"HTML in JSON":                  {secret, `pass=wo\u0026quot;rd\u0026#39;1`},
		"JSON in HTML":                  {secret, `pass=wo\&quot;rd&#39;1`},
		"Go, C and JavaScript":          {secret, `pass\x3dwo\042rd\'1`},
		"Go, not ASCII":                 {hard, `p\u00e4\U0001F600+\xc3\x9f/x y`},
		"JavaScript, braces":            {hard, `p\xe4\u{1f600}+\u{df}/x y`},
		"shell":                         {hard, `pä😀+ß/x\ y`},
		"quoted-printable":              {secret, `pass=3Dwo"rd'1`},
		"quoted-printable, UTF-8":       {hard, `p=C3=A4=F0=9F=98=80+=C3=9F/x y`},
		"quoted-printable, long lines":  {secret, "pass=3Dw=\r\no\"rd'1"},
		"quoted-printable around JSON":  {secret, "pass\\=\r\n=3D\r\nu003dwo\\=\n\"rd'1"},
		"quoted-printable, blanks":      {secret, "pass=3Dw= \t\r\no\"rd'1"},
		"octal, few digits":             {"Passw0rd!", `Passw0rd\41`},
		"octal, a nought at the end":    {"pass0word", `pass\060word`},
		"octal, two digits, up to 3":    {"pa\tssword", `pa\11ssword`},
		"octal, one digit":              {"pa\x07ssword", `pa\7ssword`},
		"octal, a digit of four":        {"pass\"word", `pass\42word`},
		"C, many digits":                {"pass!word", `pass\x0021word`},
		"C, not ASCII":                  {"pass€", `pass\x20ac`},
		"C, a line that goes on":        {secret, "pass=wo\\\n\"rd\\\r\n'1"},
		"JavaScript, letters":           {secret, `p\ass=\wo\"r\d'1`},
		"JavaScript, many zeros":        {secret, `p\u{00000000061}ss=wo"rd'1`},
		"HTML, Windows-1252":            {"pass–word€", `pass&#150;word&#x80;`},
		"HTML, a name of two letters":   {"fjord-2024", `&fjlig;ord-2024`},
		"HTML, a name of two signs":     {"a≨︀bc", `a&lvertneqq;bc`},
		"JSON pointer":                  {"pa/ss~word", `pa~1ss~0word`},
		"JSON pointer as a fragment":    {"pa/ss~word", `pa%7E1ss~%30word`},
		"three deep, a digit, or none":  {"abcd", `ab&#x\=30663;d`},
		"three deep, the x of a number": {"hunter22", `hunter&#\%u007878%332;2`},
		"three deep, braces":            {"abcd", `a\x62=63\u005cu\=787b\=3066\u0=3034}`},
		"HTML, the longest name":        {"a∳bcd", `a&CounterClockwiseContourIntegral;bcd`},
		"HTML, a name with digits":      {"pass½word", `pass&frac12;word`},
		"HTML, the end of Windows-1252": {"pass\u00a0word", `pass&#160;word`},
		"HTML, a name before a sign":    {"pass\"-word", `pass&quot-word`},
		"HTML, a name before letters":   {"pass<wordwordwordwordword", `pass&ltwordwordwordwordword`},
		"HTML, a number before another": {"pass01word", `pass&#48%31word`},
		"behind a backslash":            {`dom\Alice`, `dom\\x%34%31lice`},
		"percent, the end of ASCII":     {"pass\u0080word", `pass%80word`},
		"backslash, a tab":              {"pass\tword", `pass\tword`},
		"octal, UTF-8":                  {"pässword", `p\303\244ssword`},
		"octal, all digits":             {"pass'word", `pass\047word`},
		"C, many digits, UTF-8":         {"pässword", `p\x00c3\x00a4ssword`},
		"quoted-printable, full line":   {"password", "pass=" + strings.Repeat(" ", 75) + "\nword"},
		"quoted-printable in an escape": {"pass=word", "pass%=\n=\r\n=\n3Dword"},
		"a writer for each letter":      {secret, `%70\u0061&#115;=73\x3d%2577o%22\\u0072d&apos;\061`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := finder(tt.secret)
			assert.Equal(t, "before [redacted] after", f.Text("before "+tt.form+" after"))
			assert.Equal(t, "[redacted]", f.Text(tt.form))
			assert.Equal(t, `{"a":"[redacted]"}`, f.Text(`{"a":"`+tt.form+`"}`))
			assert.Equal(t, "%[redacted]x", f.Text("%"+tt.form+"x"))
		})
	}
}

// alice:correct-horse, encoded in lines by the tool base64.
func TestBase64IsRead(t *testing.T) {
	t.Parallel()
	f := redact.NewFinder(
		redact.Hidden{Before: "alice:", Secret: redact.New("correct-horse")},
		redact.Hidden{Before: "Basic ", Secret: redact.New("YWxpY2U6Y29ycmVjdC1ob3JzZQ==")},
		redact.Hidden{Secret: redact.New("ÿþ?>ÿþ?>")},
	)
	for name, tt := range map[string]struct{ text, want string }{
		"user and password":         {`x YWxpY2U6Y29ycmVjdC1ob3JzZQ== y`, `x [redacted] y`},
		"a header":                  {`x Basic YWxpY2U6Y29ycmVjdC1ob3JzZQ== y`, `x [redacted] y`},
		"no padding":                {`x YWxpY2U6Y29ycmVjdC1ob3JzZQ y`, `x [redacted] y`},
		"padding as escapes":        {`x YWxpY2U6Y29ycmVjdC1ob3JzZQ%3d\u003D y`, `x [redacted] y`},
		"padding, quoted-printable": {`x YWxpY2U6Y29ycmVjdC1ob3JzZQ=3D3D=3D3D y`, `x [redacted] y`},
		"the password":              {`x Y29ycmVjdC1ob3JzZQ== y`, `x [redacted] y`},
		"behind one byte":           {`x IWNvcnJlY3QtaG9yc2U= y`, `x I[redacted] y`},
		"behind two bytes":          {`x ISFjb3JyZWN0LWhvcnNl y`, `x IS[redacted] y`},
		"between others":            {`x ISEhY29ycmVjdC1ob3JzZSEhIQ== y`, `x ISEh[redacted]EhIQ== y`},
		"behind a letter":           {`x qY29ycmVjdC1ob3JzZQ== y`, `x q[redacted] y`},
		"both alphabets":            {`w7/Dvj8+w7/Dvj8+ w7_Dvj8-w7_Dvj8-`, `[redacted] [redacted]`},
		"alphabets as escapes":      {`w7\/Dvj8%2bw7\u002fDvj8&#43; w7%5FDvj8%2Dw7%255fDvj8-`, `[redacted] [redacted]`},
		"behind an equals sign":     {`a=w7/Dvj8%2bw7/Dvj8%2B&b`, `a=[redacted]&b`},
		"lines":                     {"x Y29ycmVj\r\ndC1ob3Jz\r\nZQ== y", `x [redacted] y`},
		"lines, quoted-printable":   {"x Y29ycmVj=\r\ndC1ob3JzZQ=3D=3D y", `x [redacted] y`},
		"only escapes":              {`x %59%32%39%79%63%6d%56%6a%64%43%31%6f%62%33%4a%7a%5a%51 y`, `x [redacted] y`},
		"lines as escapes":          {`x Y29ycmVj\r\ndC1ob3Jz\nZQ== y`, `x [redacted] y`},
		"twice":                     {`x WTI5eWNtVmpkQzFvYjNKelpRPT0= y`, `x [redacted] y`},
		"thrice":                    {`x V1RJNWVXTnRWbXBrUXpGdllqTktlbHBSUFQwPQ== y`, `x [redacted] y`},
		"four times":                {`x VjFSSk5XVlhUblJXYlhCclVYcEdkbGxxVGt0bGJIQlNVRlF3UFE9PQ== y`, `x VjFSSk5XVlhUblJXYlhCclVYcEdkbGxxVGt0bGJIQlNVRlF3UFE9PQ== y`},
		"with escapes inside":       {`x Y29ycmVjdCUyRGhvcnNl y`, `x [redacted] y`},
		"escapes inside and around": {`x Y29ycmVjd%43UyRGhvcnNl y`, `x [redacted] y`},
		"escapes in escapes around": {`x \1%33129ycmVjdC1ob3JzZQ== y`, `x [redacted] y`},
		"behind a percent sign":     {`x%e2NvcnJlY3QtaG9&#121;c2U= y`, `x%e[redacted] y`},
		"something else":            {`x Y29ycmVjdC1ob3JzYQ== y`, `x Y29ycmVjdC1ob3JzYQ== y`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, f.Text(tt.text))
		})
	}
}

// If any byte of a secret's Base64 text is changed, to a Base64 character or another one, the text does not hold the
// secret.
func TestNoOtherByteStandsForOneOfBase64(t *testing.T) {
	t.Parallel()
	f := finder("secret")
	assert.Equal(t, "[redacted]", f.Text("c2VjcmV0"))
	for c := range 256 {
		if text := "c2VjcmV" + string([]byte{byte(c)}); c != '0' {
			assert.Equal(t, text, f.Text(text))
		}
	}
}
