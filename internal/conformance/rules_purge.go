package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	purgePath = "/cache/purge"

	exact  = "EXACT_LITERAL"
	prefix = "PREFIX_LITERAL"

	notThere = "www.conformance.invalid" // a domain that no customer has (RFC 6761)

	// purgeGap is long enough that no three purge requests arrive in one second, even if the network delays them.
	purgeGap = 600 * time.Millisecond
)

type object map[string]any

// purgeOf returns the body of a purge request of one URI. A member with the value "" is absent. The pattern may contain
// {uri} for the PurgeURI, or {bare} for the same without its protocol.
func (p *probe) purgeOf(action, mode, pattern, modifier string) object {
	_, bare, _ := strings.Cut(p.PurgeURI, "://")
	pattern = strings.NewReplacer("{uri}", p.PurgeURI, "{bare}", bare).Replace(pattern)
	uri := object{"match_mode": mode, "uri_pattern": pattern, "cache_key_modifier_regex": modifier}
	request := object{"action": action, "uris": []object{uri}}
	for _, o := range []object{uri, request} {
		maps.DeleteFunc(o, func(_ string, value any) bool { return value == "" })
	}
	return object{"purge_request": request}
}

// purge sends a purge request as soon as the rate allows.
func (p *probe) purge(body object, who as) response {
	return p.paced(1, func() response { return p.send(http.MethodPost, purgePath, body, who) })[0]
}

// purges sends count purges of the PurgeURI at once.
func (p *probe) purges(count int) []response {
	body := p.purgeOf("EXPIRE", exact, "{uri}", "")
	return p.paced(count, func() response { return p.send(http.MethodPost, purgePath, body, p.User.basic) })
}

// paced sends requests that may count against the purge rate. Several are sent with no others in their second.
func (p *probe) paced(count int, send func() response) []response {
	p.need(p.PurgeURI != "", "it needs --purge-uri")
	gap := purgeGap
	if count > 1 {
		p.pause(time.Second)
		gap = 1100 * time.Millisecond
	}
	p.pause(p.nextPurge.Sub(p.Now()))
	responses := make([]response, count)
	for i := range responses {
		responses[i] = send()
	}
	p.nextPurge = p.Now().Add(gap)
	return responses
}

// purgeOne sends a purge of the PurgeURI.
func (p *probe) purgeOne(who as) response {
	return p.purge(p.purgeOf("PURGE", exact, "{uri}", ""), who)
}

// What a purge is answered, beside a status: any that open point 7 allows, or any refusal.
const (
	taken   = 0
	refused = -1
)

// purgeCases are the rules about a purge of one URI by the user.
var purgeCases = []struct {
	section, text                   string
	answer                          int
	action, mode, pattern, modifier string
}{
	{"2.2", "action PURGE is accepted", taken, "PURGE", exact, "{uri}", ""},
	{"2.2", "action EXPIRE is accepted", taken, "EXPIRE", exact, "{uri}", ""},
	{"2.2", "another action is rejected", refused, "CONFORMANCE", exact, "{uri}", ""},
	{"2.2", "action is required", refused, "", exact, "{uri}", ""},
	{"2.2", "match_mode PREFIX_LITERAL is accepted", taken, "PURGE", prefix, "{uri}", ""},
	{"2.2", "another match_mode is rejected", refused, "EXPIRE", "CONFORMANCE", "{uri}", ""},
	{"2.2", "match_mode is required", refused, "EXPIRE", "", "{uri}", ""},
	{"2.2", "uri_pattern is required", refused, "EXPIRE", exact, "", ""},
	{"2.2", "cache_key_modifier_regex with PREFIX_LITERAL may be a plain string", taken, "EXPIRE", prefix, "{uri}", "conformance"},
	{"2.2", "cache_key_modifier_regex with PREFIX_LITERAL may end in a wildcard", taken, "EXPIRE", prefix, "{uri}", "conformance*"},
	{"2.2", "cache_key_modifier_regex with a wildcard that is not a suffix is rejected", refused, "EXPIRE", prefix, "{uri}", "con*formance"},
	{"4.4", "EXACT_LITERAL without protocol is accepted", taken, "PURGE", exact, "{bare}", ""},
	{"4.4", "PREFIX_LITERAL without protocol is accepted", taken, "PURGE", prefix, "{bare}", ""},
	{"4.4", "PREFIX_LITERAL may name a directory", taken, "PURGE", prefix, "{uri}/", ""},
	{"4.4", "a wildcard domain of no property is rejected", refused, "EXPIRE", prefix, "*." + notThere + "/", ""},
	{"4.4", "cache_key_modifier_regex with EXACT_LITERAL is rejected with 400", http.StatusBadRequest, "EXPIRE", exact, "{uri}", "conformance"},
	{"7", "a purge without configuration for the path is rejected with 400", http.StatusBadRequest, "EXPIRE", exact, "http://" + notThere + "/", ""},
}

