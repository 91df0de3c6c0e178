package testserver

// What generated traffic looks like. Shares are in 256ths.

// lot is a set of things, each of which is drawn as often as its share says.
type lot[T any] struct {
	items []T
	drawn [256]uint8 // index into items by byte
}

type share[T any] struct {
	item T
	of   int
}

// newLot takes shares that add up to 256.
func newLot[T any](shares ...share[T]) *lot[T] {
	l := &lot[T]{}
	place := 0
	for i, s := range shares {
		l.items = append(l.items, s.item)
		for range s.of {
			l.drawn[place] = uint8(i)
			place++
		}
	}
	return l
}

// pick draws by the lowest byte.
func (l *lot[T]) pick(bits uint64) T { return l.items[l.drawn[byte(bits)]] }

type site struct{ domain, property string }

type rule struct{ id, severity string }

type asn struct {
	country string
	asn     int64
	net     [2]byte
}

var (
	types = newLot([]share[string]{
		{TypeRequest, 112},
		{TypeWAF, 74},
		{TypeCustom, 22},
		{TypeBlockIP, 14},
		{TypeBlockCountry, 10},
		{TypeRateLimitIP, 16},
		{TypeRateLimitCountry, 8},
	}...)

	attacks = []string{TypeWAF, TypeCustom, TypeRateLimitIP}

	networks = newLot([]share[asn]{
		{asn{"US", 7922, [2]byte{73, 12}}, 52},
		{asn{"US", 14618, [2]byte{54, 80}}, 30},
		{asn{"CN", 4134, [2]byte{58, 32}}, 38},
		{asn{"CN", 4837, [2]byte{60, 16}}, 12},
		{asn{"DE", 3320, [2]byte{79, 200}}, 26},
		{asn{"RU", 12389, [2]byte{95, 24}}, 22},
		{asn{"IN", 55836, [2]byte{49, 36}}, 20},
		{asn{"BR", 28573, [2]byte{177, 32}}, 16},
		{asn{"FR", 16276, [2]byte{51, 68}}, 14},
		{asn{"VN", 45899, [2]byte{113, 160}}, 10},
		{asn{"NG", 4200000017, [2]byte{102, 88}}, 6}, // a 32-bit number
		{asn{"JP", 2516, [2]byte{106, 128}}, 6},
		{asn{"IS", 6677, [2]byte{157, 157}}, 2},
		{asn{"", 0, [2]byte{198, 51}}, 2}, // nobody knows where that is
	}...)

	browsers = newLot([]share[string]{
		{"Chrome", 128}, {"Safari", 40}, {"Firefox", 26}, {"Edge", 20}, {"curl", 16}, {"", 14}, {"Opera, mini; \"old\"", 12},
	}...)

	sites = newLot([]share[site]{
		{site{"www.example.com", "shop"}, 128},
		{site{"api.example.com", "shop"}, 64},
		{site{"img.example.com", "media"}, 40},
		{site{"www.example.net", "corporate"}, 24},
	}...)

	paths = newLot([]share[string]{
		{"/", 70},
		{"/login", 50},
		{"/search", 36},
		{"/api/v2/orders", 28},
		{"/wp-login.php", 22},
		{"/img/logo.svg", 16},
		{"/.env", 12},
		{"/report;v=2,final", 10}, // characters that filters escape
		{"/caf\u00e9/men\u00fc", 6},
		{`/..\..\etc\passwd`, 4},
		{"/a=b==c!=d", 2},
	}...)

	wafRules = newLot([]share[rule]{
		{rule{"942100", "CRITICAL"}, 90},
		{rule{"941100", "CRITICAL"}, 60},
		{rule{"930120", "ERROR"}, 40},
		{rule{"913100", "WARNING"}, 36},
		{rule{"920350", "NOTICE"}, 30},
	}...)

	customRules = newLot([]share[rule]{
		{rule{"custom-login", "WARNING"}, 160},
		{rule{"custom-scraper", "NOTICE"}, 96},
	}...)

	wafActions     = newLot([]share[string]{{"WARN", 150}, {"BLOCK", 106}}...)
	shapingActions = newLot([]share[string]{{"BLOCK", 200}, {"WARN", 56}}...)
)
