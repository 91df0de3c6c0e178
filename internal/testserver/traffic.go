package testserver

// The contents of generated traffic. Shares are in 256ths.

// lot is a set of items to draw from, each with the frequency of its share.
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

// asn is a network with a number reserved for documentation (one is for private use). part is its part of the addresses
// reserved for documentation.
type asn struct {
	country string
	asn     int64
	part    byte
}

var (
	types = newLot([]share[string]{
		{TypeWAF, 132}, {TypeCustom, 40}, {TypeBlockIP, 25}, {TypeBlockCountry, 18}, {TypeRateLimitIP, 28}, {TypeRateLimitCountry, 13},
	}...)

	attacks = []string{TypeWAF, TypeCustom, TypeRateLimitIP}

	networks = newLot([]share[asn]{
		{asn{"US", 64498, 0}, 52},
		{asn{"US", 64497, 1}, 30},
		{asn{"CN", 64496, 2}, 38},
		{asn{"CN", 64499, 3}, 12},
		{asn{"DE", 64500, 4}, 26},
		{asn{"RU", 64501, 5}, 22},
		{asn{"IN", 64502, 6}, 20},
		{asn{"BR", 64503, 7}, 16},
		{asn{"FR", 64504, 8}, 14},
		{asn{"VN", 64505, 9}, 10},
		{asn{"NG", 4200000017, 10}, 6}, // a 32-bit number
		{asn{"JP", 65536, 11}, 6},
		{asn{"IS", 65537, 12}, 2},
		{asn{"", 0, 13}, 2}, // unknown location
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

	customRules = newLot([]share[rule]{{rule{"custom-login", "WARNING"}, 160}, {rule{"custom-scraper", "NOTICE"}, 96}}...)

	wafActions     = newLot([]share[string]{{"WARN", 150}, {"BLOCK", 106}}...)
	shapingActions = newLot([]share[string]{{"BLOCK", 232}, {"WARN", 24}}...)
)

// vocabularies maps each word above to the word of a Dialect.Vocabulary. Portals of services with this interface use
// the words of "portal", with one type for all of traffic shaping.
var vocabularies = map[string]map[string]string{
	"portal": {
		TypeWAF: "WAF", TypeCustom: "Custom",
		TypeBlockIP: typeRateLimit, TypeBlockCountry: typeRateLimit, TypeRateLimitIP: typeRateLimit, TypeRateLimitCountry: typeRateLimit,
		"CRITICAL": "High", "ERROR": "Medium", "WARNING": "Low", "NOTICE": "Info",
		"BLOCK": "Block", "WARN": "Warn",
	},
}
