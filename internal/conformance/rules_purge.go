package conformance

import (
	"fmt"
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
)

// purgeGap is long enough that no three purge requests arrive in one second, even if the network delays them.
const purgeGap = 600 * time.Millisecond

type object map[string]any

// purgeOf returns the body of a purge request.
func purgeOf(action string, uris ...object) object {
	return object{"purge_request": object{"action": action, "uris": uris}}
}

func uri(mode, pattern string) object { return object{"match_mode": mode, "uri_pattern": pattern} }

func modified(mode, pattern, modifier string) object {
	return object{"match_mode": mode, "uri_pattern": pattern, "cache_key_modifier_regex": modifier}
}

// purge sends a purge request as soon as the rate allows.
func (p *probe) purge(body object, who as) response {
	return p.purges(1, body, who)[0]
}

// purges sends count purge requests at once. If there is more than one, no others share their second.
func (p *probe) purges(count int, body object, who as) []response {
	return p.paced(count, func() response { return p.send(http.MethodPost, purgePath, body, who) })
}

// paced sends requests that may count against the purge rate.
func (p *probe) paced(count int, send func() response) []response {
	p.need(p.PurgeURI != "", "it needs --purge-uri")
	if count > 1 {
		p.pause(time.Second)
	}
	p.pause(p.nextPurge.Sub(p.Now()))
	responses := make([]response, count)
	for i := range responses {
		responses[i] = send()
	}
	p.nextPurge = p.Now().Add(purgeGap)
	if count > 1 {
		p.nextPurge = p.Now().Add(1100 * time.Millisecond)
	}
	return responses
}

// taken checks that the service accepts a purge, with any status that open point 7 allows.
func (p *probe) taken(what string, body object) {
	r := p.purge(body, p.User.basic)
	p.want(r.status < 400, "%s returned %d", what, r.status)
}

func (p *probe) bare() string {
	_, rest, found := strings.Cut(p.PurgeURI, "://")
	if !found {
		rest = p.PurgeURI
	}
	return rest
}