// answered checks the answer to a purge.
func (r response) answered(answer int) {
	switch answer {
	case taken:
		r.p.want(r.status < 400, "the purge returned %d", r.status)
	case refused:
		r.refused("with such a body")
	default:
		r.wanted(answer)
	}
}

// purgeRules are the rules about POST purge.
func purgeRules() []Rule {
	var rules []Rule
	for _, c := range purgeCases {
		rules = append(rules, stated(c.section, c.text, func(p *probe) {
			p.purge(p.purgeOf(c.action, c.mode, c.pattern, c.modifier), p.User.basic).answered(c.answer)
		}))
	}
	const unobservable = "caches are not part of this interface"
	return append(rules,
		stated("2.2", "purge_request and uris are required", func(p *probe) {
			p.purge(object{}, p.User.basic).answered(refused)
			p.purge(object{"purge_request": object{"action": "EXPIRE"}}, p.User.basic).answered(refused)
		}),
		unseen("2.2", "EXPIRE keeps the objects and PURGE does not", unobservable),
		stated("2.3", "members of a purge response have their types", func(p *probe) {
			r := p.purgeOne(p.User.basic)
			p.need(r.status < 400, "the purge returned %d", r.status)
			p.strict = true
			r.json().is("PurgeReceipt")
		}),
		stated("2.3", "transaction_status_uri has the form transactions, id", func(p *probe) {
			body := p.purgeOne(p.User.basic).json()
			id, address := body.at("transaction_id").integer(), body.at("purge_response").at("transaction_status_uri")
			p.strict = true
			address.address(transactionPath(id))
		}),
		open("2.3", 29, "form of transaction_status_uri", func(p *probe) {
			_, form := p.relative(p.purgeOne(p.User.basic).json().at("purge_response").at("transaction_status_uri").text())
			p.saw("%s", form)
		}),

		stated("4.4", "a purge returns 201 or 303, and code 201", func(p *probe) {
			r := p.purgeOne(p.User.basic)
			r.wanted(http.StatusCreated, http.StatusSeeOther) // open point 7
			p.strict = true
			code := r.json().at("code").integer()
			p.want(code == http.StatusCreated, "the status is %d and code is %d", r.status, code)
		}),
		stated("4.4", "purge rejects a method other than POST with 405", func(p *probe) {
			p.paced(1, func() response { return p.get(purgePath) })[0].wanted(http.StatusMethodNotAllowed)
		}),
		stated("4.4", "purge rejects a Content-Type other than JSON with 406", func(p *probe) {
			p.purgeOne(func(r *http.Request) {
				p.User.basic(r)
				r.Header.Set("Content-Type", "text/plain")
			}).wanted(http.StatusNotAcceptable)
		}),
		returned("4.4", 44, "a uri_pattern with a fragment", func(p *probe) response {
			return p.purge(p.purgeOf("EXPIRE", exact, "{uri}#conformance", ""), p.User.basic)
		}),
		open("4.4", 7, "response to a purge", func(p *probe) {
			r := p.purgeOne(p.User.basic)
			p.saw("%d, Location: %t, body: %t", r.status, r.header.Get("Location") != "", len(r.body) > 0)
		}),
		stated("4.4", "a wildcard domain of a property is accepted", func(p *probe) {
			p.need(p.PurgeWildcard != "", "it needs --purge-wildcard")
			p.purge(p.purgeOf("EXPIRE", prefix, p.PurgeWildcard, ""), p.User.basic).answered(taken)
		}),
		unseen("4.4", "exact purges are protocol-specific and prefix purges are not", unobservable),
		unseen("4.4", "a prefix purge reaches everything under it", unobservable),

		stated("5", "a user who may not purge the domain gets 400", func(p *probe) {
			p.need(p.Visitor.Name != "", "it needs WEBDELIVERY_VISITOR_USERNAME")
			p.purgeOne(p.Visitor.basic).wanted(http.StatusBadRequest)
		}),
		stated("7", "purge rejects a bad password and an invalid authtoken with 403", func(p *probe) {
			p.purgeOne(stranger).wanted(http.StatusForbidden)
			p.purgeOne(cookie(absentID)).wanted(http.StatusForbidden)
		}),
		stated("7", "the body of a rejected purge has code, the HTTP status, and description", func(p *probe) {
			r := p.purge(object{}, p.User.basic)
			p.need(r.status >= 400, "the purge returned %d", r.status)
			p.strict = true
			p.want(r.json().at("code").integer() == int64(r.status), "code is not %d", r.status)
			r.json().at("description").text()
		}),
		unseen("7", "a fault in the purge infrastructure returns 5xx", "it cannot be brought about"),

		stated("8", "two purge requests in one second are accepted", func(p *probe) {
			for _, r := range p.purges(2) {
				r.answered(taken)
			}
		}),
		open("8", 8, "more than two purge requests in one second", func(p *probe) {
			p.need(p.ExceedPurgeRate, "the suite sends at most two")
			third := p.purges(3)[2]
			p.saw("the third returned %d, Retry-After: %q", third.status, third.header.Get("Retry-After"))
		}),
		open("8", 39, "purges rejected as too fast count against the rate", refusedCount),
		stated("8", "there is no limit on uri objects", func(p *probe) {
			body := p.purgeOf("EXPIRE", exact, "{uri}", "")
			request := body["purge_request"].(object)
			request["uris"] = slices.Repeat(request["uris"].([]object), 1000)
			p.purge(body, p.User.basic).answered(taken)
		}),
	)
}

