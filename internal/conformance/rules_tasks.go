package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const absentID = "conformance-absent" // an id that no service has

func taskRules() []Rule {
	return []Rule{
		stated("2.1", "members of a task have their types", func(p *probe) { p.eachTask(func(task node) { task.is("Task") }) }),
		stated("2.1", "a task that runs has no end_time", func(p *probe) {
			found := false
			p.eachTask(func(task node) {
				if !task.at("complete").flag() && !task.has("error_info") {
					found = true
					p.want(!task.has("end_time"), "%s is neither complete nor has error_info, but an end_time", task.path)
				}
			})
			p.need(found, "no task runs")
		}),
		open("2.1", 4, "status, operation and progress of a task", func(p *probe) {
			statuses, operations, progress := map[string]bool{}, map[string]bool{}, []int64(nil)
			p.eachTask(func(task node) {
				note(statuses, task, "status")
				note(operations, task, "operation")
				if task.has("progress") {
					progress = append(progress, task.at("progress").integer())
				}
			})
			slices.Sort(progress)
			p.saw("status: %s; operation: %s; progress: %d", list(statuses), list(operations), slices.Compact(progress))
		}),
		open("2.1", 40, "meaning of the uri of a task", func(p *probe) {
			task := p.someTasks()[0]
			path, form := p.relative(task.at("uri").text())
			p.need(path != "", "it is %s", form)
			same := path == p.tasks("/"+url.PathEscape(task.at("id").text()))
			p.saw("%s, returned %d; the path of GET of that task: %t", form, p.get(path).status, same)
		}),

		stated("4.1", "GET tasks returns 200 for a page of tasks", func(p *probe) { p.get(p.tasks("")).wanted(http.StatusOK) }),
		open("4.1", 1, "path prefix of the tasks", func(p *probe) {
			p.saw("%q returns %d", p.TasksPrefix, p.get(p.tasks("")).status)
		}),
		open("4.1", 2, "body of GET tasks", func(p *probe) {
			_, shape := p.tasksOf(p.read(p.tasks("")))
			p.saw("%s", shape)
		}),
		open("4.1", 2, "default of count of tasks", func(p *probe) {
			tasks, more := p.readTasks(""), p.readTasks("?count=100")
			p.need(len(more) > len(tasks), "there are not more tasks than come by default (%d)", len(tasks))
			p.saw("%d", len(tasks))
		}),
		stated("4.1", "count and page of tasks cut the tasks into pages", func(p *probe) {
			first, second := p.readTasks("?count=1&page=1"), p.readTasks("?count=1&page=2")
			p.want(len(first) <= 1 && len(second) <= 1, "pages of one have %d and %d tasks", len(first), len(second))
			p.need(len(first) == 1 && len(second) == 1, "there are not two tasks")
			p.want(first[0].at("id").text() != second[0].at("id").text(), "both pages have the same task")
		}),
		stated("4.1", "since leaves out tasks that were not updated since", sinceFilter),
		open("4.1", 3, "spelling of since", func(p *probe) {
			var taken []string
			for _, spelling := range []string{"2026-01-31T00:00:00.000+0000", "2026-01-31T00:00:00.000Z", "2026-01-31"} {
				r := p.get(p.tasks("?since=" + url.QueryEscape(spelling)))
				taken = append(taken, fmt.Sprintf("%s: %d", spelling, r.status))
			}
			p.saw("%s", strings.Join(taken, ", "))
		}),
		stated("4.1", "status of tasks leaves tasks of that status", func(p *probe) { taskFilter(p, "status") }),
		stated("4.1", "operation of tasks leaves tasks of that operation", func(p *probe) { taskFilter(p, "operation") }),
		stated("4.1", "GET tasks rejects invalid query parameters with 400", func(p *probe) {
			p.rejects(p.tasks(""), "page=x", "count=x", "since=x")
		}),
		stated("4.1", "GET of a task returns 200 and that task", func(p *probe) {
			id := p.someTasks()[0].at("id").text()
			r := p.get(p.tasks("/" + url.PathEscape(id)))
			r.wanted(http.StatusOK)
			p.strict = true
			p.want(r.json().at("id").text() == id, "another task was read")
		}),
		stated("4.1", "GET of a task that does not exist returns 404", func(p *probe) {
			p.get(p.tasks("/" + absentID)).wanted(http.StatusNotFound)
		}),
	}
}

// tasks returns the path of the tasks, followed by rest.
func (p *probe) tasks(rest string) string { return p.TasksPrefix + "/tasks" + rest }

// tasksOf returns the tasks of a page, whatever its shape (open point 2).
func (p *probe) tasksOf(body node) (tasks []node, shape string) {
	switch {
	case body.has("items"):
		return body.at("items").items(), "the paged envelope of section 2.6"
	case body.has("tasks"):
		return body.at("tasks").items(), "an object with tasks"
	default:
		return body.items(), "an array"
	}
}

// readTasks returns the tasks of the page that a query selects.
func (p *probe) readTasks(query string) []node {
	tasks, _ := p.tasksOf(p.read(p.tasks(query)))
	return tasks
}

// someTasks returns the tasks of the first page, at least one.
func (p *probe) someTasks() []node {
	tasks := p.readTasks("")
	p.need(len(tasks) > 0, "there are no tasks")
	return tasks
}

// eachTask visits the tasks of the first page. A rule about their members needs at least one.
func (p *probe) eachTask(visit func(task node)) {
	tasks := p.someTasks()
	p.strict = true
	for _, task := range tasks {
		visit(task)
	}
}

// sinceFilter queries the tasks updated at or after the time of the middle task.
func sinceFilter(p *probe) {
	tasks := p.readTasks("?count=100")
	var times []time.Time
	for _, task := range tasks {
		times = append(times, task.at("last_updated").time())
	}
	slices.SortFunc(times, time.Time.Compare)
	p.need(len(times) > 1 && times[0].Before(times[len(times)-1]), "there are not two tasks updated at different times")
	since := times[len(times)/2]
	if !since.After(times[0]) {
		since = times[len(times)-1]
	}
	since = since.Truncate(time.Millisecond)
	left := p.readTasks("?since=" + url.QueryEscape(since.Format("2006-01-02T15:04:05.000")+"+0000"))
	for _, task := range left {
		p.want(!task.at("last_updated").time().Before(since), "a task updated before %s came", since)
	}
	p.want(len(left) > 0, "no task came, not even that updated at %s", since)
}

func taskFilter(p *probe, name string) {
	values := map[string]bool{}
	for _, task := range p.readTasks("?count=100") {
		note(values, task, name)
	}
	p.need(len(values) > 0, "no task has the member %s", name)
	for _, wanted := range slices.Sorted(maps.Keys(values))[:min(len(values), 5)] {
		left := p.readTasks("?" + name + "=" + url.QueryEscape(wanted))
		p.want(len(left) > 0, "no task came, although there was one")
		for _, task := range left {
			p.want(task.at(name).text() == wanted, "a task of another %s came", name)
		}
	}
	none := p.readTasks("?" + name + "=" + absentID)
	p.want(len(none) == 0, "%d tasks came for a value that none has", len(none))
}

// note collects the values of a member, list prints them.
func note(values map[string]bool, object node, name string) {
	if object.has(name) {
		values[object.at(name).text()] = true
	}
}

func list(values map[string]bool) string {
	var all []string
	for value := range values {
		all = append(all, fmt.Sprintf("%q", value))
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), 20)], ", ")
}