// purgeRules are the rules about POST purge.
func purgeRules() []Rule {
	rejects := func(rule string, body func(*probe) object) Rule {
		return stated("2.2", rule, func(p *probe) { p.purge(body(p), p.User.basic).refused("with such a body") })
	}
	const unobservable = "caches are not part of this interface"
	return []Rule{
		stated("2.2", "action PURGE is accepted", func(p *probe) { p.taken("PURGE", purgeOf("PURGE", uri(exact, p.PurgeURI))) }),
		stated("2.2", "action EXPIRE is accepted", func(p *probe) { p.taken("EXPIRE", purgeOf("EXPIRE", uri(exact, p.PurgeURI))) }),
		rejects("another action is rejected", func(p *probe) object { return purgeOf("CONFORMANCE", uri(exact, p.PurgeURI)) }),
		stated("2.2", "match_mode PREFIX_LITERAL is accepted", func(p *probe) {
			p.taken(prefix, purgeOf("PURGE", uri(prefix, p.PurgeURI)))
		}),
		rejects("another match_mode is rejected", func(p *probe) object { return purgeOf("EXPIRE", uri("CONFORMANCE", p.PurgeURI)) }),
		rejects("purge_request is required", func(*probe) object { return object{} }),
		rejects("action is required", func(p *probe) object {
			return object{"purge_request": object{"uris": []object{uri(exact, p.PurgeURI)}}}
		}),
		rejects("uris is required", func(*probe) object { return object{"purge_request": object{"action": "EXPIRE"}} }),
		rejects("match_mode is required", func(p *probe) object { return purgeOf("EXPIRE", object{"uri_pattern": p.PurgeURI}) }),
		rejects("uri_pattern is required", func(*probe) object { return purgeOf("EXPIRE", object{"match_mode": exact}) }),
		stated("2.2", "cache_key_modifier_regex with PREFIX_LITERAL may be a plain string or end in a wildcard", func(p *probe) {
			p.taken("a plain string", purgeOf("EXPIRE", modified(prefix, p.PurgeURI, "conformance")))
			p.taken("a string with a wildcard suffix", purgeOf("EXPIRE", modified(prefix, p.PurgeURI, "conformance*")))
		}),
		rejects("cache_key_modifier_regex with a wildcard that is not a suffix is rejected", func(p *probe) object {
			return purgeOf("EXPIRE", modified(prefix, p.PurgeURI, "con*formance"))
		}),
		unseen("2.2", "EXPIRE keeps the objects and PURGE does not", unobservable),

		stated("2.3", "members of a purge response have their types", func(p *probe) {
			r := p.purge(purgeOf("PURGE", uri(exact, p.PurgeURI)), p.User.basic)
			p.need(r.status < 400, "the purge returned %d", r.status)
			p.strict = true
			body := r.json()
			p.want(body.at("code").integer() == int64(r.code()), "code is %d, the status %d", body.at("code").integer(), r.status)
			body.at("description").text()
			body.at("transaction_id").integer()
			body.at("purge_response").at("transaction_status_uri").text()
		}),
		stated("2.3", "transaction_status_uri has the form transactions, id", func(p *probe) {
			body := p.purge(purgeOf("PURGE", uri(exact, p.PurgeURI)), p.User.basic).json()
			id := body.at("transaction_id").integer()
			address := body.at("purge_response").at("transaction_status_uri")
			p.strict = true
			address.address(fmt.Sprintf("/transactions/%d", id))
		}),
		open("2.3", 29, "form of transaction_status_uri", func(p *probe) {
			body := p.purge(purgeOf("PURGE", uri(exact, p.PurgeURI)), p.User.basic).json()
			_, form := p.relative(body.at("purge_response").at("transaction_status_uri").text())
			p.saw("%s", form)
		}),

		stated("4.4", "a purge returns 201, or with 303 and code 201", func(p *probe) {
			r := p.purge(purgeOf("PURGE", uri(exact, p.PurgeURI)), p.User.basic)
			r.wanted(http.StatusCreated, http.StatusSeeOther)
			p.strict = true
			if r.status == http.StatusSeeOther {
				code := r.json().at("code").integer()
				p.want(code == http.StatusCreated, "the status is 303 and code is %d", code)
			}
		}),
		stated("4.4", "purge rejects a method other than POST with 405", func(p *probe) {
			get := func() response { return p.get(purgePath) }
			p.paced(1, get)[0].wanted(http.StatusMethodNotAllowed)
		}),
		stated("4.4", "purge rejects a Content-Type other than JSON with 406", func(p *probe) {
			p.purge(purgeOf("EXPIRE", uri(exact, p.PurgeURI)), func(r *http.Request) {
				p.User.basic(r)
				r.Header.Set("Content-Type", "text/plain")
			}).wanted(http.StatusNotAcceptable)
		}),
		open("4.4", 44, "a uri_pattern with a fragment", func(p *probe) {
			r := p.purge(purgeOf("EXPIRE", uri(exact, p.PurgeURI+"#conformance")), p.User.basic)
			p.saw("returned %d", r.status)
		}),
		open("4.4", 7, "response to a purge", func(p *probe) {
			r := p.purge(purgeOf("PURGE", uri(exact, p.PurgeURI)), p.User.basic)
			p.saw("%d, Location: %t, body: %t", r.status, r.header.Get("Location") != "", len(r.body) > 0)
		}),
		stated("4.4", "EXACT_LITERAL without protocol is accepted", func(p *probe) {
			p.taken("a pattern without protocol", purgeOf("PURGE", uri(exact, p.bare())))
		}),
		stated("4.4", "PREFIX_LITERAL without protocol is accepted", func(p *probe) {
			p.taken("a pattern without protocol", purgeOf("PURGE", uri(prefix, p.bare())))
		}),
		stated("4.4", "PREFIX_LITERAL may name a directory", func(p *probe) {
			p.taken("a directory", purgeOf("PURGE", uri(prefix, strings.TrimSuffix(p.PurgeURI, "/")+"/")))
		}),
		unseen("4.4", "exact purges are protocol-specific and prefix purges are not", unobservable),
		unseen("4.4", "a prefix purge reaches everything under it", unobservable),
		stated("4.4", "a wildcard domain of a property is accepted", func(p *probe) {
			p.need(p.PurgeWildcard != "", "it needs --purge-wildcard")
			p.taken("a wildcard domain", purgeOf("EXPIRE", uri(prefix, p.PurgeWildcard)))
		}),
		stated("4.4", "a wildcard domain of no property is rejected", func(p *probe) {
			p.purge(purgeOf("EXPIRE", uri(prefix, "*."+notThere+"/")), p.User.basic).refused("with an unknown wildcard domain")
		}),
		stated("4.4", "cache_key_modifier_regex with EXACT_LITERAL is rejected with 400", func(p *probe) {
			p.purge(purgeOf("EXPIRE", modified(exact, p.PurgeURI, "conformance")), p.User.basic).wanted(http.StatusBadRequest)
		}),

		stated("5", "a user who may not purge the domain gets 400", func(p *probe) {
			p.need(p.Visitor.Name != "", "it needs WEBDELIVERY_VISITOR_USERNAME")
			p.purge(purgeOf("EXPIRE", uri(exact, p.PurgeURI)), p.Visitor.basic).wanted(http.StatusBadRequest)
		}),
		stated("7", "a purge without configuration for the path is rejected with 400", func(p *probe) {
			p.purge(purgeOf("EXPIRE", uri(exact, "http://"+notThere+"/conformance")), p.User.basic).wanted(http.StatusBadRequest)
		}),
		stated("7", "purge rejects a bad password with 403", func(p *probe) {
			p.purge(purgeOf("EXPIRE", uri(exact, p.PurgeURI)), stranger).wanted(http.StatusForbidden)
		}),
		stated("7", "purge rejects an invalid authtoken with 403", func(p *probe) {
			p.purge(purgeOf("EXPIRE", uri(exact, p.PurgeURI)), cookie(absentID)).wanted(http.StatusForbidden)
		}),
		stated("7", "the body of a rejected purge has code, the HTTP status, and description", func(p *probe) {
			r := p.purge(purgeOf("EXPIRE", modified(exact, p.PurgeURI, "conformance")), p.User.basic)
			p.need(r.status >= 400, "the purge returned %d", r.status)
			p.strict = true
			p.want(r.json().at("code").integer() == int64(r.status), "code is not %d", r.status)
			r.json().at("description").text()
		}),
		unseen("7", "a fault in the purge infrastructure returns 5xx", "it cannot be brought about"),

		stated("8", "two purge requests in one second are accepted", func(p *probe) {
			for _, r := range p.purges(2, purgeOf("EXPIRE", uri(exact, p.PurgeURI)), p.User.basic) {
				p.want(r.status < 400, "one returned %d", r.status)
			}
		}),
		open("8", 8, "more than two purge requests in one second", func(p *probe) {
			p.need(p.ExceedPurgeRate, "the suite sends at most two")
			responses := p.purges(3, purgeOf("EXPIRE", uri(exact, p.PurgeURI)), p.User.basic)
			p.saw("the third returned %d, Retry-After: %q", responses[2].status, responses[2].header.Get("Retry-After"))
		}),
		open("8", 39, "purges rejected as too fast count against the rate", refusedCount),
		stated("8", "there is no limit on uri objects", func(p *probe) {
			p.taken("a purge of 1,000 URIs", purgeOf("EXPIRE", slices.Repeat([]object{uri(exact, p.PurgeURI)}, 1000)...))
		}),
	}
}