// refusedCount sends two purges, then two more within the same second, which are rejected. The last one comes when only
// the rejected ones could still fill the rate.
func refusedCount(p *probe) {
	p.need(p.ExceedPurgeRate, "the suite sends at most two")
	accepted := p.purges(2)
	began := p.Now()
	p.need(accepted[0].status < 400 && accepted[1].status < 400, "two purges in one second were not accepted")
	p.pause(600 * time.Millisecond)
	p.nextPurge = time.Time{}
	for range 2 {
		r := p.purgeOne(p.User.basic)
		p.nextPurge = time.Time{}
		if r.status < 400 {
			p.nextPurge = p.Now().Add(2 * time.Second)
			p.saw("a third purge in one second returned %d", r.status)
		}
	}
	p.pause(began.Add(1100 * time.Millisecond).Sub(p.Now()))
	last := p.purgeOne(p.User.basic)
	p.nextPurge = p.Now().Add(2 * time.Second)
	p.saw("after two rejected ones, and none accepted in the last second, a purge returned %d", last.status)
}

// transactionRules are the rules about transactions.
func transactionRules() []Rule {
	return []Rule{
		stated("2.3", "members of a transaction status have their types", func(p *probe) {
			id := p.transaction()
			body := p.read(transactionPath(id))
			p.strict = true
			p.want(body.is("Transaction").at("transaction_id").integer() == id, "another transaction was read")
		}),
		stated("3", "a transaction in progress is PENDING, and its end_ts negative", func(p *probe) {
			of := p.read(transactionPath(p.transaction())).at("transaction_response")
			percent, status := of.at("percent_received_responses").integer(), of.at("transaction_status").text()
			p.need(percent < 100 || status == "PENDING", "the transaction was over at once")
			end := of.at("end_ts").integer()
			p.want(status == "PENDING" && end < 0, "with %d %% transaction_status is %q, and end_ts %d", percent, status, end)
		}),
		open("3", 9, "transactions that are over or have failed", func(p *probe) {
			last := p.transaction()
			p.until(func() bool {
				return p.read(transactionPath(last)).at("transaction_response").at("transaction_status").text() != "PENDING"
			})
			statuses := map[string]bool{}
			for _, id := range p.begun[max(0, len(p.begun)-10):] {
				body := p.read(transactionPath(id))
				of := body.at("transaction_response")
				status, ended := of.at("transaction_status").text(), of.at("end_ts").integer() >= 0
				statuses[fmt.Sprintf("%s, code %d, ended: %t", status, body.at("code").integer(), ended)] = true
			}
			p.saw("those of the run, over or not: %s", list(statuses))
		}),
		stated("4.4", "GET of a transaction returns 200 and code 200", func(p *probe) {
			r := p.get(transactionPath(p.transaction()))
			r.wanted(http.StatusOK)
			code := r.json().at("code").integer()
			p.want(code == http.StatusOK, "code is %d", code)
		}),
		returned("4.4", 38, "a transaction that does not exist", func(p *probe) response { return p.get(transactionPath(1)) }),
	}
}

func transactionPath(id int64) string { return "/transactions/" + strconv.FormatInt(id, 10) }

// transaction starts a purge and finds its id in any of its possible places (open point 7).
func (p *probe) transaction() (id int64) {
	r := p.purgeOne(p.User.basic)
	p.need(r.status < 400, "the purge returned %d", r.status)
	if len(r.body) > 0 {
		id = r.json().at("transaction_id").integer()
	} else {
		var err error
		id, err = strconv.ParseInt(path.Base(r.header.Get("Location")), 10, 64)
		p.need(err == nil, "the purge has no transaction id")
	}
	p.begun = append(p.begun, id)
	return id
}
