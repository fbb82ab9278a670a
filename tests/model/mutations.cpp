// The mutation command: `model_tests mutations` finds for every edge of device/edge.hpp, weakened in every way that applies
// to it, a search of the model tests that turns red. How it goes about:
//
// 1. Every test (not the explorer's own, [litmus]) runs as it is, in a process of its own, and must pass. Each call of explore() in
//    it is noted: its name, its place in the test, what it found, and which operations (kind, order, scope) of which edge its roles
//    made. The mutants are every edge x every mutation that leaves one of these operations weaker; no list is written by hand.
//    Operations in the text of device/ and host/ that no search made, with their order and scope, are found by reading it.
// 2. For each mutant the searches in which it changes something are run with it, one a process, the one that killed it last time
//    first, then the quickest, until one finds a failure. What other searches of that test would have found is answered from
//    the notes. A search that a test runs with mutations of its own, or with a planted bug, kills nobody.
// 3. Canaries: lost stores must be found; each search that killed must be green without its mutant, by the same way; the judgement
//    of the list of accepted survivors must notice an entry too many and one too few.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "tests/command.hpp"
#include "tests/model/catch.hpp"
#include "tests/model/explorer.hpp"
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace slipstream::model {

namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

// ---------------------------------------------------------------------------------------------------------------------
// processes

struct outcome {
    bool timed_out = false;
    int status = 0;     ///< as waitpid gives it
    std::string answer; ///< what it wrote for us
    std::string output; ///< its stdout and stderr
};

std::string contents(std::FILE* file)
{
    std::string out;
    std::rewind(file);
    char buffer[65536];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) != 0;) out.append(buffer, n);
    return out;
}

/// A forked process that runs one function.
class child {
public:
    child(const std::function<void(std::FILE*)>& run, double limit_seconds)
        : limit_(limit_seconds), answer_(std::tmpfile()), output_(std::tmpfile())
    {
        if (!answer_ || !output_) {
            std::perror("model_tests mutations: no temporary file");
            std::exit(2);
        }
        std::cout.flush();
        std::fflush(nullptr);
        pid_ = fork();
        if (pid_ < 0) {
            std::perror("model_tests mutations: no process");
            std::exit(2);
        }
        if (pid_ != 0) return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fileno(output_), STDOUT_FILENO);
        dup2(fileno(output_), STDERR_FILENO);
        run(answer_);
        leave(answer_, 0);
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child()
    {
        std::fclose(answer_);
        std::fclose(output_);
    }

    /// Ends the calling process from anywhere in it.
    [[noreturn]] static void leave(std::FILE* answer, int code)
    {
        std::cout.flush();
        std::fflush(answer);
        std::fflush(nullptr);
        _exit(code);
    }

    bool ended(outcome& out)
    {
        out = {};
        const pid_t got = waitpid(pid_, &out.status, WNOHANG);
        if (got == 0) {
            if (seconds_since(start_) < limit_) return false;
            kill(pid_, SIGKILL);
            waitpid(pid_, &out.status, 0);
            out.timed_out = true;
        }
        out.answer = contents(answer_);
        out.output = contents(output_);
        return true;
    }

private:
    double limit_;
    steady::time_point start_ = steady::now();
    std::FILE* answer_;
    std::FILE* output_;
    pid_t pid_ = 0;
};

outcome run_forked(const std::function<void(std::FILE*)>& run, double limit_seconds)
{
    child c(run, limit_seconds);
    outcome out;
    while (!c.ended(out)) std::this_thread::sleep_for(std::chrono::microseconds(300));
    return out;
}