// refusedCount sends two purges, then two more within the same second, which are rejected. The last one comes when only
// the rejected ones could still fill the rate.
func refusedCount(p *probe) {
	p.need(p.ExceedPurgeRate, "the suite sends at most two")
	body := purgeOf("EXPIRE", uri(exact, p.PurgeURI))
	accepted := p.purges(2, body, p.User.basic)
	began := p.Now()
	p.need(accepted[0].status < 400 && accepted[1].status < 400, "two purges in one second were not accepted")
	p.pause(600 * time.Millisecond)
	p.nextPurge = time.Time{}
	for range 2 {
		r := p.purge(body, p.User.basic)
		p.nextPurge = time.Time{}
		if r.status < 400 {
			p.nextPurge = p.Now().Add(2 * time.Second)
			p.saw("a third purge in one second returned %d", r.status)
		}
	}
	p.pause(began.Add(1100 * time.Millisecond).Sub(p.Now()))
	last := p.purge(body, p.User.basic)
	p.nextPurge = p.Now().Add(2 * time.Second)
	p.saw("after two rejected ones, and none accepted in the last second, a purge returned %d", last.status)
}

// code returns the expected code of a purge response: 201 for a 303, otherwise the status (open point 7).
func (r response) code() int {
	if r.status == http.StatusSeeOther {
		return http.StatusCreated
	}
	return r.status
}

// transactionRules are the rules about transactions.
func transactionRules() []Rule {
	return []Rule{
		stated("2.3", "members of a transaction status have their types", func(p *probe) {
			id := p.transaction()
			body := p.read(transactionPath(id))
			p.strict = true
			body.at("code").integer()
			body.at("description").text()
			p.want(body.at("transaction_id").integer() == id, "another transaction was read")
			status := body.at("transaction_response")
			status.at("begin_ts").integer()
			status.at("end_ts").integer()
			status.at("percent_received_responses").integer()
			status.at("transaction_status").text()
			status.at("transaction_status_description").text()
		}),
		stated("2.3", "begin_ts is in epoch seconds", func(p *probe) {
			begin := p.read(transactionPath(p.transaction())).at("transaction_response").at("begin_ts").integer()
			off := time.Unix(begin, 0).Sub(p.Now()).Abs()
			p.want(off < 24*time.Hour, "begin_ts is %d, %s away from now", begin, off)
		}),
		stated("2.3", "percent_received_responses is a percentage", func(p *probe) {
			percent := p.read(transactionPath(p.transaction())).at("transaction_response").at("percent_received_responses").integer()
			p.want(percent >= 0 && percent <= 100, "it is %d", percent)
		}),
		stated("2.3", "end_ts is negative while pending", func(p *probe) {
			status := p.read(transactionPath(p.transaction())).at("transaction_response")
			p.need(status.at("transaction_status").text() == "PENDING", "the transaction was over at once")
			p.want(status.at("end_ts").integer() < 0, "end_ts is %d", status.at("end_ts").integer())
		}),
		stated("3", "a transaction is PENDING while it is in progress", func(p *probe) {
			status := p.read(transactionPath(p.transaction())).at("transaction_response")
			p.need(status.at("percent_received_responses").integer() < 100, "the transaction was over at once")
			p.want(status.at("transaction_status").text() == "PENDING", "transaction_status is %q", status.at("transaction_status").value)
		}),
		open("3", 9, "a transaction that is over", func(p *probe) {
			id := p.transaction()
			done := p.until(func() bool {
				return p.read(transactionPath(id)).at("transaction_response").at("transaction_status").text() != "PENDING"
			})
			p.need(done, "the transaction stayed PENDING")
			body := p.read(transactionPath(id))
			status := body.at("transaction_response")
			p.saw("transaction_status %q, code %d, end_ts negative: %t", status.at("transaction_status").text(), body.at("code").integer(),
				status.at("end_ts").integer() < 0)
		}),
		open("3", 9, "transaction_status of transactions that failed", func(p *probe) {
			p.transaction()
			statuses := map[string]bool{}
			for _, id := range p.begun[:min(10, len(p.begun))] {
				body := p.read(transactionPath(id))
				status, code := body.at("transaction_response").at("transaction_status").text(), body.at("code").integer()
				statuses[fmt.Sprintf("%s, code %d", status, code)] = true
			}
			p.saw("those of the run, failed or not: %s", list(statuses))
		}),
		stated("4.4", "GET of a transaction returns 200 and code 200", func(p *probe) {
			r := p.get(transactionPath(p.transaction()))
			r.wanted(http.StatusOK)
			code := r.json().at("code").integer()
			p.want(code == http.StatusOK, "code is %d", code)
		}),
		open("4.4", 38, "a transaction that does not exist", func(p *probe) {
			p.saw("returned %d", p.get(transactionPath(1)).status)
		}),
		open("5", 6, "failed authentication at transactions", func(p *probe) {
			p.saw("a bad password returns %d, an invalid session returns %d",
				p.send(http.MethodGet, transactionPath(1), nil, stranger).status,
				p.send(http.MethodGet, transactionPath(1), nil, cookie(absentID)).status)
		}),
	}
}

func transactionPath(id int64) string { return "/transactions/" + strconv.FormatInt(id, 10) }

// transaction starts a purge and finds its id in any of its possible places (open point 7).
func (p *probe) transaction() (id int64) {
	r := p.purge(purgeOf("PURGE", uri(exact, p.PurgeURI)), p.User.basic)
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