/// job(index) in processes, so many at a time.
void run_all(std::size_t count, unsigned at_once, double limit_seconds, const std::function<void(std::size_t, std::FILE*)>& job,
             const std::function<void(std::size_t, const outcome&)>& done)
{
    std::map<std::size_t, std::unique_ptr<child>> running;
    for (std::size_t next = 0; next < count || !running.empty();) {
        while (next < count && running.size() < at_once) {
            const std::size_t i = next++;
            running[i] = std::make_unique<child>([&job, i](std::FILE* answer) { job(i, answer); }, limit_seconds);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (auto at = running.begin(); at != running.end();) {
            outcome out;
            if (!at->second->ended(out)) {
                ++at;
                continue;
            }
            done(at->first, out);
            at = running.erase(at);
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// searches

/// One call of explore() in a test.
struct searched {
    std::string test, name, what;
    u32 place = 0; ///< among the calls of its test
    bool failed = false;
    bool weakened_by_test = false; ///< the test itself had mutations on
    bool exhausted = false;
    u64 executions = 0, weakened = 0;
    double seconds = 0;
    std::array<edge_uses, edges> uses{};

    bool kills() const { return !failed && !weakened_by_test; } ///< green as it is: red under a mutant means something
    std::string id() const { return test + "\t" + name + "\t" + std::to_string(place); }
};

// Mutants may have more to search: so many times the time that a test gives a search.
constexpr double patience = 4;

std::string flat(std::string text)
{
    for (char& c : text)
        if (c == '\t' || c == '\n') c = ' ';
    return text;
}

void write(std::FILE* to, const searched& s)
{
    std::fprintf(to, "%s\t%s\t%s\t%u\t%d\t%d\t%d\t%llu\t%llu\t%.3f", flat(s.test).c_str(), flat(s.name).c_str(),
                 flat(s.what).c_str(), s.place, s.failed, s.weakened_by_test, s.exhausted,
                 static_cast<unsigned long long>(s.executions), static_cast<unsigned long long>(s.weakened), s.seconds);
    for (const edge_uses& u : s.uses) std::fprintf(to, "\t%llx", static_cast<unsigned long long>(u.bits()));
    std::fprintf(to, "\n");
    std::fflush(to);
}

std::vector<searched> read_searches(const std::string& text)
{
    std::vector<searched> out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        searched s;
        std::string field;
        const auto next = [&] {
            std::getline(fields, field, '\t');
            return field;
        };
        s.test = next();
        s.name = next();
        s.what = next();
        s.place = static_cast<u32>(std::stoul(next()));
        s.failed = next() == "1";
        s.weakened_by_test = next() == "1";
        s.exhausted = next() == "1";
        s.executions = std::stoull(next());
        s.weakened = std::stoull(next());
        s.seconds = std::stod(next());
        for (edge_uses& u : s.uses) u = edge_uses::of(std::stoull(next(), nullptr, 16));
        out.push_back(std::move(s));
    }
    return out;
}

/// What the stand-in for explore() does in this process.
struct {
    std::FILE* notes = nullptr; ///< set: note every search
    std::string test;           ///< the running one
    u32 place = 0;
    const std::vector<searched>* known = nullptr; ///< of this test, by place
    u32 wanted = 0;                               ///< place of the search to run
    bool with_trace = false;
} role;

searched summary(const report& r)
{
    searched s;
    s.test = role.test;
    s.name = r.name;
    s.what = r.failure ? r.failure->what : "";
    s.failed = r.failure.has_value();
    s.exhausted = r.exhausted;
    s.executions = r.executions;
    s.weakened = r.weakened;
    s.seconds = r.seconds;
    s.uses = r.uses;
    return s;
}

options patient(options how)
{
    how.seconds_max *= patience;
    return how;
}

report note_search(const options& how, const std::function<void(execution&)>& body)
{
    const bool by_itself = std::any_of(mutations.begin(), mutations.end(), [](mutation m) { return m != mutation::none; });
    report r = search_now(patient(how), body);
    searched s = summary(r);
    s.place = role.place++;
    s.weakened_by_test = by_itself;
    write(role.notes, s);
    return r;
}

report run_wanted(const options& how, const std::function<void(execution&)>& body)
{
    const u32 place = role.place++;
    if (place == role.wanted) {
        report r = search_now(patient(how), body);
        searched s = summary(r);
        s.place = place;
        write(role.notes, s);
        if (role.with_trace) std::cout << r.text() << "\n";
        child::leave(role.notes, 0);
    }
    report r;
    r.name = how.name;
    if (place >= role.known->size()) return r;
    const searched& s = (*role.known)[place];
    r.executions = s.executions;
    r.exhausted = s.exhausted;
    r.weakened = s.weakened;
    if (s.failed) r.failure = failure{s.what, "", ""};
    return r;
}

int run_test(catch_runner run_catch, const std::string& name)
{
    std::string spec;
    for (const char c : name) {
        if (std::strchr(",[]\"\\*~", c)) spec += '\\';
        spec += c;
    }
#if __has_include(<catch2/catch_all.hpp>)
    const char* arguments[] = {"model_tests", spec.c_str()}; // fails by itself when no test has this name
#else
    const char* arguments[] = {"model_tests", spec.c_str(), "-w", "NoTests"};
#endif
    return run_catch(static_cast<int>(std::size(arguments)), arguments);
}

// ---------------------------------------------------------------------------------------------------------------------
// mutants

constexpr mutation every_mutation[] = {mutation::relax, mutation::no_acquire, mutation::no_release, mutation::narrow};

const char* name_of(mutation m, const edge_uses& uses)
{
    switch (m) {
    case mutation::relax: return uses.fences_only() ? "drop" : "relax";
    case mutation::no_acquire: return "no-acquire";
    case mutation::no_release: return "no-release";
    case mutation::narrow: return "narrow";
    case mutation::lose: return "lose";
    default: return "none";
    }
}

bool changes(mutation m, const edge_uses& uses)
{
    bool out = false;
    uses.each([&](access_kind k, device::order o, device::scope s) {
        out |= m == mutation::lose ? k == access_kind::store : weaken(m, o, s);
    });
    return out;
}

std::string words(const edge_uses& uses)
{
    static constexpr const char* kinds[] = {"load", "store", "add", "fence"};
    static constexpr const char* orders[] = {"relaxed", "acquire", "release", "acq_rel"};
    static constexpr const char* scopes[] = {"block", "device", "system"};
    std::string out;
    uses.each([&](access_kind k, device::order o, device::scope s) {
        out += (out.empty() ? "" : ", ") + std::string(kinds[static_cast<u32>(k)]) + " " + orders[static_cast<u32>(o)] + "."
               + scopes[static_cast<u32>(s)];
    });
    return out;
}

/// Accepted ones. "mutation edge": the argument.
using survivors = std::map<std::string, std::string>;

enum class verdict : u8 { killed, survives, undecided, nothing_to_weaken, unseen };

struct mutant {
    device::edge e;
    mutation how;
    edge_uses uses;
    model::verdict verdict = verdict::nothing_to_weaken;
    searched by;                ///< the search that killed it
    u64 executions = 0;         ///< in all searches run
    u32 suspects = 0;                ///< searches that it changes
    u32 searches = 0, exhausted = 0; ///< run; of which to the end
    double seconds = 0;
    std::string trouble;

    std::string name() const
    {
        return std::string(verdict == model::verdict::unseen ? "unseen" : name_of(how, uses)) + " " + device::edge_name(e);
    }
};

/// The searches that a mutant changes: who killed it last time, then the others by their time.
std::vector<const searched*> suspects(const mutant& m, const std::vector<searched>& all, const std::string& last_killer)
{
    std::vector<const searched*> out;
    for (const searched& s : all)
        if (s.kills() && changes(m.how, s.uses[static_cast<std::size_t>(m.e)])) out.push_back(&s);
    std::stable_sort(out.begin(), out.end(), [&](const searched* a, const searched* b) {
        const bool first = a->id() == last_killer, second = b->id() == last_killer;
        return first != second ? first : a->seconds < b->seconds;
    });
    return out;
}

struct context {
    catch_runner run_catch;
    std::vector<searched> all;
    std::map<std::string, std::vector<searched>> by_test;
    double seconds_of_mutant, seconds_of_survivor;
    survivors accepted;
    bool with_trace = false;
};

/// One search under one mutant (or none), in a process of its own.
outcome search_under(const context& c, const searched& s, device::edge e, mutation how, double limit)
{
    return run_forked(
        [&](std::FILE* answer) {
            mutations[static_cast<std::size_t>(e)] = how;
            role = {answer, s.test, 0, &c.by_test.at(s.test), s.place, c.with_trace};
            stand_in = run_wanted;
            run_test(c.run_catch, s.test);
            child::leave(answer, 3); // its search was not reached
        },
        limit);
}

/// Runs searches until one finds a failure; writes the mutant's fate, one line.
void hunt(const context& c, const mutant& m, const std::vector<const searched*>& searches, std::FILE* answer)
{
    const auto start = steady::now();
    u64 executions = 0;
    u32 run = 0, exhausted = 0;
    const auto say = [&](const char* fate, const std::string& text) {
        std::fprintf(answer, "%s\t%llu\t%u\t%u\t%.2f\t%s\n", fate, static_cast<unsigned long long>(executions), run, exhausted,
                     seconds_since(start), flat(text).c_str());
    };
    const bool listed = c.accepted.count(m.name()) != 0;
    for (const searched* s : searches) {
        if (listed && run > 0 && seconds_since(start) > c.seconds_of_survivor) break;
        const double left = c.seconds_of_mutant - seconds_since(start);
        if (left <= 0)
            return say("undecided",
                       "out of time after " + std::to_string(run) + " of " + std::to_string(searches.size()) + " searches");
        const outcome o = search_under(c, *s, m.e, m.how, left);
        if (c.with_trace) std::cout << o.output;
        if (o.timed_out) return say("undecided", "no end within the time: " + s->name);
        ++run;
        if (WIFSIGNALED(o.status)) { // asserts and wild pointers of the product's own code
            say("killed", std::string("ended by signal: ") + strsignal(WTERMSIG(o.status)));
            searched by = *s;
            write(answer, by);
            return;
        }
        const auto found = read_searches(o.answer);
        if (WEXITSTATUS(o.status) != 0 || found.size() != 1) return say("undecided", "the search was not reached: " + s->name);
        executions += found[0].executions;
        exhausted += found[0].exhausted;
        if (found[0].failed && found[0].executions == 0) return say("undecided", "nothing was explored: " + s->name);
        if (!found[0].failed) continue;
        say("killed", found[0].what);
        write(answer, found[0]);
        return;
    }
    say("survives", "");
}

void read_fate(mutant& m, const outcome& o)
{
    m.verdict = verdict::undecided;
    std::istringstream lines(o.answer);
    std::string line;
    if (o.timed_out || !WIFEXITED(o.status) || WEXITSTATUS(o.status) != 0 || !std::getline(lines, line)) {
        m.trouble = o.timed_out ? "out of time" : "its process ended badly: " + flat(o.output.substr(0, 200));
        return;
    }
    std::istringstream fields(line);
    std::string fate, field;
    const auto next = [&] {
        std::getline(fields, field, '\t');
        return field;
    };
    fate = next();
    m.executions = std::stoull(next());
    m.searches = static_cast<u32>(std::stoul(next()));
    m.exhausted = static_cast<u32>(std::stoul(next()));
    m.seconds = std::stod(next());
    m.trouble = next();
    if (fate == "survives") m.verdict = verdict::survives;
    if (fate != "killed") return;
    m.verdict = verdict::killed;
    const std::string rest = o.answer.substr(line.size() + 1);
    m.by = read_searches(rest).at(0);
    m.by.what = m.trouble;
}

// ---------------------------------------------------------------------------------------------------------------------
// the text

/// An operation that the text spells out and no search makes.
struct not_run {
    std::string name; ///< "text edge kind order.scope"
    std::string place;
};

/// Every `P::load(edge::...` in a file, up to its closing parenthesis. An order or scope that the text chooses at run time counts
/// as made when one of the choices was. What a queue does by its template arguments is not spelled out.
void read_text(const std::filesystem::path& path, const std::array<edge_uses, edges>& uses, u32& operations,
               std::vector<not_run>& out)
{
    std::ifstream file(path);
    std::string text;
    std::vector<std::size_t> line_starts;
    for (std::string line; std::getline(file, line);) {
        line_starts.push_back(text.size());
        text += line.substr(0, line.find("//")) + "\n";
    }
    static const std::regex operation(R"(P::(load|store|fetch_add|add|fence)\(\s*(?:device::)?edge::(\w+))");
    static const std::regex order_word(R"(order::(\w+))"), scope_word(R"(scope::(\w+))");
    for (std::sregex_iterator at(text.begin(), text.end(), operation), end; at != end; ++at) {
        const auto from = static_cast<std::size_t>(at->position());
        std::size_t to = text.find('(', from);
        for (u32 depth = 0; to < text.size(); ++to) {
            depth += text[to] == '(';
            depth -= text[to] == ')';
            if (depth == 0) break;
        }
        const std::string call = text.substr(from, to - from);
        const auto all = [&](const std::regex& word) {
            std::set<std::string> found;
            for (std::sregex_iterator i(call.begin(), call.end(), word), last; i != last; ++i) found.insert((*i)[1]);
            return found;
        };
        const std::string kind = (*at)[1] == "fetch_add" ? "add" : (*at)[1].str();
        const std::string name = (*at)[2];
        const auto orders = all(order_word), scopes = all(scope_word);
        if (orders.empty() || scopes.empty()) continue; // handed on: whoever calls spells it
        ++operations;
        edge_uses made;
        for (std::size_t e = 0; e < edges; ++e)
            if (name == device::edge_name(static_cast<device::edge>(e))) made = uses[e];
        const std::string seen = ", " + words(made) + ",";
        bool met = false;
        std::string spelled;
        for (const std::string& o : orders)
            for (const std::string& s : scopes) {
                spelled += (spelled.empty() ? "" : " or ") + kind + " " + o + "." + s;
                met = met || seen.find(", " + kind + " " + o + "." + s + ",") != std::string::npos;
            }
        if (met) continue;
        const auto line = std::upper_bound(line_starts.begin(), line_starts.end(), from) - line_starts.begin();
        out.push_back({"text " + name + " " + spelled, path.generic_string() + ":" + std::to_string(line)});
    }
}

std::vector<not_run> read_sources(const std::array<edge_uses, edges>& uses, u32& operations)
{
    std::vector<std::filesystem::path> files;
    for (const char* folder : {"device", "host"}) {
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
            const auto end = entry.path().extension();
            if (end == ".hpp" || end == ".cpp" || end == ".cuh" || end == ".cu") files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    std::vector<not_run> out;
    for (const auto& file : files) read_text(file, uses, operations, out);
    return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// accepted survivors

/// Lines `mutation edge: argument`; one that begins with two blanks goes on with the line before; # begins a comment.
bool read_survivors(const std::string& path, survivors& out)
{
    std::ifstream file(path);
    if (!file) {
        std::fprintf(stderr, "model_tests mutations: cannot read %s\n", path.c_str());
        return false;
    }
    std::string* last = nullptr;
    u32 number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        if (line.starts_with("  ") && last) {
            *last += line.substr(1);
            continue;
        }
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos || out.count(line.substr(0, colon))) {
            std::fprintf(stderr, "%s:%u: not `mutation edge: argument`, or said twice\n", path.c_str(), number);
            return false;
        }
        last = &out[line.substr(0, colon)];
        *last = line.substr(colon + 2);
    }
    return true;
}

/// What is wrong with these fates, given the list; nothing, if all is as it should be.
std::vector<std::string> judge(const std::vector<mutant>& mutants, const std::vector<not_run>& texts, const survivors& accepted)
{
    std::vector<std::string> out;
    std::set<std::string> met;
    for (const mutant& m : mutants) {
        const bool listed = accepted.count(m.name()) != 0;
        met.insert(m.name());
        switch (m.verdict) {
        case verdict::killed:
            if (listed) out.push_back(m.name() + " is on the list of accepted survivors, and was killed: take it off");
            break;
        case verdict::survives:
            if (!listed) out.push_back(m.name() + " survives: a test is missing, or the order is not needed");
            break;
        case verdict::undecided: out.push_back(m.name() + " is undecided: " + m.trouble); break;
        case verdict::nothing_to_weaken:
            if (listed) out.push_back(m.name() + " is on the list of accepted survivors, and has nothing to weaken: take it off");
            break;
        case verdict::unseen:
            if (!listed)
                out.push_back(std::string(device::edge_name(m.e)) + ": no search has an operation of it: a test is missing");
            break;
        }
    }
    for (const not_run& t : texts) {
        // Of an edge without any operation in a search its own entry says enough.
        const bool unseen = std::any_of(mutants.begin(), mutants.end(), [&](const mutant& m) {
            return m.verdict == verdict::unseen && t.name.starts_with("text " + std::string(device::edge_name(m.e)) + " ");
        });
        if (unseen) continue;
        met.insert(t.name);
        if (!accepted.count(t.name)) out.push_back(t.name + " (" + t.place + ") is made by no search: a test is missing");
    }
    for (const auto& [name, argument] : accepted)
        if (!met.count(name)) out.push_back(name + " is on the list of accepted survivors, and is no mutant: take it off");
    return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// the report

/// The searches that killed, by "mutation edge", from the table of an earlier report; none if there is no such file.
std::map<std::string, std::string> last_killers(const std::string& path)
{
    std::map<std::string, std::string> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("| ")) continue;
        std::vector<std::string> cells;
        std::istringstream in(line.substr(2));
        for (std::string cell; std::getline(in, cell, '|');) {
            const std::size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
            cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
        }
        if (cells.size() < 7 || cells[2] != "killed") continue;
        const std::size_t hash = cells[4].rfind(" #");
        if (hash == std::string::npos) continue;
        out[cells[1] + " " + cells[0]] = cells[3] + "\t" + cells[4].substr(0, hash) + "\t" + cells[4].substr(hash + 2);
    }
    return out;
}

std::string table(const std::vector<mutant>& mutants, const survivors& accepted)
{
    std::ostringstream out;
    out << "| edge | mutation | verdict | by the test | search #place in it | executions | how, or why not |\n"
           "|---|---|---|---|---|---|---|\n";
    for (const mutant& m : mutants) {
        const std::string name = m.name();
        out << "| " << device::edge_name(m.e) << " | " << name.substr(0, name.find(' ')) << " | ";
        const auto argument = accepted.find(name);
        const std::string why = argument == accepted.end() ? "NOT ACCEPTED" : argument->second;
        switch (m.verdict) {
        case verdict::killed:
            out << "killed | " << m.by.test << " | " << m.by.name << " #" << m.by.place << " | " << m.executions << " | "
                << m.by.what.substr(0, m.by.what.find("   ["));
            break;
        case verdict::survives:
            out << "survives | | " << m.searches << " of the " << m.suspects << " searches that it changes, " << m.exhausted
                << " exhausted | " << m.executions << " | " << why;
            break;
        case verdict::undecided: out << "UNDECIDED | | | " << m.executions << " | " << m.trouble; break;
        case verdict::nothing_to_weaken: out << "nothing to weaken | | | | has only: " << words(m.uses); break;
        case verdict::unseen: out << "no operation seen | | | | " << why; break;
        }
        out << " |\n";
    }
    return out.str();
}

struct arguments {
    unsigned at_once = std::max(1u, std::thread::hardware_concurrency());
    double seconds = 1200, survivor_seconds = 30;
    std::string only, accepted = "tests/model/survivors.txt", order, report;
    std::vector<std::string> head; ///< lines for the top of the report
};

constexpr const char* usage
    = "model_tests mutations [--jobs N] [--seconds S] [--survivor-seconds S] [--only TEXT] [--accepted FILE] [--order REPORT] "
      "[--report FILE] [--head LINE]...\n"
      "  For every edge of device/edge.hpp and every mutation that applies to it: finds a model test that turns red. "
      "Exit code 1 if a\n"
      "  mutant survives that is not in --accepted (default tests/model/survivors.txt), or one dies that is, or none was hunted.\n"
      "  --jobs N         processes at a time; default: as many as cores\n"
      "  --seconds S      time limit of one mutant (1200)\n"
      "  --survivor-seconds S   an accepted survivor needs to survive the quickest searches of so much time only (30)\n"
      "  --only TEXT      only mutants whose name, `mutation edge`, contains TEXT; prints the searches with traces; no report\n"
      "  --order REPORT   an earlier report: searches that killed then come first\n"
      "  --report FILE    writes the report there; --head LINE adds a line at its top\n";

bool parse(int count, const char* const* given, arguments& out)
{
    for (int i = 0; i < count; ++i) {
        const std::string option = given[i];
        if (option == "--help" || option == "-h" || i + 1 == count) return false;
        const std::string value = given[++i];
        char* end = nullptr;
        if (option == "--jobs") {
            out.at_once = static_cast<unsigned>(std::strtoul(value.c_str(), &end, 10));
            if (*end != 0 || out.at_once == 0) return false;
        } else if (option == "--seconds") {
            out.seconds = std::strtod(value.c_str(), &end);
            if (*end != 0 || out.seconds <= 0) return false;
        } else if (option == "--survivor-seconds") {
            out.survivor_seconds = std::strtod(value.c_str(), &end);
            if (*end != 0 || out.survivor_seconds < 0) return false;
        } else if (option == "--only") out.only = value;
        else if (option == "--accepted") out.accepted = value;
        else if (option == "--order") out.order = value;
        else if (option == "--report") out.report = value;
        else if (option == "--head") out.head.push_back(value);
        else return false;
    }
    return true;
}

std::vector<std::string> list_tests(catch_runner run_catch)
{
    const outcome o = run_forked(
        [&](std::FILE*) {
#if __has_include(<catch2/catch_all.hpp>)
            const char* list[] = {"model_tests", "--list-tests", "--verbosity", "quiet", "~[litmus]~[.]"};
#else
            const char* list[] = {"model_tests", "--list-test-names-only", "~[litmus]~[.]"};
#endif
            run_catch(static_cast<int>(std::size(list)), list);
        },
        60);
    std::vector<std::string> out;
    std::istringstream lines(o.output);
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) out.push_back(line);
    return out;
}

#if __has_include(<catch2/catch_all.hpp>)
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

/// Says at the top of every run what its reports cannot.
struct says_what_is_left_out : listener_base {
    using listener_base::listener_base;
    void testRunStarting(const Catch::TestRunInfo&) override
    {
        if (!stand_in) std::cout << "[model] left out: " << left_out << "\n";
    }
};
CATCH_REGISTER_LISTENER(says_what_is_left_out)

/// Exit code: 0 if every mutant was killed or is an accepted survivor, 1 if not, 2 for wrong arguments.
int run_mutations(int count, const char* const* given, catch_runner run_catch)
{
    const auto start = steady::now();
    arguments a;
    survivors accepted;
    if (!parse(count, given, a)) {
        std::fputs(usage, stderr);
        return 2;
    }
    if (!read_survivors(a.accepted, accepted)) return 2;
    const auto killers = last_killers(a.order);
    std::vector<std::string> problems;

    // 1. Every test as it is.
    context c{run_catch, {}, {}, a.seconds, a.survivor_seconds, accepted, !a.only.empty()};
    const std::vector<std::string> tests = list_tests(run_catch);
    run_all(
        tests.size(), a.at_once, a.seconds,
        [&](std::size_t i, std::FILE* answer) {
            role.notes = answer;
            role.test = tests[i];
            stand_in = note_search;
            child::leave(answer, run_test(run_catch, tests[i]) == 0 ? 0 : 1);
        },
        [&](std::size_t i, const outcome& o) {
            auto& found = c.by_test[tests[i]] = read_searches(o.answer);
            std::printf("unmutated: %s: %s, %zu searches\n", tests[i].c_str(), !o.timed_out && o.status == 0 ? "green" : "RED",
                        found.size());
            std::fflush(stdout);
            if (found.empty()) problems.push_back("no search was seen in the test: " + tests[i]);
            if (o.timed_out || o.status != 0) {
                problems.push_back("unmutated, the test is red: " + tests[i]);
                std::printf("%s\n", o.output.c_str());
            }
        });
    for (const std::string& test : tests)
        for (const searched& s : c.by_test[test]) c.all.push_back(s);
    u64 unmutated_executions = 0;
    u32 usable = 0, exhausted = 0;
    std::array<edge_uses, edges> uses{};
    for (const searched& s : c.all) {
        if (!s.kills()) continue;
        ++usable;
        exhausted += s.exhausted;
        unmutated_executions += s.executions;
        for (std::size_t e = 0; e < edges; ++e) uses[e].add(s.uses[e]);
    }
    const double unmutated_seconds = seconds_since(start);
    if (usable == 0) problems.push_back("no test has a search");

    // 2. The mutants.
    std::vector<mutant> mutants;
    for (std::size_t i = 0; i < edges; ++i) {
        const auto e = static_cast<device::edge>(i);
        if (!uses[i].any()) {
            mutants.push_back({e, mutation::none, {}, verdict::unseen, {}, 0, 0, 0, 0, 0, ""});
            continue;
        }
        for (const mutation how : every_mutation) {
            const bool half = how == mutation::no_acquire || how == mutation::no_release;
            if (half && !applies(how, uses[i])) continue;
            mutants.push_back({e, how, uses[i], applies(how, uses[i]) ? verdict::undecided : verdict::nothing_to_weaken,
                               {}, 0, 0, 0, 0, 0, ""});
        }
    }
    for (mutant& m : mutants) m.suspects = static_cast<u32>(suspects(m, c.all, "").size());
    std::vector<mutant*> hunted;
    for (mutant& m : mutants)
        if (m.verdict == verdict::undecided && m.name().find(a.only) != std::string::npos) hunted.push_back(&m);
    // 3. Canaries: a report of a completed block, a ready task and a completion word that are never stored.
    std::vector<mutant> planted;
    for (const device::edge e : {device::edge::R5_done, device::edge::R14_ready, device::edge::R7_low_water})
        planted.push_back({e, mutation::lose, uses[static_cast<std::size_t>(e)], verdict::undecided, {}, 0, 0, 0, 0, 0, ""});
    if (a.only.empty())
        for (mutant& m : planted) hunted.push_back(&m);
    run_all(
        hunted.size(), a.at_once, a.seconds + 60,
        [&](std::size_t i, std::FILE* answer) {
            const auto known = killers.find(hunted[i]->name());
            hunt(c, *hunted[i], suspects(*hunted[i], c.all, known == killers.end() ? "" : known->second), answer);
        },
        [&](std::size_t i, const outcome& o) {
            mutant& m = *hunted[i];
            read_fate(m, o);
            if (c.with_trace) std::printf("%s\n", o.output.c_str());
            if (m.verdict == verdict::killed)
                std::printf("%s: killed by \"%s\", %s: %s (%llu executions in %u searches)\n", m.name().c_str(), m.by.test.c_str(),
                            m.by.name.c_str(), m.by.what.c_str(), static_cast<unsigned long long>(m.executions), m.searches);
            else
                std::printf("%s: %s %s(%llu executions in %u searches, %.0f s)\n", m.name().c_str(),
                            m.verdict == verdict::survives ? "SURVIVES" : "UNDECIDED", m.trouble.c_str(),
                            static_cast<unsigned long long>(m.executions), m.searches, m.seconds);
            std::fflush(stdout);
        });
    if (!a.only.empty()) {
        std::vector<mutant> asked;
        survivors listed;
        for (const mutant* m : hunted) {
            asked.push_back(*m);
            if (const auto entry = accepted.find(m->name()); entry != accepted.end()) listed.insert(*entry);
        }
        if (hunted.empty()) problems.push_back("no mutant that can be hunted has a name with `" + a.only + "`");
        const auto found = judge(asked, {}, listed);
        problems.insert(problems.end(), found.begin(), found.end());
        for (const std::string& p : problems) std::printf("- %s\n", p.c_str());
        return problems.empty() ? 0 : 1;
    }

    for (const mutant& m : planted)
        if (m.verdict != verdict::killed) problems.push_back("canary: the planted bug `" + m.name() + "` was not found");
    std::vector<const searched*> to_clear;
    std::set<std::string> seen;
    for (const std::vector<mutant>* list : {&mutants, &planted})
        for (const mutant& m : *list)
            if (m.verdict == verdict::killed && seen.insert(m.by.id()).second) to_clear.push_back(&m.by);
    u32 cleared = 0;
    run_all(
        to_clear.size(), a.at_once, a.seconds,
        [&](std::size_t i, std::FILE* answer) {
            const outcome o = search_under(c, *to_clear[i], device::edge::R5_done, mutation::none, a.seconds);
            const auto found = read_searches(o.answer);
            std::fputs(!o.timed_out && o.status == 0 && found.size() == 1 && !found[0].failed ? "green" : "red", answer);
        },
        [&](std::size_t i, const outcome& o) {
            if (o.answer == "green") ++cleared;
            else problems.push_back("canary: without a mutant this search is red all the same: " + to_clear[i]->test + ", "
                                    + to_clear[i]->name);
        });

    u32 operations = 0;
    const std::vector<not_run> texts = read_sources(uses, operations);
    if (operations == 0)
        problems.push_back("no operation is found in the text of device/ and host/: run this in the repository's root");
    const auto found = judge(mutants, texts, accepted);
    {
        survivors wrong = accepted;
        const auto dead = std::find_if(mutants.begin(), mutants.end(), [](const mutant& m) {
            return m.verdict == verdict::killed;
        });
        const auto alive = std::find_if(mutants.begin(), mutants.end(), [&](const mutant& m) {
            return m.verdict == verdict::survives && accepted.count(m.name());
        });
        std::size_t more = 0;
        if (dead != mutants.end() && !wrong.count(dead->name())) ++more, wrong[dead->name()] = "canary";
        if (alive != mutants.end()) ++more, wrong.erase(alive->name());
        if (more == 0 || judge(mutants, texts, wrong).size() != found.size() + more)
            problems.push_back("canary: a wrong list of accepted survivors is not noticed");
    }
    problems.insert(problems.end(), found.begin(), found.end());

    std::map<verdict, u32> counts;
    u64 executions = 0;
    for (const mutant& m : mutants) {
        ++counts[m.verdict];
        executions += m.executions;
    }
    std::ostringstream out;
    out << "# Mutations of the protocol's edges\n\n";
    for (const std::string& line : a.head) out << line << "  \n";
    out << "model leaves out: " << left_out << "  \n"
        << "unmutated: " << tests.size() << " tests green; " << usable << " of their " << c.all.size()
        << " searches can kill (the others are weakened or have a planted bug by themselves), " << exhausted
        << " of these exhausted, " << unmutated_executions << " executions, " << static_cast<u64>(unmutated_seconds) << " s  \n"
        << "mutants: " << counts[verdict::killed] + counts[verdict::survives] + counts[verdict::undecided] << " of " << edges
        << " edges: " << counts[verdict::killed] << " killed, " << counts[verdict::survives] << " survive, "
        << counts[verdict::undecided] << " undecided; " << counts[verdict::nothing_to_weaken] << " with nothing to weaken; "
        << counts[verdict::unseen] << " edges without an operation; " << executions << " executions  \n"
        << "text: " << operations << " operations of device/ and host/ spell edge, order and scope; " << operations - texts.size()
        << " as some search made them; the others stand below the table  \n"
        << "canaries: " << planted.size() << " planted bugs found; " << cleared << " of " << to_clear.size()
        << " searches that killed are green without a mutant; a wrong list is noticed  \n"
        << "time: " << static_cast<u64>(seconds_since(start)) << " s, " << a.at_once << " processes at a time  \n"
        << "result: " << (problems.empty() ? "every mutant is killed or an accepted survivor" : "FAILED") << "\n\n";
    for (const std::string& p : problems) out << "- " << p << "\n";
    out << (problems.empty() ? "" : "\n")
        << "relax: orders become relaxed; drop: fences are dropped; no-acquire, no-release: one half of that, where an edge has "
           "both; narrow: system scope\nbecomes device scope, device scope block scope. Executions: of all searches run for this "
           "mutant, up to the failure. A search is run again by\n`model_tests mutations --only 'MUTATION EDGE'`.\n\n"
        << table(mutants, accepted) << "\nIn the text, and made by no search:\n\n";
    for (const not_run& t : texts) {
        const auto argument = accepted.find(t.name);
        out << "- " << t.place << ": " << t.name.substr(5) << ". " << (argument == accepted.end() ? "" : argument->second) << "\n";
    }
    std::cout << "\n" << out.str();
    if (!a.report.empty()) {
        std::ofstream file(a.report);
        file << out.str();
        if (!file) {
            std::fprintf(stderr, "model_tests mutations: cannot write %s\n", a.report.c_str());
            return 2;
        }
    }
    return problems.empty() ? 0 : 1;
}

constexpr test_command mutations_command{"mutations", run_mutations};
[[maybe_unused]] const bool registered = [] {
    own_command = &mutations_command;
    return true;
}();

} // namespace
} // namespace slipstream::model
